//! Run-time parts that all programs share.
//!
//! [`Backoff`] computes the pause before the next attempt, [`Chain`] prints an error with its
//! causes, [`shutdown`] turns signals into a cancellation, [`logging`] starts the log and
//! [`exit_code`] turns the result of a `main` into its exit code.
//!
//! Invariants:
//! - nothing here depends on the domain: no machine, agent or node;
//! - a pause with jitter is at least half of its step and never longer than it;
//! - the log goes to standard error alone, so that standard output stays free for results.

mod backoff;
mod chain;
mod exit;
pub mod logging;
pub mod shutdown;

pub use backoff::{Backoff, jittered};
pub use chain::Chain;
pub use exit::exit_code;
