//! Errors at fields, in the words of Kubernetes (k8s.io/apimachinery, pkg/util/validation/field).
//!
//! Invariant: a refusal is small whatever is refused: faults, the values that one lists, and the text of each are bounded.

use std::fmt;

use crate::plan::cut;

/// Faults that are listed; of more, only their number.
const LISTED: usize = 100;
/// Values that there are, of which so many are listed.
const SUPPORTED: usize = 100;
/// So many bytes of a path, a value or a rule are shown.
const SHOWN: usize = 512;

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It must be given.
    Required(String),
    /// Its value breaks a rule.
    Invalid {
        /// The value as JSON.
        value: String,
        /// The rule.
        rule: String,
    },
    /// It is none of the values that there are.
    NotSupported {
        /// The value.
        value: String,
        /// Those that there are, or the first of them.
        supported: Vec<String>,
        /// How many more there are.
        more: usize,
    },
    /// It must not be given, or the user may not do it.
    Forbidden(String),
    /// It names something that is not there.
    NotFound(String),
    /// It is there twice.
    Duplicate(String),
    /// It is larger than this, in bytes.
    TooLong(usize),
    /// The list has more items than it may have.
    TooMany {
        /// Its items.
        given: usize,
        /// Items that it may have.
        most: usize,
    },
    /// We could not tell.
    Internal(String),
}

/// A fault and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// As in `spec.placements[0].name`.
    pub path: String,
    /// The fault.
    pub fault: Fault,
}

impl FieldError {
    /// The reason of the cause in a Status (metav1.CauseType).
    pub fn reason(&self) -> &'static str {
        match self.fault {
            Fault::Required(_) => "FieldValueRequired",
            Fault::Invalid { .. } => "FieldValueInvalid",
            Fault::NotSupported { .. } => "FieldValueNotSupported",
            Fault::Forbidden(_) => "FieldValueForbidden",
            Fault::NotFound(_) => "FieldValueNotFound",
            Fault::Duplicate(_) => "FieldValueDuplicate",
            Fault::TooLong(_) => "FieldValueTooLong",
            Fault::TooMany { .. } => "FieldValueTooMany",
            Fault::Internal(_) => "InternalError",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required(rule) if rule.is_empty() => f.write_str("Required value"),
            Self::Required(rule) => write!(f, "Required value: {rule}"),
            Self::Invalid { value, rule } => write!(f, "Invalid value: {value}: {rule}"),
            Self::NotSupported { value, supported, more } => {
                write!(f, "Unsupported value: {value:?}")?;
                if supported.is_empty() {
                    return f.write_str(": no value is supported");
                }
                f.write_str(": supported values: ")?;
                for (index, one) in supported.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}{one:?}")?;
                }
                match more {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::Forbidden(rule) => write!(f, "Forbidden: {rule}"),
            Self::NotFound(value) => write!(f, "Not found: {value:?}"),
            Self::Duplicate(value) => write!(f, "Duplicate value: {value:?}"),
            Self::TooLong(most) => write!(f, "Too long: may not be more than {most} bytes"),
            Self::TooMany { given, most } => write!(f, "Too many: {given}: must have at most {most} items"),
            Self::Internal(what) => write!(f, "Internal error: {what}"),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.fault)
    }
}

/// Collects faults, the first of which are built. The others are counted.
#[derive(Debug, Default)]
pub(super) struct Faults {
    listed: Vec<FieldError>,
    more: usize,
}

impl Faults {
    pub(super) fn into_errors(self) -> Vec<FieldError> {
        let Self { mut listed, more } = self;
        if more > 0 {
            listed.push(FieldError {
                path: "spec".to_owned(),
                fault: Fault::Forbidden(format!("{more} more faults are not listed: correct these first")),
            });
        }
        listed
    }

    pub(super) fn required(&mut self, path: impl Into<String>, rule: &str) {
        self.add(path, || Fault::Required(shown(rule)));
    }

    pub(super) fn invalid(&mut self, path: impl Into<String>, value: impl Into<serde_json::Value>, rule: &str) {
        self.add(path, || {
            let value = match value.into() {
                serde_json::Value::String(text) => serde_json::Value::from(shown(&text)),
                other => other,
            };
            Fault::Invalid {
                value: value.to_string(),
                rule: shown(rule),
            }
        });
    }

    pub(super) fn not_supported(&mut self, path: impl Into<String>, value: &str, supported: &[&str]) {
        self.add(path, || Fault::NotSupported {
            value: shown(value),
            supported: supported.iter().take(SUPPORTED).map(|one| (*one).to_owned()).collect(),
            more: supported.len().saturating_sub(SUPPORTED),
        });
    }

    pub(super) fn forbidden(&mut self, path: impl Into<String>, rule: &str) {
        self.add(path, || Fault::Forbidden(shown(rule)));
    }

    pub(super) fn internal(&mut self, path: impl Into<String>, what: &str) {
        self.add(path, || Fault::Internal(shown(what)));
    }

    pub(super) fn not_found(&mut self, path: impl Into<String>, value: &str) {
        self.add(path, || Fault::NotFound(shown(value)));
    }

    pub(super) fn duplicate(&mut self, path: impl Into<String>, value: &str) {
        self.add(path, || Fault::Duplicate(shown(value)));
    }

    pub(super) fn too_long(&mut self, path: impl Into<String>, most: usize) {
        self.add(path, || Fault::TooLong(most));
    }

    /// The items of a list that may have so many: of one that has more, the first.
    pub(super) fn at_most<'a, T>(&mut self, path: &str, list: &'a [T], most: usize) -> &'a [T] {
        if let Some(first) = list.get(..most).filter(|first| first.len() < list.len()) {
            let given = list.len();
            self.add(path, || Fault::TooMany { given, most });
            return first;
        }
        list
    }

    /// Required, then a DNS subdomain: the name of an object.
    pub(super) fn object_name(&mut self, path: impl Into<String>, value: &str) {
        const RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        let path = path.into();
        if value.is_empty() {
            self.required(path, "");
        } else if !crate::names::is_dns_subdomain(value) {
            self.invalid(path, value, RULE);
        }
    }

    /// Required, then a DNS label.
    pub(super) fn dns_label(&mut self, path: impl Into<String>, value: &str) {
        const RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
             must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation \
             is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        let path = path.into();
        if value.is_empty() {
            self.required(path, "");
        } else if value.len() > crate::names::LABEL_LENGTH {
            self.invalid(path, value, "must be no more than 63 characters");
        } else if !crate::names::is_dns_label(value) {
            self.invalid(path, value, RULE);
        }
    }

    fn add(&mut self, path: impl Into<String>, fault: impl FnOnce() -> Fault) {
        if self.listed.len() < LISTED {
            self.listed.push(FieldError {
                path: shown(&path.into()),
                fault: fault(),
            });
        } else {
            self.more += 1;
        }
    }
}

/// The beginning of a text that may be long.
fn shown(text: &str) -> String {
    match cut(text, SHOWN) {
        whole if whole.len() == text.len() => text.to_owned(),
        start => format!("{start}..."),
    }
}
