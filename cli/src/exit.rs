//! Exit codes and the one error type that a command ends with.

/// How a command ended. The numbers are documented and scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done.
    Success = 0,
    /// A test or a check failed.
    Failed = 1,
    /// Invalid arguments or input.
    Usage = 2,
    /// A module was refused, or trapped.
    Module = 3,
    /// A cluster, the network or the file system failed.
    Environment = 4,
    /// Interrupted (SIGINT).
    Interrupted = 130,
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> i32 {
        self as i32
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        // Every variant fits: the enum is the list.
        Self::from(exit as u8)
    }
}

/// Why a command could not do what was asked. Each message names the thing, the place and the fix.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A test or a check failed, and the message is all there is to say.
    #[error("{0}")]
    Failed(String),
    /// Invalid arguments or input.
    #[error("{0}")]
    Usage(String),
    /// A module was refused, or trapped.
    #[error("{0}")]
    Module(String),
    /// A cluster, the network or the file system failed.
    #[error("{0}")]
    Environment(String),
    /// The reader of the output has exited (`popcell ... | head`): there is nothing to report.
    #[error("the output was closed")]
    Closed,
}

impl Failure {
    /// The exit code that belongs to the failure.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Failed(_) => Exit::Failed,
            Self::Usage(_) => Exit::Usage,
            Self::Module(_) => Exit::Module,
            Self::Environment(_) | Self::Closed => Exit::Environment,
        }
    }

    /// A module that was refused, or that is not there.
    pub fn of_load(error: &popcell_engine::LoadError) -> Self {
        if error.refuses_module() {
            Self::Module(error.to_string())
        } else {
            Self::Environment(error.to_string())
        }
    }

    /// A failure to read or write a file.
    pub fn file(action: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Environment(format!("failed to {action} {}: {error}", path.display()))
    }
}

/// Output that cannot be written.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        Self::Environment(format!("failed to write the output: {error}"))
    }
}

/// What every command returns.
pub type Outcome = Result<Exit, Failure>;
