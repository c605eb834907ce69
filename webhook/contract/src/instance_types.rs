//! Instance types: how large an Instance of a type is, for quota, for providers, and for the requirements that Karmada's scheduler
//! reads, so that a type has one size everywhere.
//!
//! The catalogue is read on the management plane. What it says of a type goes with each object in [`ANNOTATION`], since a module
//! has no other input and a cell no catalogue. Without the annotation a type has the size of [`BUILT_IN`].

use crate::Quantity;
use crate::json::cut;

/// The annotation with the size of the instance type that a WorkloadDeployment on the hub and in its cell, or an Instance in a cell,
/// names: `acme/large cpu=4 memory=8Gi`. It says nothing of another type, so that one from before a change of the type does no harm.
pub const ANNOTATION: &str = "compute.datumapis.com/instance-type-size";

/// The type that there is without a catalogue.
pub const BUILT_IN: &str = "datumcloud/d1-standard-2";
/// Its processors and bytes of memory.
const BUILT_IN_SIZE: [&str; 2] = ["1", "2Gi"];

/// Most processors of a type.
pub const MOST_CPU: i64 = 10_000;
/// Most memory of a type, in bytes: 1 PiB.
pub const MOST_MEMORY: i64 = 1 << 50;
/// Longest name of a type, in bytes.
pub const LONGEST_NAME: usize = 128;
/// Longest value of the annotation, in bytes.
const LONGEST: usize = 512;
/// So much of one that cannot be read is shown, in bytes.
const SHOWN: usize = 64;

/// How large an Instance of a type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSize {
    /// Processors.
    pub cpu: Quantity,
    /// Bytes of memory.
    pub memory: Quantity,
}

/// The annotation cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "annotation {ANNOTATION} cannot be read: expected \"<instance type> cpu=<quantity> memory=<quantity>\", found {0:?}; remove it, \
     and the management plane writes it again"
)]
pub struct Malformed(pub String);

impl TypeSize {
    /// Of two amounts as people write them; `None` unless both are quantities above 0 and within [`MOST_CPU`] and [`MOST_MEMORY`].
    #[must_use]
    pub fn read(cpu: &str, memory: &str) -> Option<Self> {
        let within = |text: &str, most: i64| {
            let read: Quantity = text.parse().ok()?;
            (read.nano() > 0 && read.nano() <= Quantity::whole(most).nano()).then_some(read)
        };
        Some(Self {
            cpu: within(cpu, MOST_CPU)?,
            memory: within(memory, MOST_MEMORY)?,
        })
    }

    /// The size of [`BUILT_IN`].
    #[must_use]
    pub fn built_in() -> Option<Self> {
        let [cpu, memory] = BUILT_IN_SIZE;
        Self::read(cpu, memory)
    }

    /// The value of the annotation for a type of this size; `None` where the type has it without.
    #[must_use]
    pub fn annotation(self, name: &str) -> Option<String> {
        let is_built_in = name == BUILT_IN && Self::built_in() == Some(self);
        (!is_built_in).then(|| self.text(name))
    }

    /// The same, also where the type has it without.
    #[must_use]
    pub fn text(self, name: &str) -> String {
        format!("{name} cpu={} memory={}", self.cpu, self.memory)
    }
}

/// Whether a type can have this name: printable ASCII without spaces, of 128 bytes at most.
#[must_use]
pub fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The size of a type, with what the object that names it has of [`ANNOTATION`]; `None` where that is not known.
///
/// # Errors
/// The annotation cannot be read, whichever type it is about.
pub fn size(name: &str, annotation: Option<&str>) -> Result<Option<TypeSize>, Malformed> {
    if let Some(text) = annotation {
        let (of, size) = parse(text).ok_or_else(|| {
            let mut shown: String = text.chars().take(SHOWN).collect();
            cut(&mut shown, SHOWN);
            Malformed(shown)
        })?;
        if of == name {
            return Ok(Some(size));
        }
    }
    Ok(TypeSize::built_in().filter(|_| name == BUILT_IN))
}

/// Name and size. What is said beside cpu and memory is for later versions.
fn parse(text: &str) -> Option<(&str, TypeSize)> {
    let mut words = text.split(' ');
    let name = words.next().filter(|name| text.len() <= LONGEST && is_name(name))?;
    let (mut cpu, mut memory) = (None, None);
    for word in words {
        let (key, value) = word.split_once('=')?;
        let amount = match key {
            "cpu" => &mut cpu,
            "memory" => &mut memory,
            _ => continue,
        };
        if amount.replace(value).is_some() {
            return None;
        }
    }
    Some((name, TypeSize::read(cpu?, memory?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cpu: &str, memory: &str) -> TypeSize {
        TypeSize::read(cpu, memory).unwrap()
    }

    #[test]
    fn without_an_annotation_only_the_built_in_type_has_a_size() {
        assert_eq!(size(BUILT_IN, None), Ok(Some(of("1", "2Gi"))));
        assert_eq!(size("acme/large", None), Ok(None));
        assert_eq!(size("", None), Ok(None));
    }

    #[test]
    fn an_annotation_says_the_size_of_its_own_type_only() {
        let text = of("4", "8Gi").annotation("acme/large");
        assert_eq!(text.as_deref(), Some("acme/large cpu=4 memory=8Gi"));
        let text = text.as_deref();
        assert_eq!(size("acme/large", text), Ok(Some(of("4", "8Gi"))));
        assert_eq!(size("acme/small", text), Ok(None));
        assert_eq!(size(BUILT_IN, text), Ok(Some(of("1", "2Gi"))));
        // A catalogue may give the built-in name another size.
        let other = of("2", "4Gi").annotation(BUILT_IN);
        assert_eq!(size(BUILT_IN, other.as_deref()), Ok(Some(of("2", "4Gi"))));
        assert_eq!(of("1", "2Gi").annotation(BUILT_IN), None);
        assert_eq!(of("1000m", "2048Mi").annotation(BUILT_IN), None);
        // A later version may say more.
        let more = Some("acme/large memory=8Gi gpu=1 cpu=500m");
        assert_eq!(size("acme/large", more), Ok(Some(of("500m", "8Gi"))));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_whichever_type_it_is_about() {
        let long = format!("acme/large cpu=1 memory=1Gi {}", "x=1 ".repeat(200));
        for text in [
            "",
            " ",
            "acme/large",
            "acme/large cpu=1",
            "acme/large memory=1Gi",
            "acme/large cpu=0 memory=1Gi",
            "acme/large cpu=-1 memory=1Gi",
            "acme/large cpu=1 memory=lots",
            "acme/large cpu=1 cpu=2 memory=1Gi",
            "acme/large cpu=1  memory=1Gi",
            "acme/large cpu=10001 memory=1Gi",
            "acme/large cpu=1 memory=2Pi",
            "acme/large cpu=1 memory=1Gi\n",
            "cpu=1 memory=1Gi",
            "\u{e9} cpu=1 memory=1Gi",
            r#"{"cpu":"1","memory":"2Gi"}"#,
            &long,
        ] {
            for name in ["acme/large", BUILT_IN, ""] {
                let Err(Malformed(shown)) = size(name, Some(text)) else {
                    panic!("{text:?} is read");
                };
                assert!(shown.len() <= SHOWN, "{shown}");
            }
        }
    }

    #[test]
    fn a_size_is_above_zero_and_bounded() {
        for (cpu, memory, good) in [
            ("1", "1", true),
            ("1n", "1Mi", true),
            ("10k", "1Pi", true),
            ("10001", "1Gi", false),
            ("1", "1025Ti", false),
            ("0", "1Gi", false),
            ("1", "0", false),
            ("-1", "1Gi", false),
            ("1e30", "1Gi", false),
            ("one", "1Gi", false),
            ("1", "", false),
        ] {
            assert_eq!(TypeSize::read(cpu, memory).is_some(), good, "{cpu} {memory}");
        }
    }
}
