//! One question to a module, and why it has no answer.

use std::fmt::{self, Write as _};
use std::time::Duration;

use popcell_protocol::{Gvk, MAX_MESSAGE, Operation, Refusal, Request, StatusItem, one_line};

/// One question about one object.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What is asked.
    pub operation: Operation,
    /// Kind of the object.
    pub kind: &'a Gvk,
    /// Namespace of the object, for messages.
    pub namespace: Option<&'a str>,
    /// Name of the object, for messages.
    pub name: &'a str,
    /// The object as JSON text.
    pub object: &'a [u8],
    /// For Retain: the object as the member cluster has it.
    pub observed: Option<&'a [u8]>,
    /// For ReviseReplica.
    pub replicas: i32,
    /// For AggregateStatus.
    pub items: &'a [StatusItem<'a>],
}

impl<'a> Call<'a> {
    /// A question that needs nothing but the object; set the other fields as the operation asks for them.
    pub fn new(operation: Operation, kind: &'a Gvk, object: &'a [u8]) -> Self {
        Self {
            operation,
            kind,
            namespace: None,
            name: "",
            object,
            observed: None,
            replicas: 0,
            items: &[],
        }
    }

    /// The question of a request.
    pub fn of(request: &'a Request<'_>) -> Self {
        Self {
            operation: request.operation,
            kind: &request.kind,
            namespace: request.namespace.as_deref(),
            name: &request.name,
            object: request.object.get().as_bytes(),
            observed: request.observed_object.map(|observed| observed.get().as_bytes()),
            replicas: request.replicas.unwrap_or(0),
            items: &request.aggregated_status,
        }
    }

    /// `namespace/name`, or `name` for cluster-scoped objects.
    pub(crate) fn object_name(&self) -> String {
        match self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// A call without an answer: which module, which question, and why.
///
/// `Display` is one line of at most 256 bytes, fit for Karmada's events:
/// `name@version Operation Kind namespace/name: reason`.
#[derive(Clone, Debug)]
pub struct CallError {
    /// Who was asked what.
    pub subject: Box<Subject>,
    /// Why there is no answer.
    pub cause: Cause,
}

/// Who was asked what about which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `name@version`; `None` where no module was found.
    pub module: Option<String>,
    /// What was asked.
    pub operation: Operation,
    /// Kind of the object.
    pub kind: Gvk,
    /// `namespace/name`; empty where the caller gave none.
    pub object: String,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The object does not have the shape that the operation needs.
    InvalidObject {
        /// JSON pointer into the object.
        path: String,
        /// What was expected there.
        message: String,
    },
    /// The question has no answer now. No fault; for health Karmada records Unknown.
    Undecided(String),
    /// No module is loaded for the kind, or none that implements the operation.
    NoModule {
        /// Whether some module serves the kind at all.
        kind_is_served: bool,
    },
    /// The module does not implement the operation.
    Unsupported,
    /// The module gave up.
    Failed(String),
    /// The module crashed: a bug in it.
    Trapped {
        /// wasmtime's name for what happened.
        reason: String,
        /// The module's function in which it happened, where names were kept.
        function: Option<String>,
        /// The guest's call stack, innermost first.
        frames: Vec<String>,
    },
    /// The module ran too long.
    Deadline {
        /// What it was given, from the moment it started.
        limit: Duration,
        /// How long it ran until it was stopped, as a clock on the wall has it.
        ran: Duration,
    },
    /// The module wanted too much memory.
    Memory {
        /// The cap, in bytes.
        limit: usize,
        /// How large its memory would have become, in bytes.
        asked: usize,
    },
    /// The module called itself too deeply.
    Stack,
    /// The module answered something that would hurt Karmada or the object.
    Refused {
        /// JSON pointer into the answer, or the pointer that a patch touches; may be empty.
        path: String,
        /// What is not allowed there.
        message: String,
    },
}

impl Cause {
    /// The label in metrics.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::InvalidObject { .. } => "invalid-object",
            Self::Undecided(_) => "undecided",
            Self::NoModule { .. } => "no-module",
            Self::Unsupported => "unsupported",
            Self::Failed(_) => "failed",
            Self::Trapped { .. } => "trapped",
            Self::Deadline { .. } => "deadline",
            Self::Memory { .. } => "memory",
            Self::Stack => "stack",
            Self::Refused { .. } => "refused-answer",
        }
    }

    /// Whether the module itself is broken: it crashed, met a limit or lied.
    pub const fn is_module_fault(&self) -> bool {
        matches!(
            self,
            Self::Trapped { .. } | Self::Deadline { .. } | Self::Memory { .. } | Self::Stack | Self::Refused { .. }
        )
    }

    const fn code(&self) -> u16 {
        match self {
            Self::InvalidObject { .. } => 422,
            Self::Undecided(_) => 409,
            Self::NoModule { .. } | Self::Unsupported => 501,
            Self::Failed(_) | Self::Trapped { .. } | Self::Stack => 500,
            Self::Deadline { .. } => 504,
            Self::Memory { .. } => 507,
            Self::Refused { .. } => 502,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidObject { path, message } => at(f, path, message),
            Self::Undecided(reason) => write!(f, "undecided: {reason}"),
            Self::NoModule { kind_is_served: true } => f.write_str("no module implements this operation for this kind"),
            Self::NoModule { kind_is_served: false } => f.write_str("no module is loaded for this kind"),
            Self::Unsupported => f.write_str("the module does not implement this operation"),
            Self::Failed(message) => f.write_str(message),
            Self::Trapped {
                reason,
                function: Some(function),
                ..
            } => {
                write!(f, "trapped in {function} (bug in the module): {reason}")
            }
            Self::Trapped {
                reason, function: None, ..
            } => write!(f, "trapped (bug in the module): {reason}"),
            Self::Deadline { limit, ran } => write!(
                f,
                "ran longer than its deadline of {:?} (--call-timeout, or the rest of the caller's timeout): {:?}",
                in_millis(*limit),
                in_millis(*ran)
            ),
            Self::Memory { limit, asked } => {
                // Rounded up: what is refused is never shown as the limit itself.
                let tenths = asked.saturating_mul(10).div_ceil(1 << 20);
                write!(
                    f,
                    "wanted more memory than {} MiB (--max-memory): {}.{} MiB",
                    limit >> 20,
                    tenths / 10,
                    tenths % 10
                )
            }
            Self::Stack => f.write_str("stack overflow: it calls itself too deeply"),
            Self::Refused { path, message } => {
                f.write_str("refused answer: ")?;
                at(f, path, message)
            }
        }
    }
}

/// Without the digits below, which have no use.
fn in_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn at(f: &mut fmt::Formatter<'_>, path: &str, message: &str) -> fmt::Result {
    if path.is_empty() {
        f.write_str(message)
    } else {
        write!(f, "{path}: {message}")
    }
}

impl CallError {
    pub(crate) fn new(module: Option<&str>, call: &Call<'_>, cause: Cause) -> Self {
        let subject = Subject {
            module: module.map(str::to_owned),
            operation: call.operation,
            kind: call.kind.clone(),
            object: call.object_name(),
        };
        Self {
            subject: Box::new(subject),
            cause,
        }
    }

    /// The label in metrics.
    pub const fn label(&self) -> &'static str {
        self.cause.label()
    }

    /// Whether the call was stopped because its time was over.
    pub(crate) const fn is_expired(&self) -> bool {
        matches!(self.cause, Cause::Deadline { .. })
    }

    /// What Karmada gets.
    pub fn refusal(&self) -> Refusal {
        Refusal {
            code: self.cause.code(),
            message: self.to_string(),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::with_capacity(MAX_MESSAGE);
        let Subject {
            module,
            operation,
            kind,
            object,
        } = &*self.subject;
        if let Some(module) = module {
            write!(line, "{module} ")?;
        }
        write!(line, "{operation} {}", kind.kind)?;
        if !object.is_empty() {
            write!(line, " {object}")?;
        }
        write!(line, ": {}", self.cause)?;
        f.write_str(&one_line(line))
    }
}

impl std::error::Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(cause: Cause) -> CallError {
        let kind = Gvk::new("example.io", "v1", "Widget");
        let call = Call {
            namespace: Some("ns"),
            name: "a",
            ..Call::new(Operation::InterpretHealth, &kind, b"{}")
        };
        CallError::new(Some("widget-interpreter@0.1.0"), &call, cause)
    }

    #[test]
    fn names_module_question_object_and_place() {
        let cause = Cause::InvalidObject {
            path: "/spec/replicas".into(),
            message: "expected an integer, found \"two\"".into(),
        };
        assert_eq!(
            error(cause).to_string(),
            "widget-interpreter@0.1.0 InterpretHealth Widget ns/a: /spec/replicas: expected an integer, found \"two\""
        );
    }

    #[test]
    fn is_one_short_line_of_whole_characters() {
        let message = error(Cause::Failed(
            "first\nsecond \u{e9}\u{e9}".to_owned() + &"\u{1f980}".repeat(200),
        ))
        .to_string();
        assert!(message.len() <= MAX_MESSAGE, "{}", message.len());
        assert!(!message.contains('\n'));
        assert!(message.ends_with("\u{1f980}..."));
    }

    #[test]
    fn a_limit_is_named_with_what_was_used() {
        let deadline = Cause::Deadline {
            limit: Duration::from_millis(1500),
            ran: Duration::from_micros(1_504_321),
        };
        assert_eq!(
            deadline.to_string(),
            "ran longer than its deadline of 1.5s (--call-timeout, or the rest of the caller's timeout): 1.504s"
        );
        // One page of WebAssembly more than there may be.
        let memory = Cause::Memory {
            limit: 64 << 20,
            asked: (64 << 20) + (64 << 10),
        };
        assert_eq!(
            memory.to_string(),
            "wanted more memory than 64 MiB (--max-memory): 64.1 MiB"
        );
    }

    #[test]
    fn every_reason_has_its_own_label() {
        let trapped = Cause::Trapped {
            reason: "unreachable".into(),
            function: None,
            frames: Vec::new(),
        };
        let causes = [
            Cause::Undecided(String::new()),
            Cause::Unsupported,
            Cause::Failed("no such size".into()),
            trapped,
            Cause::Deadline {
                limit: Duration::from_secs(1),
                ran: Duration::from_secs(1),
            },
            Cause::Memory {
                limit: 64 << 20,
                asked: 65 << 20,
            },
            Cause::Stack,
            Cause::Refused {
                path: String::new(),
                message: String::new(),
            },
        ];
        let labels: std::collections::BTreeSet<_> = causes.iter().map(Cause::label).collect();
        assert_eq!(labels.len(), causes.len());
    }
}
