//! Metrics of this node: log, state, peers, sessions and queues.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use base_telemetry::metrics::{Buckets, Collector, DescriptorEncoder, Label, Sheet, Unit};
use control_state::{AuditEntry, CaRecord, FEATURE_LEVEL, Tables, feature_level};
use control_store::{ClusterView, Metrics, SYNC_BOUNDS_US, SyncTimes};
use proto_link::LinkStats;

use super::MetricSources;
use super::firewalls::firewalls;

/// Maximum files whose size one scrape reads. A data directory has some hundred; beyond the limit no
/// further folder is opened.
const FILES_MAX: usize = 10_000;
/// Folders of the data directory, each a label value.
const PARTS: [&str; 3] = ["log", "state", "snapshots"];
/// Methods that issue certificates, and their label values.
const ENROLMENTS: [(&str, &str); 3] = [
    ("/metalmesh.mesh.v1.EnrolService/Join", "join"),
    ("/metalmesh.mesh.v1.EnrolService/Resume", "resume"),
    ("/metalmesh.mesh.v1.IdentityService/Renew", "renew"),
];

/// Computes the metrics at each scrape.
#[derive(Debug)]
pub(super) struct NodeMetrics(pub(super) MetricSources);

#[expect(
    clippy::cast_precision_loss,
    reason = "Prometheus knows floating-point numbers only"
)]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

fn size(number: usize) -> f64 {
    float(u64::try_from(number).unwrap_or(u64::MAX))
}

fn one(name: &'static str, value: impl Into<std::borrow::Cow<'static, str>>) -> Vec<Label> {
    vec![(name, value.into())]
}

impl Collector for NodeMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet::new(encoder);
        let store = &self.0.store;
        let metrics = store.metrics();
        raft(&mut sheet, &metrics)?;
        peers(&mut sheet, &store.cluster_view_here())?;
        syncs(&mut sheet, &metrics.syncs)?;
        disk(&mut sheet, &self.0.dir)?;
        self.state(&mut sheet)?;
        self.queues(&mut sheet, &metrics)?;
        // A former leader still has the counters of its time as leader, which are outdated.
        if store.is_leader() {
            let totals = self.0.presence.firewalls().totals(store.now());
            firewalls(&mut sheet, &totals)?;
        }
        match self.0.presence.link() {
            Some(link) => mesh(&mut sheet, &link),
            None => Ok(()),
        }
    }
}

fn raft(sheet: &mut Sheet<'_>, metrics: &Metrics) -> fmt::Result {
    let roles = ["leader", "follower", "candidate", "learner"];
    let role = |role: &'static str| {
        let is = metrics.role == role;
        (one("role", role), if is { 1.0 } else { 0.0 })
    };
    let help = "1 for what this node is in the cluster, 0 for what it is not";
    sheet.gauges("metalmesh_raft_role", help, None, roles.map(role))?;
    let help = "Whether this node knows who leads";
    let has_leader = if metrics.leader.is_some() { 1.0 } else { 0.0 };
    sheet.gauge("metalmesh_raft_has_leader", help, None, has_leader)?;
    let help = "The term; grows with each election";
    sheet.gauge("metalmesh_raft_term", help, None, float(metrics.term))?;
    let at = |index: Option<u64>| float(index.unwrap_or(0));
    sheet.gauges(
        "metalmesh_raft_log_index",
        "Entries of the log: the last one, the last one known to be on a majority, the last one \
         in the state, the last one in a snapshot and the last one that was dropped",
        None,
        [
            (one("entry", "last"), at(metrics.last_log)),
            (one("entry", "committed"), at(metrics.committed)),
            (one("entry", "applied"), at(metrics.applied)),
            (one("entry", "snapshot"), at(metrics.snapshot)),
            (one("entry", "purged"), at(metrics.purged)),
        ],
    )?;
    let help = "Files of the log";
    sheet.gauge(
        "metalmesh_raft_log_segments",
        help,
        None,
        size(metrics.log_segments),
    )
}

/// Lag and last contact of each node, which only the leader knows.
fn peers(sheet: &mut Sheet<'_>, view: &ClusterView) -> fmt::Result {
    let node = |id: u64| one("node", id.to_string());
    let lag = view.members.iter().filter_map(|member| {
        let behind = view.last_log.saturating_sub(member.matched?);
        Some((node(member.node), float(behind)))
    });
    let help = "Entries of the log that a control node is behind; only the leader tells";
    sheet.gauges("metalmesh_raft_lag_entries", help, None, lag)?;
    let heard = view.members.iter().filter_map(|member| {
        let heard_ms = member.heard_ms?;
        Some((node(member.node), float(heard_ms) / 1000.0))
    });
    sheet.gauges(
        "metalmesh_raft_heard_ago",
        "How long ago a control node was heard last; only the leader tells",
        Some(Unit::Seconds),
        heard,
    )?;
    let voters = view.members.iter().filter(|member| member.is_voter).count();
    let help = "Control nodes that vote";
    sheet.gauge("metalmesh_raft_voters", help, None, size(voters))
}

fn syncs(sheet: &mut Sheet<'_>, times: &SyncTimes) -> fmt::Result {
    let bounds = SYNC_BOUNDS_US.iter().map(|us| float(*us) / 1e6);
    let bounds = bounds.chain([f64::INFINITY]);
    let buckets = Buckets {
        counts: bounds.zip(times.counts).collect(),
        sum: float(times.sum_us) / 1e6,
    };
    let help = "How long the disk took to make the log durable";
    let unit = Some(Unit::Seconds);
    sheet.histogram("metalmesh_raft_log_sync_duration", help, unit, &buckets)
}

fn disk(sheet: &mut Sheet<'_>, dir: &Path) -> fmt::Result {
    let part = |part: &'static str| (one("part", part), float(bytes_below(&dir.join(part))));
    sheet.gauges(
        "metalmesh_store",
        "What the data directory holds on disk",
        Some(Unit::Bytes),
        PARTS.map(part),
    )
}

/// Bytes of all files below a directory.
fn bytes_below(dir: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![dir.to_owned()];
    let mut left = FILES_MAX;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            left = left.saturating_sub(1);
            match entry.metadata() {
                Ok(about) if about.is_dir() && left > 0 => folders.push(entry.path()),
                Ok(about) => bytes += about.len(),
                // The log and the snapshots remove files during the scan.
                Err(_) => {}
            }
        }
    }
    bytes
}

/// Values of the state that need no scan of a table.
#[derive(Debug, Default)]
struct StateFacts {
    revision: u64,
    level: u32,
    audit_head: u64,
    authority_ends_ms: Option<u64>,
}

fn facts(tables: &Tables) -> StateFacts {
    let head = tables.table::<AuditEntry>().last_key_value();
    let authorities = tables
        .all::<CaRecord>()
        .filter(|authority| !authority.retired);
    StateFacts {
        revision: tables.revision(),
        level: feature_level(tables),
        audit_head: head.map_or(0, |(sequence, _)| *sequence),
        authority_ends_ms: authorities.map(|authority| authority.not_after.ms()).min(),
    }
}

impl NodeMetrics {
    fn state(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let facts = self.0.store.read_local(facts).unwrap_or_default();
        let help = "Commands that changed the state so far";
        sheet.gauge(
            "metalmesh_state_revision",
            help,
            None,
            float(facts.revision),
        )?;
        let help = "The feature level that all control nodes know, and the one of this program";
        sheet.gauges(
            "metalmesh_feature_level",
            help,
            None,
            [
                (one("of", "cluster"), f64::from(facts.level)),
                (one("of", "program"), f64::from(FEATURE_LEVEL)),
            ],
        )?;
        let help = "Number of the newest record of the audit trail";
        sheet.gauge("metalmesh_audit_head", help, None, float(facts.audit_head))?;
        let ends = facts
            .authority_ends_ms
            .map(|ms| (Vec::new(), float(ms) / 1000.0));
        sheet.gauges(
            "metalmesh_authority_end_timestamp",
            "When the first certificate of the authority that still signs ends, seconds since 1970",
            Some(Unit::Seconds),
            ends,
        )
    }

    fn queues(&self, sheet: &mut Sheet<'_>, metrics: &Metrics) -> fmt::Result {
        sheet.gauges(
            "metalmesh_queue_depth",
            "What waits in the queues of this node: writes, records of calls",
            None,
            [
                (one("queue", "proposals"), size(metrics.proposals_waiting)),
                (one("queue", "audit"), size(self.0.audit.waiting())),
            ],
        )?;
        let help = "Watches that are open";
        sheet.gauge(
            "metalmesh_watches_open",
            help,
            None,
            size(self.0.watches.count()),
        )?;
        // A former leader still has the values of its time as leader, which are outdated.
        let mut places = self.0.backup_places.places();
        places.retain(|_| self.0.store.is_leader());
        let newest = places.iter().filter_map(|place| {
            let seconds = float(place.newest?.ms()) / 1000.0;
            Some((one("place", place.place.clone()), seconds))
        });
        sheet.gauges(
            "metalmesh_backup_newest_timestamp",
            "When the newest backup of a place was made, seconds since 1970; only the leader tells",
            Some(Unit::Seconds),
            newest,
        )?;
        let unobserved = match self.0.store.is_leader() {
            true => self.0.presence.fleet().unobserved.len(),
            false => 0,
        };
        sheet.gauge(
            "metalmesh_partitions_unobserved",
            "Partitions none of whose agents was heard lately; only the leader tells",
            None,
            size(unobserved),
        )
    }
}

fn mesh(sheet: &mut Sheet<'_>, stats: &LinkStats) -> fmt::Result {
    let sessions = stats.sessions.iter();
    sheet.gauges(
        "metalmesh_mesh_sessions",
        "Open sessions of agents and machines with this node, by what they are",
        None,
        sessions.map(|(kind, count)| (one("kind", *kind), float(*count))),
    )?;
    let help = "Handshakes of the mesh that are in progress";
    sheet.gauge(
        "metalmesh_mesh_handshakes_open",
        help,
        None,
        size(stats.handshakes_open),
    )?;
    let handshakes = stats.handshakes.iter();
    sheet.counters(
        "metalmesh_mesh_handshakes",
        "Handshakes of the mesh, by how they ended",
        None,
        handshakes.map(|(how, count)| (one("outcome", how.as_str()), *count)),
    )?;
    let calls = stats.calls.iter().map(|call| {
        let code = call.code.as_str();
        (
            vec![("method", call.method.into()), ("code", code.into())],
            call.count,
        )
    });
    sheet.counters(
        "metalmesh_mesh_calls",
        "Calls of agents and machines that ended, by method and status code of gRPC",
        None,
        calls,
    )?;
    sheet.counters(
        "metalmesh_enrolments",
        "Certificates that agents and machines asked for, by how and by whether they got one",
        None,
        enrolments(stats),
    )
}

fn enrolments(stats: &LinkStats) -> Vec<(Vec<Label>, u64)> {
    let mut all: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (path, method) in ENROLMENTS {
        for outcome in ["issued", "refused"] {
            all.insert((method, outcome), 0);
        }
        for call in stats.calls.iter().filter(|call| call.method == path) {
            let is_issued = call.code == proto_link::Code::Ok;
            let outcome = if is_issued { "issued" } else { "refused" };
            *all.entry((method, outcome)).or_default() += call.count;
        }
    }
    let labels = |method: &'static str, outcome: &'static str| {
        vec![("method", method.into()), ("outcome", outcome.into())]
    };
    all.into_iter()
        .map(|((method, outcome), count)| (labels(method, outcome), count))
        .collect()
}
