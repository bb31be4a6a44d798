//! An error for the user: one line that states it, and a hint that helps.

use std::fmt::Display;
use std::process::ExitCode;

/// An error with its hint. Printed once, by `main`.
#[derive(Debug)]
pub struct Failure {
    message: String,
    hints: Vec<String>,
    status: u8,
}

/// A subcommand's result: the exit status, or why it failed.
pub type Outcome = Result<ExitCode, Failure>;

impl Failure {
    /// A failure that ends with exit status 1.
    pub fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), hints: Vec::new(), status: 1 }
    }

    /// Adds a line that tells what to do about it.
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Starts with the file, or whatever else it is of.
    pub fn of(self, what: impl Display) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// Ends with another exit status, which should not be 0.
    pub fn status(mut self, status: u8) -> Self {
        self.status = status;
        self
    }

    /// Prints it to standard error.
    pub fn print(self) -> ExitCode {
        tell!("error: {}", self.message);
        for hint in &self.hints {
            tell!("hint: {hint}");
        }
        ExitCode::from(self.status)
    }
}

/// The error without its hints.
impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Adds what was being done, usually with which file, to an error.
pub trait Context<T> {
    /// Turns an error into a failure that starts with `what`.
    fn context(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(format_args!("{what}: {error}")))
    }
}
