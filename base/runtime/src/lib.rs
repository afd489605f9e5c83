//! Run-time parts that all programs share.
//!
//! [`Backoff`] computes the pause before the next attempt, [`Chain`] prints an error with its
//! causes, [`shutdown`] turns signals into a cancellation, [`logging`] starts the log and
//! [`exit_code`] turns the result of a `main` into its exit code. [`parse`] reads the command line,
//! with the [`BuildInfo`] for `--version`, and writes manual pages and completions of it.
//!
//! Invariants:
//! - nothing here depends on the domain: no machine, agent or node;
//! - a pause with jitter is at least half of its step and never longer than it;
//! - the log goes to standard error alone, so that standard output stays free for results.

mod backoff;
mod build_info;
mod chain;
mod command_line;
mod exit;
pub mod logging;
mod manual;
pub mod shutdown;

pub use backoff::{Backoff, jittered};
pub use build_info::BuildInfo;
pub use chain::Chain;
pub use command_line::parse;
pub use exit::exit_code;
