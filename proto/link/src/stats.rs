//! The counters of a server: handshakes by outcome, calls by method and code.

use std::collections::BTreeMap;

use crate::handshake_counts::Handshake;
use crate::status::Code;

/// Calls of one method that ended with one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallCount {
    /// Path of the method; `unknown` for calls that ended before a method was admitted.
    pub method: &'static str,
    /// The status code.
    pub code: Code,
    /// Number of calls.
    pub count: u64,
}

/// The counters of a server since it was bound, and its open sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Number of handshakes by outcome.
    pub handshakes: Vec<(Handshake, u64)>,
    /// Handshakes in progress.
    pub handshakes_open: usize,
    /// Number of open sessions by the kind of caller.
    pub sessions: BTreeMap<&'static str, u64>,
    /// Ended calls. Combinations without a call are left out.
    pub calls: Vec<CallCount>,
}
