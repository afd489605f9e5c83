//! The rate limit of each identity, and the largest request of each method.
//!
//! A machine is hostile as soon as it runs something else than hammer: its calls must not fill the
//! log. A caller over its rate gets a transient error. Agents repeat the call after a pause, so
//! that no event of a spool is lost.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use proto_bounds::{Buckets, Rate, network};
use proto_identity::{AgentRole, Subject};
use proto_link::{CallFuture, LinkStatus, MethodSpec, Peer, Responder, Service};
use proto_mesh::{
    bmc_service, boot_service, firewall_service, machine_service, switch_service, update_service,
};
use tokio::time::Instant;

/// Most identities and networks whose calls are counted at the same time; more than there can be
/// sessions. Beyond it
/// callers that pause are forgotten.
const CALLERS_MAX: usize = 50_000;
/// Rate of one machine: hammer makes some twenty calls from its start to the handover.
const MACHINE: Rate = per_minute(240, Duration::from_secs(15));
/// Rate of one switch, which gathers its changes into one report.
const SWITCH: Rate = per_minute(1_200, Duration::from_secs(15));
/// Rate of an agent that speaks for a partition: a hall that is switched on at once causes some
/// hundred calls in a second.
const PARTITION: Rate = per_minute(18_000, Duration::from_secs(20));
/// Rate of all callers without a certificate behind one network: a hall may join at once.
const STRANGERS: Rate = per_minute(12_000, Duration::from_secs(20));
/// Rate of registrations of one identity, which are large: one for each boot, and some after a
/// broken session.
const REGISTRATIONS: Rate = per_minute(12, Duration::from_secs(60));

/// Bytes of reports of one switch, in units of [`REPORT_UNIT`]: 8 MiB a minute, and as much at once.
/// A leaf with 512 ports reports all of them in some 150 KiB. Each report may become an entry of
/// the log of every control node, so their number alone does not bound what one switch writes.
const REPORT_BYTES: Rate = per_minute(8 * 1024, Duration::from_secs(60));
/// Bytes of reports of one firewall, in the same units: 512 KiB a minute, and as much at once. An
/// honest one has some KiB for each change of its rules, and sends the newest again when it is
/// refused; a tenant with root on it may write others.
const FIREWALL_REPORT_BYTES: Rate = per_minute(512, Duration::from_secs(60));
/// Bytes of reports of one agent about its program, in the same units: 64 KiB a minute, and as much at
/// once. An honest one has less than a KiB for each phase of an update.
const PROGRAM_REPORT_BYTES: Rate = per_minute(64, Duration::from_secs(60));
/// Unit in which the bytes of reports are counted. A report counts as one at least.
const REPORT_UNIT: usize = 1024;

/// Largest request, bytes, of methods that `LENGTHS` does not name. A longer one is refused.
const LEN_MAX: usize = 64 * 1024;
/// Largest request, bytes, of methods that need more or less than `LEN_MAX`.
static LENGTHS: [(&MethodSpec, usize); 10] = [
    (&machine_service::EVENT, 8 * 1024),
    (&machine_service::REGISTER, 256 * 1024),
    (&machine_service::WIPE_DONE, 256 * 1024),
    (&switch_service::REGISTER, 512 * 1024),
    (&switch_service::REPORT, 1024 * 1024),
    (&bmc_service::REPORT, 1024 * 1024),
    (&boot_service::REPORT_LEASES, 1024 * 1024),
    (&firewall_service::REPORT_STATISTICS, 768 * 1024),
    (&firewall_service::REPORT_CANDIDATE, 256 * 1024),
    (&update_service::REPORT, 16 * 1024),
];

const fn per_minute(per_minute: u32, burst: Duration) -> Rate {
    Rate {
        per_minute,
        burst_ms: burst.as_secs() * 1000,
    }
}

/// A bucket of the rate limit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum CallBucket {
    Identity(String),
    Registrations(String),
    ReportBytes(String),
    Network(IpAddr),
}

/// Counts the calls of all identities on this node.
#[derive(Debug)]
pub(crate) struct CallRates {
    /// Start of the monotonic clock that the buckets are filled by.
    began: Instant,
    buckets: Buckets<CallBucket>,
}

impl CallRates {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            buckets: Buckets::new(CALLERS_MAX),
        })
    }

    /// Admits a call.
    ///
    /// # Errors
    /// `invalid_argument` for a request that is too long, `resource_exhausted` beyond the rate.
    fn admit(&self, method: &MethodSpec, peer: &Peer, len: usize) -> Result<(), LinkStatus> {
        let len_max = LENGTHS
            .iter()
            .find(|(spec, _)| spec.path == method.path)
            .map_or(LEN_MAX, |(_, len_max)| *len_max);
        if len > len_max {
            let path = method.path;
            return Err(LinkStatus::invalid_argument(format!(
                "the request of {path} has {len} bytes, and may have {len_max}; send less at once"
            )));
        }
        let Some(id) = peer.id() else {
            let caller = CallBucket::Network(network(peer.remote().ip()));
            return self.count(caller, STRANGERS);
        };
        let name = id.to_string();
        let registers = [
            machine_service::REGISTER.path,
            switch_service::REGISTER.path,
        ];
        // A registration counts twice: among the registrations, and among all calls.
        if registers.contains(&method.path) {
            self.count(CallBucket::Registrations(name.clone()), REGISTRATIONS)?;
        }
        if let Some(rate) = report_bytes(method) {
            let units = u32::try_from(len.div_ceil(REPORT_UNIT)).unwrap_or(u32::MAX);
            let bytes = CallBucket::ReportBytes(name.clone());
            self.count_many(bytes, rate, units.max(1), "bytes in reports")?;
        }
        self.count(CallBucket::Identity(name), rate(id.subject()))
    }

    fn count(&self, caller: CallBucket, rate: Rate) -> Result<(), LinkStatus> {
        self.count_many(caller, rate, 1, "calls")
    }

    fn count_many(
        &self,
        caller: CallBucket,
        rate: Rate,
        events: u32,
        what: &str,
    ) -> Result<(), LinkStatus> {
        let now_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let counted = self.buckets.count_many(caller, rate, events, now_us);
        counted.map_err(|wait_ms| {
            LinkStatus::resource_exhausted(format!(
                "too many {what} of this identity: wait for {wait_ms} ms, then call again"
            ))
        })
    }
}

/// Bound of the bytes in reports that become entries of the log. `None` for other methods.
fn report_bytes(method: &MethodSpec) -> Option<Rate> {
    let bounds = [
        (switch_service::REPORT.path, REPORT_BYTES),
        (firewall_service::REPORT.path, FIREWALL_REPORT_BYTES),
        (update_service::REPORT.path, PROGRAM_REPORT_BYTES),
    ];
    let mut bounds = bounds.into_iter();
    let found = bounds.find(|(path, _)| *path == method.path);
    found.map(|(_, rate)| rate)
}

fn rate(subject: &Subject) -> Rate {
    match subject {
        Subject::Machine { .. } | Subject::ProjectMachine { .. } => MACHINE,
        Subject::Agent {
            role: AgentRole::Bmc | AgentRole::Pixie,
            ..
        } => PARTITION,
        _ => SWITCH,
    }
}

/// A service behind the rate limit and the largest sizes of requests.
pub(crate) struct RateLimitedService<S> {
    service: S,
    rates: Arc<CallRates>,
}

impl<S> RateLimitedService<S> {
    pub(crate) fn new(service: S, rates: &Arc<CallRates>) -> Self {
        let rates = Arc::clone(rates);
        Self { service, rates }
    }
}

impl<S: Service> Service for RateLimitedService<S> {
    fn methods(&self) -> &'static [&'static MethodSpec] {
        self.service.methods()
    }

    fn call<'a>(
        &'a self,
        method: &'static MethodSpec,
        peer: &'a Peer,
        request: bytes::Bytes,
        out: &'a mut Responder,
    ) -> CallFuture<'a> {
        match self.rates.admit(method, peer, request.len()) {
            Ok(()) => self.service.call(method, peer, request, out),
            Err(status) => Box::pin(std::future::ready(Err(status))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proto_link::{Code, PeerIdentity};
    use proto_mesh::enrol_service;

    use super::*;

    const UUID: &str = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";

    fn peer(id: Option<&str>, address: &str) -> Peer {
        let identity = id.map(|id| PeerIdentity {
            id: id.parse().unwrap(),
            serial: "01".into(),
            fingerprint: String::new(),
            not_before_ms: 0,
            not_after_ms: 0,
        });
        Peer::new(identity, format!("{address}:1").parse().unwrap())
    }

    /// How many calls are let in at once.
    fn burst(rates: &CallRates, method: &MethodSpec, peer: &Peer) -> usize {
        let call = || rates.admit(method, peer, 10);
        let let_in = (0..100_000).take_while(|_| call().is_ok()).count();
        let refusal = call().unwrap_err();
        assert!(refusal.is_transient(), "{refusal}");
        let_in
    }

    #[tokio::test(start_paused = true)]
    async fn each_identity_has_a_rate_of_its_kind() {
        let rates = CallRates::new();
        let machine = peer(Some(&format!("spiffe://m/machine/{UUID}")), "192.0.2.1");
        let bmc = peer(Some("spiffe://m/partition/p1/bmc/b1"), "192.0.2.1");
        let event = &machine_service::EVENT;
        let register = &machine_service::REGISTER;
        assert_eq!(burst(&rates, register, &machine), 12);
        assert_eq!(
            burst(&rates, event, &machine),
            60 - 12,
            "the rest of all its calls"
        );
        let orders = burst(&rates, &bmc_service::ORDER_DONE, &bmc);
        assert!((6_000..6_010).contains(&orders), "{orders}");
        // Its wait is what the refusal says: a quarter of a second for the next event.
        tokio::time::advance(Duration::from_millis(250)).await;
        assert_eq!(burst(&rates, event, &machine), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_share_what_their_network_has() {
        let rates = CallRates::new();
        let join = &enrol_service::JOIN;
        assert_eq!(burst(&rates, join, &peer(None, "[2001:db8::1]")), 4_000);
        let same = rates.admit(join, &peer(None, "[2001:db8::2]"), 10);
        assert!(same.is_err());
        rates
            .admit(join, &peer(None, "[2001:db8:0:1::1]"), 10)
            .unwrap();
    }

    /// Each report may become an entry of the log of every control node.
    #[tokio::test(start_paused = true)]
    async fn a_leaf_that_floods_reports_has_so_many_bytes() {
        let rates = CallRates::new();
        let leaf = |name: &str| {
            let id = format!("spiffe://m/partition/p1/core/{name}");
            peer(Some(&id), "192.0.2.1")
        };
        let report = &switch_service::REPORT;
        let flood = |leaf: &Peer, len: usize| {
            let call = || rates.admit(report, leaf, len);
            (0..10_000).take_while(|_| call().is_ok()).count()
        };
        assert_eq!(flood(&leaf("loud"), 1024 * 1024), 8, "8 MiB at once");
        let refusal = rates.admit(report, &leaf("loud"), 1).unwrap_err();
        assert!(refusal.is_transient(), "{refusal}");
        assert!(refusal.message().contains("bytes"), "{refusal}");
        // A minute later, once more; meanwhile the other leaves have theirs, and small reports are
        // bounded by their number.
        assert_eq!(flood(&leaf("quiet"), 300), 300);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(flood(&leaf("loud"), 1024 * 1024), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_firewall_that_floods_reports_has_so_many_bytes() {
        let rates = CallRates::new();
        let id = format!("spiffe://m/project/{UUID}/machine/{UUID}");
        let firewall = peer(Some(&id), "192.0.2.1");
        let report = &firewall_service::REPORT;
        let flood = |len: usize| {
            let call = || rates.admit(report, &firewall, len);
            (0..1_000).take_while(|_| call().is_ok()).count()
        };
        assert_eq!(flood(LEN_MAX), 8, "512 KiB at once");
        let refusal = rates.admit(report, &firewall, 1).unwrap_err();
        assert!(refusal.is_transient(), "{refusal}");
        assert!(refusal.message().contains("bytes"), "{refusal}");
        // Its counters, which are written to no log, are not bounded by it.
        let counters = &firewall_service::REPORT_STATISTICS;
        rates.admit(counters, &firewall, 700 * 1024).unwrap();
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(flood(LEN_MAX), 8);
    }

    #[tokio::test]
    async fn requests_have_a_length() {
        let rates = CallRates::new();
        let machine = peer(Some(&format!("spiffe://m/machine/{UUID}")), "192.0.2.1");
        rates
            .admit(&machine_service::EVENT, &machine, 8 * 1024)
            .unwrap();
        let refusal = rates.admit(&machine_service::EVENT, &machine, 8 * 1024 + 1);
        let refusal = refusal.unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal}");
        assert!(
            refusal.message().contains("MachineService/Event"),
            "{refusal}"
        );
        rates
            .admit(&machine_service::REGISTER, &machine, 100_000)
            .unwrap();
    }
}
