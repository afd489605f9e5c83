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

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    #[test]
    fn metric_names_do_not_change() {
        let names: Vec<&str> = Handshake::VARIANTS
            .iter()
            .map(|handshake| handshake.as_str())
            .collect();
        let expected = [
            "done", "failed", "late", "stranger", "too_many", "busy", "retry",
        ];
        assert_eq!(names, expected);
        let codes: Vec<&str> = (0..=16).map(|code| Code::from_u8(code).as_str()).collect();
        let expected = [
            "ok",
            "cancelled",
            "unknown",
            "invalid_argument",
            "deadline_exceeded",
            "not_found",
            "already_exists",
            "permission_denied",
            "resource_exhausted",
            "failed_precondition",
            "aborted",
            "out_of_range",
            "unimplemented",
            "internal",
            "unavailable",
            "data_loss",
            "unauthenticated",
        ];
        assert_eq!(codes, expected);
    }
}
