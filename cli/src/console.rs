//! Where a command reads and writes, so that tests can stand in for the terminal.

use std::io::{Read, Write};

/// Standard streams of one run.
pub struct Console {
    /// Results: what scripts read.
    pub out: Box<dyn Write>,
    /// Progress and remarks: what people read.
    pub err: Box<dyn Write>,
    /// Read by `-`.
    pub stdin: Box<dyn Read>,
}

impl Console {
    /// The streams of this process.
    pub fn standard() -> Self {
        Self {
            out: Box::new(std::io::stdout()),
            err: Box::new(std::io::stderr()),
            stdin: Box::new(std::io::stdin()),
        }
    }
}
