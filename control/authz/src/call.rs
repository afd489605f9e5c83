//! The audit record of a call that the contract wants recorded.

use std::sync::atomic::{AtomicBool, Ordering};

/// The part of an audit record that is known before the call ends.
///
/// A [`Permit`](crate::Permit) carries it to the store, which writes it into the same log entry as
/// the change, so no change is applied without its record.
#[derive(Debug, Default)]
pub struct AuditedCall {
    /// Id of the call.
    pub id: String,
    /// Time of arrival, milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Login of the caller, or its SPIFFE id.
    pub user: String,
    /// Tenant of the call. Empty means that it concerns no tenant.
    pub tenant: String,
    /// Project of the call. `None` means that it concerns no project.
    pub project: Option<String>,
    /// Path of the method.
    pub method: String,
    /// The request with its secrets removed, as JSON.
    pub body: Option<String>,
    /// The site policy rule that decided the call, `policy/rule`. `None` means the table decided.
    pub rule: Option<String>,
    /// IP address of the caller.
    pub source_ip: String,
    /// Set when a change of this call was applied together with the record.
    pub recorded: Recorded,
}

/// A flag that is set once the call's record is in the state. It is never reset.
#[derive(Debug, Default)]
pub struct Recorded(AtomicBool);

impl Recorded {
    /// Marks the record as written.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// `true` if the record is in the state.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
