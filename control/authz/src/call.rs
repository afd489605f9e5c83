//! A call that the contract wants recorded, from its begin to its end.

use std::sync::atomic::{AtomicBool, Ordering};

/// What the audit trail says of a call before its end.
///
/// A [`Permit`](crate::Permit) that was given for a call carries it to the store, which writes it
/// into the entry of the change: there is no change without its record.
#[derive(Debug, Default)]
pub struct AuditedCall {
    /// Id of the call.
    pub id: String,
    /// When it came, milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Login of the caller, or SPIFFE id.
    pub user: String,
    /// Tenant that it is about; empty without one.
    pub tenant: String,
    /// Project that it is about.
    pub project: Option<String>,
    /// Path of the method.
    pub method: String,
    /// The request without secrets.
    pub body: Option<String>,
    /// The rule of a site policy that decided it, `policy/rule`.
    pub rule: Option<String>,
    /// Address of the caller.
    pub source_ip: String,
    /// Whether a change of it was recorded.
    pub recorded: Recorded,
}

/// Whether a call's record is in the state; once true it stays so.
#[derive(Debug, Default)]
pub struct Recorded(AtomicBool);

impl Recorded {
    /// A change was applied together with the record.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether one was.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
