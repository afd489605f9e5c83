//! Failures of the driver.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::delta::Block;
use super::model::ConfigError;
use super::object::FrrObject;

/// A failure to observe or change FRR.
#[derive(Debug, Error)]
pub enum FrrError {
    /// vtysh cannot be run.
    #[error("cannot run {command}")]
    Run {
        /// The program.
        command: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// vtysh did not end in time, and was killed. What it was told may be done in part.
    #[error("vtysh did not answer within {0:?}")]
    Timeout(Duration),
    /// vtysh printed more than the limit, in bytes, and was killed.
    #[error("vtysh printed more than {0} bytes")]
    TooMuchOutput(usize),
    /// A daemon that we need does not run, or vtysh does not reach it. To observe without it
    /// would look as if somebody had deleted its configuration.
    #[error("{0} does not answer")]
    NoDaemon(&'static str),
    /// FRR refused a command; the steps before it are done, those after it are not.
    #[error("FRR refused to change {object}: {reason}")]
    Refused {
        /// The object of the step.
        object: FrrObject,
        /// The refused line.
        line: String,
        /// FRR's words, at most 300 characters.
        reason: String,
    },
    /// FRR refused a command outside of configuration.
    #[error("FRR refused {line:?}: {reason}")]
    Command {
        /// The command.
        line: String,
        /// FRR's words, at most 300 characters.
        reason: String,
    },
    /// FRR accepted every command, and its running configuration says otherwise: these steps
    /// would still be necessary.
    #[error("FRR accepted the change and did not make it: {}", list(.0))]
    NotInPlace(Vec<Block>),
    /// The desired configuration contradicts itself; nothing was changed.
    #[error("the desired configuration contradicts itself")]
    Invalid(#[from] ConfigError),
    /// FRR's JSON is not as expected.
    #[error("cannot read {command:?}")]
    Json {
        /// The command that printed it.
        command: &'static str,
        /// The position and kind of the error.
        #[source]
        source: serde_json::Error,
    },
}

/// Most objects that an error names.
const OBJECTS_MAX: usize = 5;

fn list(steps: &[Block]) -> String {
    let mut names: Vec<String> = steps.iter().map(|step| step.object.to_string()).collect();
    names.dedup();
    let more = names.len().saturating_sub(OBJECTS_MAX);
    names.truncate(OBJECTS_MAX);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}
