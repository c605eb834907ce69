//! Errors at fields, in the words of Kubernetes (k8s.io/apimachinery, pkg/util/validation/field).

use std::fmt;

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
        /// All that there are.
        supported: Vec<String>,
    },
    /// It must not be given, or the user may not do it.
    Forbidden(String),
    /// It names something that is not there.
    NotFound(String),
    /// It is there twice.
    Duplicate(String),
    /// It is larger than this, in bytes.
    TooLong(usize),
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
            Self::NotSupported { value, supported } => {
                write!(f, "Unsupported value: {value:?}")?;
                if supported.is_empty() {
                    return f.write_str(": no value is supported");
                }
                f.write_str(": supported values: ")?;
                for (index, one) in supported.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}{one:?}")?;
                }
                Ok(())
            }
            Self::Forbidden(rule) => write!(f, "Forbidden: {rule}"),
            Self::NotFound(value) => write!(f, "Not found: {value:?}"),
            Self::Duplicate(value) => write!(f, "Duplicate value: {value:?}"),
            Self::TooLong(most) => write!(f, "Too long: may not be more than {most} bytes"),
            Self::Internal(what) => write!(f, "Internal error: {what}"),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.fault)
    }
}

/// Collects faults.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<FieldError>);

impl Faults {
    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.0
    }

    pub(super) fn required(&mut self, path: impl Into<String>, rule: &str) {
        self.add(path, Fault::Required(rule.to_owned()));
    }

    pub(super) fn invalid(&mut self, path: impl Into<String>, value: impl Into<serde_json::Value>, rule: &str) {
        let value = value.into().to_string();
        let rule = rule.to_owned();
        self.add(path, Fault::Invalid { value, rule });
    }

    pub(super) fn not_supported(&mut self, path: impl Into<String>, value: &str, supported: &[&str]) {
        self.add(
            path,
            Fault::NotSupported {
                value: value.to_owned(),
                supported: supported.iter().map(|one| (*one).to_owned()).collect(),
            },
        );
    }

    pub(super) fn forbidden(&mut self, path: impl Into<String>, rule: &str) {
        self.add(path, Fault::Forbidden(rule.to_owned()));
    }

    pub(super) fn not_found(&mut self, path: impl Into<String>, value: &str) {
        self.add(path, Fault::NotFound(value.to_owned()));
    }

    pub(super) fn duplicate(&mut self, path: impl Into<String>, value: &str) {
        self.add(path, Fault::Duplicate(value.to_owned()));
    }

    pub(super) fn too_long(&mut self, path: impl Into<String>, most: usize) {
        self.add(path, Fault::TooLong(most));
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

    fn add(&mut self, path: impl Into<String>, fault: Fault) {
        self.0.push(FieldError {
            path: path.into(),
            fault,
        });
    }
}
