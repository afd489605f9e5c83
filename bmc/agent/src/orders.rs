//! Executes orders: one at a time per machine, in control's sequence, each until its deadline.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use agents_kit::Steps;
use base_runtime::{Backoff, Chain};
use base_telemetry::traces::{Span, SpanKind, Spans, TraceContext, now_ns};
use futures::FutureExt;
use proto_types::MachineId;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::bindings::Bindings;
use crate::config::Target;
use crate::driver::{Action, DriveError, Driver, Power};
use crate::fleet::Fleet;
use crate::journal::{End, Journal};

/// Concurrent orders. Further ones wait. An order costs little more than waiting for its BMC, so the
/// bound is high enough that two racks of hanging BMCs do not block the rest of the partition.
pub const RUNNING_MAX: usize = 128;
/// Time limit of an order, whatever its deadline.
const ORDER_TIME_MAX: Duration = Duration::from_secs(600);
/// Reserve before an order's deadline for reporting its end. At the deadline control gives up and
/// would not learn the reason.
const TELL_TIME: Duration = Duration::from_secs(5);
/// Interval of searching new readings for a machine's BMC.
const FIND_AGAIN: Duration = Duration::from_millis(250);
/// Backoff between attempts to reach a BMC.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(8));
/// The end of a reason why a reset or power cycle failed after it was sent, perhaps.
const UNSURE: &str = "it may have been carried out";
/// The end of an order that control withdrew before its next attempt.
const WITHDRAWN: &str = "control withdrew the order";
/// The end of an order whose task panicked.
const PANICKED: &str = "the agent failed in the middle of this order; it may have been carried out";

pub use crate::bindings::Binding;

/// An order of control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub id: String,
    pub machine: MachineId,
    pub action: Action,
    /// Address of the machine's BMC as control believes. `None` means that it knows none.
    pub bmc: Option<IpAddr>,
    /// Time at which control gives up, by the agent's monotonic clock.
    pub deadline: Instant,
    /// The trace that it belongs to.
    pub trace: Option<TraceContext>,
    /// The machine's binding to a claim when it was given. `None` comes from a control that tells
    /// none.
    pub binding: Option<Binding>,
}

/// Control's newest list of orders, and the running ones.
#[derive(Debug, Default)]
struct Book {
    wanted: Vec<Order>,
    /// By machine: the order, and what is cancelled once control withdraws it.
    running: BTreeMap<MachineId, (String, CancellationToken)>,
}

impl Book {
    /// Takes a list. Running orders that are not in it are withdrawn: their machine may have been given
    /// to another tenant.
    fn take(&mut self, wanted: Vec<Order>) {
        for (id, withdrawn) in self.running.values() {
            if !wanted.iter().any(|order| order.id == *id) {
                withdrawn.cancel();
            }
        }
        self.wanted = wanted;
    }

    /// Cancelled once control withdraws the running order of a machine.
    fn withdrawal(&self, machine: MachineId) -> CancellationToken {
        let running = self.running.get(&machine);
        running.map_or_else(CancellationToken::new, |(_, withdrawn)| withdrawn.clone())
    }

    /// The next order that may begin: the first one of a machine without a running order.
    fn next(&mut self, knows: impl Fn(&str) -> bool) -> Option<Order> {
        if self.running.len() >= RUNNING_MAX {
            return None;
        }
        let at = self
            .wanted
            .iter()
            .position(|order| !self.running.contains_key(&order.machine) && !knows(&order.id))?;
        let order = self.wanted.remove(at);
        let running = (order.id.clone(), CancellationToken::new());
        self.running.insert(order.machine, running);
        Some(order)
    }
}

/// The dependencies of carrying out an order.
#[derive(Clone)]
pub(crate) struct Crew {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) bindings: Arc<Bindings>,
    pub(crate) steps: Steps,
    pub(crate) spans: Spans,
}

/// Executes orders until stopped. Running orders are aborted then; the journal has their start.
pub(crate) async fn run_orders(
    crew: Crew,
    mut wanted: watch::Receiver<Vec<Order>>,
    stop: CancellationToken,
) {
    let mut book = Book::default();
    let mut tasks = JoinSet::new();
    loop {
        while let Some(order) = book.next(|id| crew.journal.knows(id)) {
            if let Err(reason) = begin(&crew, &order).await {
                // It ends here, because control lists it once and the list's entry is used up.
                book.running.remove(&order.machine);
                tracing::warn!(
                    order = order.id, machine = %order.machine, action = ?order.action, reason,
                    "order not begun"
                );
                end_order(&crew.journal, &order.id, End::failed(reason)).await;
                continue;
            }
            let (crew, withdrawn) = (crew.clone(), book.withdrawal(order.machine));
            tasks.spawn(async move {
                // A panic must not take the order along: its machine would count as busy for ever.
                let end = AssertUnwindSafe(carry_out(&crew, &order, &withdrawn)).catch_unwind();
                let end = end.await.unwrap_or_else(|_| End::failed(PANICKED));
                (order, end)
            });
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                book.take(wanted.borrow_and_update().clone());
                raise_bindings(&crew.bindings, &book.wanted).await;
                for order in &book.wanted {
                    crew.journal.tell_again(&order.id);
                }
            }
            Some(done) = tasks.join_next() => {
                let Ok((order, end)) = done else { continue };
                book.running.remove(&order.machine);
                end_order(&crew.journal, &order.id, end).await;
            }
        }
    }
}

/// Raises the bindings to those of a whole list before one of its orders begins. Where this fails, the
/// beginning of each order tries it again.
async fn raise_bindings(bindings: &Bindings, wanted: &[Order]) {
    let told = wanted.iter();
    let told = told.filter_map(|order| Some((order.machine, order.binding?)));
    let told: Vec<_> = told.collect();
    if let Err(error) = bindings.raise(&told).await {
        tracing::error!(error = %Chain(&error), "bindings not written");
    }
}

/// Admits an order and records its start. The error is the reason why it must not begin: without its
/// start on disk, a restart would execute it again.
async fn begin(crew: &Crew, order: &Order) -> Result<(), String> {
    crew.bindings.admit(order.machine, order.binding).await?;
    let is_idempotent = order.action.is_idempotent();
    let begun = crew.journal.begin(&order.id, is_idempotent).await;
    begun.map_err(|error| format!("not started: {}", Chain(&error)))
}

/// Records the end of an order. It is reported even if it cannot be written.
async fn end_order(journal: &Journal, id: &str, end: End) {
    if let Err(error) = journal.end(id, end).await {
        tracing::error!(order = id, %error, "journal not written");
    }
}

/// Executes one order, from finding the BMC to reading the power state afterwards.
async fn carry_out(crew: &Crew, order: &Order, withdrawn: &CancellationToken) -> End {
    let (began, began_ns) = (Instant::now(), now_ns());
    let Some(until) = time_to_act(order.deadline, began).map(|left| began + left) else {
        return End::failed("expired before it began");
    };
    let found = tokio::select! {
        found = find(&crew.fleet, order.machine, order.bmc, until) => Some(found),
        () = withdrawn.cancelled() => None,
    };
    let end = match found {
        None => End::failed(WITHDRAWN),
        Some(Some(target)) => match attempt(crew, order, &target, until, withdrawn).await {
            Ok(power) => {
                crew.fleet.set_power(target.address, power);
                End::ok(order.action, power)
            }
            Err(reason) => End::failed(reason),
        },
        Some(None) => End::failed(crew.fleet.explain(order.machine, order.bmc)),
    };
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let outcome = if end.error.is_empty() {
        "done"
    } else {
        "failed"
    };
    crew.steps.count(order.action.step(), outcome);
    told(crew, order, &end, began_ns);
    if end.error.is_empty() {
        tracing::info!(
            order = order.id, machine = %order.machine, action = ?order.action,
            power = end.power, took_ms, "order carried out"
        );
    } else {
        tracing::warn!(
            order = order.id, machine = %order.machine, action = ?order.action,
            error = end.error, took_ms, "order failed"
        );
    }
    end
}

/// Records the outcome as a span of the trace that ordered it.
fn told(crew: &Crew, order: &Order, end: &End, began_ns: u64) {
    let Some(trace) = order.trace else { return };
    crew.spans.put(Span {
        context: trace.child(),
        parent: Some(trace.span),
        name: order.action.step().into(),
        kind: SpanKind::Consumer,
        began_ns,
        ended_ns: now_ns(),
        attributes: vec![
            ("metalmesh.order", order.id.clone()),
            ("metalmesh.machine", order.machine.to_string()),
        ],
        events: Vec::new(),
        error: (!end.error.is_empty()).then(|| end.error.clone()),
    });
}

/// Time left for an order's attempts. `None` means that it is over.
fn time_to_act(deadline: Instant, now: Instant) -> Option<Duration> {
    let left = deadline.checked_duration_since(now)?;
    let left = left.checked_sub(TELL_TIME)?;
    (!left.is_zero()).then_some(left.min(ORDER_TIME_MAX))
}

/// Finds the machine's BMC. If none is known, all BMCs are read once. A round over a thousand BMCs
/// takes minutes if some of them hang, so the wait ends as soon as the right one was read.
async fn find(
    fleet: &Fleet,
    machine: MachineId,
    bmc: Option<IpAddr>,
    until: Instant,
) -> Option<Target> {
    let mut looked = pin!(fleet.looked.notified());
    if let Some(target) = fleet.find(machine, bmc) {
        return Some(target);
    }
    fleet.look.notify_one();
    loop {
        let again = until.min(Instant::now() + FIND_AGAIN);
        // A running round may have passed the BMC before it appeared. Its end is awaited all the
        // same, but no second round: the order's time is limited.
        let is_over = timeout_at(again, &mut looked).await.is_ok() || again == until;
        let found = fleet.find(machine, bmc);
        if found.is_some() || is_over {
            return found;
        }
    }
}

/// Retries until the operation is done or refused, the time is over or control withdraws the order. An
/// attempt that was begun is not broken off by that: the next order of the machine would overtake it.
async fn attempt(
    crew: &Crew,
    order: &Order,
    target: &Target,
    until: Instant,
    withdrawn: &CancellationToken,
) -> Result<Power, String> {
    let mut failures = 0_u32;
    let mut last = format!("BMC {}: no answer before the deadline", target.address);
    loop {
        if withdrawn.is_cancelled() {
            return Err(WITHDRAWN.into());
        }
        let Ok(result) = timeout_at(until, crew.driver.act(target, order.action, until)).await
        else {
            return Err(if order.action.is_idempotent() {
                last
            } else {
                format!("{last}; {UNSURE}")
            });
        };
        last = match result {
            Ok(power) => return Ok(power),
            Err(DriveError::Refused(reason)) => return Err(reason),
            Err(DriveError::Unsure(reason)) if !order.action.is_idempotent() => {
                return Err(format!("{reason}; {UNSURE}"));
            }
            Err(DriveError::Unreached(reason) | DriveError::Unsure(reason)) => reason,
        };
        tracing::debug!(order = order.id, reason = last, "attempt failed");
        let pause = BACKOFF.pause(failures);
        failures = failures.saturating_add(1);
        if Instant::now() + pause >= until {
            return Err(last);
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = withdrawn.cancelled() => {}
        }
    }
}

#[cfg(test)]
#[path = "orders_tests.rs"]
mod tests;
