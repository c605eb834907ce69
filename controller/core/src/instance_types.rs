//! The catalogue of instance types, and what of it goes with an object to where it is needed.
//!
//! - The platform's own server has the catalogue: projects, hub and cells have none.
//! - What goes with an object is about the type that its spec names, and of the size that the catalogue says. A type that is no
//!   longer there keeps the size that the object has.
//! - Without objects the size of the built-in type is assumed: what an object has of a size from a catalogue is kept.
//! - Of a type that is as large as the built-in one of its name nothing goes with the object.
//!
//! Why: `docs/decisions/32-instance-types.md`.

use std::collections::{BTreeMap, BTreeSet};

use popcell_contract::instance_types::{self, BUILT_IN, TypeSize};
use serde_json::Value;

use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::cut;
use crate::sizing::Described;

/// Most types of a catalogue: a refusal at admission names those that there are.
pub const MOST: usize = 200;

/// How large each instance type is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    sizes: BTreeMap<String, TypeSize>,
    /// No object says so.
    is_assumed: bool,
}

/// An InstanceType that does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ignored {
    /// The name of the object.
    pub object: String,
    /// Why.
    pub why: String,
}

/// Why the size of a type is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsized {
    /// The catalogue does not have it.
    NotFound(String),
    /// The catalogue is not known.
    Unknown,
}

impl Default for Catalogue {
    /// The one without objects: the built-in type.
    fn default() -> Self {
        let built_in = TypeSize::built_in().map(|size| (BUILT_IN.to_owned(), size));
        Self {
            sizes: built_in.into_iter().collect(),
            is_assumed: true,
        }
    }
}

impl Catalogue {
    /// That of these InstanceTypes; without any that counts the built-in one. Of two with one `spec.name` the older counts, and of
    /// more than [`MOST`] the oldest. One that is being deleted counts until it is gone.
    pub fn of(objects: &[&Object]) -> (Self, Vec<Ignored>) {
        let mut by_age = objects.to_vec();
        // The API server gives each a creation time, in whole seconds.
        by_age.sort_by_key(|one| (one.created(), one.name()));
        let (mut sizes, mut ignored) = (BTreeMap::new(), Vec::new());
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        for object in by_age {
            let mut ignore = |why: String| {
                ignored.push(Ignored {
                    object: object.name().to_owned(),
                    why,
                });
            };
            let (name, size) = match read(object) {
                Ok(read) => read,
                Err(why) => {
                    ignore(why);
                    continue;
                }
            };
            if let Some(older) = names.get(name) {
                ignore(format!(
                    "InstanceType {older} is older and has the same spec.name {name}"
                ));
            } else if sizes.len() == MOST {
                ignore(format!("there are {MOST} older ones, and no more count"));
            } else {
                names.insert(name, object.name());
                sizes.insert(name.to_owned(), size);
            }
        }
        if sizes.is_empty() {
            return (Self::default(), ignored);
        }
        let is_assumed = false;
        (Self { sizes, is_assumed }, ignored)
    }

    /// The names of all types, in order.
    pub fn names(&self) -> Vec<&str> {
        self.sizes.keys().map(String::as_str).collect()
    }

    /// How large a type is.
    pub fn size(&self, name: &str) -> Option<TypeSize> {
        self.sizes.get(name).copied()
    }

    /// The types that are of another size in another catalogue, or in one of the two only, or said by objects of one only.
    pub fn differences<'a>(&'a self, other: &'a Self) -> BTreeSet<&'a str> {
        let all = self.sizes.keys().chain(other.sizes.keys()).map(String::as_str);
        let says = |one: &Self, name| Some((one.size(name)?, one.is_assumed));
        all.filter(|name| says(self, name) != says(other, name)).collect()
    }
}

/// Name and size; or why it has none.
fn read(object: &Object) -> Result<(&str, TypeSize), String> {
    let name = object.text("/spec/name").filter(|name| instance_types::is_name(name));
    let name = name.ok_or("spec.name is no name of a type")?;
    let amount = |pointer| match object.at(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let size = TypeSize::read(&amount("/spec/cpu"), &amount("/spec/memory"));
    let size = size.ok_or("spec.cpu and spec.memory are not above 0 and within their bounds")?;
    Ok((name, size))
}

/// The type that the spec of an Instance names, and its size; `None` where it names none. `kept` is what the object has: where it
/// is of the same type, and its size is known, it stays while no InstanceType says another one.
///
/// # Errors
/// The size of the type is not known.
pub fn size<'a>(
    spec: Option<&'a Value>,
    catalogue: Observed<&Catalogue>,
    kept: Option<Described<'_>>,
) -> Result<Option<(&'a str, TypeSize)>, Unsized> {
    let named = spec.map(|spec| Described { spec, type_size: None });
    let Some(name) = named.and_then(Described::type_name) else {
        return Ok(None);
    };
    let (said, is_assumed) = match catalogue {
        Observed::Known(catalogue) => (catalogue.size(name), catalogue.is_assumed),
        Observed::Unknown => (None, false),
    };
    let kept = kept.filter(|kept| kept.type_name() == Some(name));
    let kept = kept.and_then(|kept| instance_types::size(name, kept.type_size).ok().flatten());
    let size = if is_assumed { kept.or(said) } else { said.or(kept) };
    match (size, catalogue) {
        (Some(size), _) => Ok(Some((name, size))),
        (None, Observed::Known(_)) => Err(Unsized::NotFound(cut(name, instance_types::LONGEST_NAME).to_owned())),
        (None, Observed::Unknown) => Err(Unsized::Unknown),
    }
}

/// The annotation for an object with this spec, `None` where it needs none: see [`size`].
///
/// # Errors
/// The size of the type is not known.
pub fn annotation(
    spec: Option<&Value>,
    catalogue: Observed<&Catalogue>,
    kept: Option<Described<'_>>,
) -> Result<Option<String>, Unsized> {
    let sized = size(spec, catalogue, kept)?;
    Ok(sized.and_then(|(name, size)| size.annotation(name)))
}

/// What the condition `InstanceTypeNotFound` says.
pub(crate) fn not_found(name: &str) -> String {
    format!(
        "Instance type {name} is not in the catalogue: use another one in spec.template.spec.runtime.resources.instanceType, or ask \
         the platform's operator for an InstanceType of this name"
    )
}

#[cfg(test)]
mod tests;
