//! Metrics of calls.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Instant;

use base_telemetry::metrics::DURATIONS;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use proto_public::Method;
use tonic::Code;

use super::call_labels::{Called, EndedCall, Refused};

/// Counters of calls. Cheap to clone (`Arc`).
#[derive(Clone, Debug)]
pub struct CallStats(Arc<Stats>);

#[derive(Debug)]
struct Stats {
    ended: Family<EndedCall, Counter>,
    durations: Family<Called, Histogram, fn() -> Histogram>,
    refused: Family<Refused, Counter>,
    open: Gauge<i64, AtomicI64>,
}

impl Default for CallStats {
    fn default() -> Self {
        Self(Arc::new(Stats {
            ended: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(DURATIONS)),
            refused: Family::default(),
            open: Gauge::default(),
        }))
    }
}

/// The timer of a running call. A call that is dropped before [`CallTimer::end`] counts as
/// cancelled.
#[derive(Debug)]
pub struct CallTimer {
    stats: CallStats,
    method: &'static str,
    began: Instant,
    code: Code,
}

impl CallStats {
    /// Adds the counters to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let stats = &self.0;
        registry.register(
            "metalmesh_api_calls",
            "Calls of the public API that ended, by method and status code of gRPC; streams count \
             when they begin",
            stats.ended.clone(),
        );
        registry.register_with_unit(
            "metalmesh_api_call_duration",
            "How long calls of the public API took, by method",
            Unit::Seconds,
            stats.durations.clone(),
        );
        registry.register(
            "metalmesh_api_refusals",
            "Calls of the public API that were refused for who called, by reason",
            stats.refused.clone(),
        );
        registry.register(
            "metalmesh_api_calls_open",
            "Calls of the public API that are on their way",
            stats.open.clone(),
        );
    }

    /// Starts the timer of a call.
    pub fn begin(&self, method: &'static Method) -> CallTimer {
        self.0.open.inc();
        CallTimer {
            stats: self.clone(),
            method: &method.path,
            began: Instant::now(),
            code: Code::Cancelled,
        }
    }

    /// Counts a call that was refused because of its caller.
    pub fn refused(&self, reason: &'static str) {
        self.0.refused.get_or_create(&Refused { reason }).inc();
    }
}

impl CallTimer {
    /// Records the status that the call ended with.
    pub fn end(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for CallTimer {
    fn drop(&mut self) {
        let (stats, method) = (&self.stats.0, self.method);
        stats.open.dec();
        let code = name(self.code);
        stats.ended.get_or_create(&EndedCall { method, code }).inc();
        let took = self.began.elapsed().as_secs_f64();
        stats
            .durations
            .get_or_create(&Called { method })
            .observe(took);
    }
}

/// The name of a code, as in the specification of gRPC.
const fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}
