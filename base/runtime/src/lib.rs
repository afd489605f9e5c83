//! Run-time parts that all programs share.
//!
//! [`Backoff`] says how long to wait before the next attempt, [`Chain`] prints an error with its
//! causes, [`shutdown`] turns signals into a cancellation, [`logging`] starts the log and
//! [`exit_code`] ends a `main`.
//!
//! Invariants: no domain: nothing here knows a machine, an agent or a node. The numbers of a
//! backoff are named constants of its caller.

mod backoff;
mod chain;
mod exit;
pub mod logging;
pub mod shutdown;

pub use backoff::{Backoff, jittered};
pub use chain::Chain;
pub use exit::exit_code;
