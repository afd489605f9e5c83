//! Audit records as the contract has them: two halves of each call.

use std::sync::Arc;

use control_convert::audit::trace;
use control_convert::{from_time, is, is_choice, is_opt, time};
use control_gate::audit::belongs_to;
use control_state::{AuditEntry, AuditPhase as Kept, StateError, Tables};
use proto_public::api::v2::{AuditPhase, AuditQuery, AuditTrace};
use proto_types::{TenantId, Timestamp};

/// Default number of records in an answer.
const LIMIT_DEFAULT: usize = 100;
/// Most records in an answer. A larger limit in the query is lowered to it.
const LIMIT_MAX: usize = 1000;

/// One phase of a call. The contract shows request and response as two records; the store has one
/// entry for both.
#[derive(Debug, Clone, Copy)]
struct Half<'a> {
    entry: &'a AuditEntry,
    phase: AuditPhase,
}

impl<'a> Half<'a> {
    /// The phases that an entry stands for, in order.
    fn of(entry: &'a AuditEntry) -> impl DoubleEndedIterator<Item = Self> {
        let phases: &[AuditPhase] = match entry.phase {
            Kept::Request => &[AuditPhase::Request],
            Kept::Response => &[AuditPhase::Response],
            Kept::Call => &[AuditPhase::Request, AuditPhase::Response],
            // Stands for records that were dropped, not for a call.
            Kept::Dropped => &[],
        };
        phases.iter().map(move |phase| Self {
            entry,
            phase: *phase,
        })
    }

    fn is_end_of_call(self) -> bool {
        self.entry.phase == Kept::Call && self.phase == AuditPhase::Response
    }

    fn time(self) -> Timestamp {
        let ended = self.entry.ended.filter(|_| self.is_end_of_call());
        ended.unwrap_or(self.entry.time)
    }

    fn body(self) -> Option<&'a str> {
        let body = self.entry.body.as_deref();
        body.filter(|_| !self.is_end_of_call())
    }

    fn code(self) -> Option<i32> {
        self.entry
            .result_code
            .filter(|_| self.phase == AuditPhase::Response)
    }

    fn trace(self) -> AuditTrace {
        AuditTrace {
            body: self.body().map(str::to_owned),
            result_code: self.code(),
            phase: self.phase.into(),
            timestamp: time(self.time()),
            ..trace(self.entry)
        }
    }

    fn fits(self, query: Option<&AuditQuery>) -> bool {
        let Some(query) = query else { return true };
        let Self { entry, phase } = self;
        let (after, before) = (query.from.as_ref(), query.to.as_ref());
        let body_has = |text: &String| self.body().is_some_and(|body| body.contains(text));
        is(query.uuid.as_ref(), &entry.id)
            && after.is_none_or(|from| self.time() >= from_time(from))
            && before.is_none_or(|to| self.time() <= from_time(to))
            && is(query.user.as_ref(), &entry.user)
            && is_opt(query.project.as_ref(), entry.project.as_ref())
            && is(query.method.as_ref(), &entry.method)
            && is(query.source_ip.as_ref(), &entry.source_ip)
            && query
                .result_code
                .is_none_or(|code| self.code() == Some(code))
            && query.body.as_ref().is_none_or(body_has)
            && is_choice(query.phase, phase.into())
    }
}

/// One phase of a call, as a row of a list.
#[derive(Debug)]
pub(crate) struct TraceRow {
    entry: Arc<AuditEntry>,
    phase: AuditPhase,
}

impl TraceRow {
    /// The message for the wire.
    pub(crate) fn trace(&self) -> AuditTrace {
        let half = Half {
            entry: &self.entry,
            phase: self.phase,
        };
        half.trace()
    }
}

/// The newest record with this id and phase. `tenant` bounds it to records of one tenant.
///
/// # Errors
/// `not_found`, for another tenant's record too.
pub(crate) fn find(
    tables: &Tables,
    id: &str,
    phase: Option<i32>,
    tenant: Option<&TenantId>,
) -> Result<AuditTrace, StateError> {
    let phase = phase.filter(|phase| *phase != AuditPhase::Unspecified as i32);
    let phase = phase.unwrap_or(AuditPhase::Request as i32);
    let half = tables
        .all::<AuditEntry>()
        .rev()
        .filter(|entry| tenant.is_none_or(|tenant| belongs_to(entry, tables, tenant)))
        .filter(|entry| entry.id == id)
        .flat_map(|entry| Half::of(entry).rev())
        .find(|half| i32::from(half.phase) == phase);
    half.map(Half::trace)
        .ok_or_else(|| StateError::not_found("audit record", id))
}

/// The newest records that match the query, oldest first. `tenant` bounds it to records of one
/// tenant.
pub(crate) fn list(
    tables: &Tables,
    query: Option<&AuditQuery>,
    tenant: Option<&TenantId>,
) -> Vec<TraceRow> {
    let limit = query
        .and_then(|query| query.limit)
        .and_then(|limit| usize::try_from(limit).ok())
        .map_or(LIMIT_DEFAULT, |limit| limit.min(LIMIT_MAX));
    let row = |entry: &Arc<AuditEntry>, half: Half<'_>| TraceRow {
        entry: Arc::clone(entry),
        phase: half.phase,
    };
    let mut found: Vec<TraceRow> = tables
        .all::<AuditEntry>()
        .rev()
        .filter(|entry| tenant.is_none_or(|tenant| belongs_to(entry, tables, tenant)))
        .flat_map(|entry| Half::of(entry).rev().map(move |half| (entry, half)))
        .filter(|(_, half)| half.fits(query))
        .take(limit)
        .map(|(entry, half)| row(entry, half))
        .collect();
    found.reverse();
    found
}
