//! Checks of the control cluster: quorum, lag, disks, backups, authority.

use proto_public::metalmesh::admin::v1::{DoctorBackup, DoctorServiceGetResponse, Node, NodeRole};

use super::facts::DoctorFacts;
use super::level::{high, low};
use super::report::DoctorFinding;

/// Longest time since a node was heard for which it counts as present, seconds.
const HEARD_WITHIN_S: i64 = 5;
/// Log entries that a node is behind above which a warning is given.
const LAG_WARN: u64 = 1_000;
/// Log entries that a node is behind from which the check fails.
const LAG_FAIL: u64 = 10_000;
/// 99th percentile of the log's sync time from which a warning is given, microseconds.
const SYNC_WARN_US: u64 = 100_000;
/// 99th percentile of the log's sync time from which the check fails, microseconds.
const SYNC_FAIL_US: u64 = 1_000_000;
/// Free share of the disk below which a warning is given, percent.
const FREE_WARN: u64 = 20;
/// Free share of the disk below which the check fails, percent.
const FREE_FAIL: u64 = 5;
/// Snapshot intervals without a snapshot above which a warning is given.
const SNAPSHOTS_DUE: u64 = 3;
const DAY_S: i64 = 86_400;
/// Lead of the cluster's time over this host's clock above which a warning is given, seconds.
const TIME_AHEAD_WARN_S: i64 = 120;
/// Remaining validity of the authority below which a warning is given, days. Agents that are away
/// must learn the new root before the old one ends.
const AUTHORITY_WARN_DAYS: i64 = 30;
/// Remaining validity of the authority below which the check fails, days.
const AUTHORITY_FAIL_DAYS: i64 = 7;

fn is_member(node: &&Node) -> bool {
    matches!(
        node.role(),
        NodeRole::Leader | NodeRole::Voter | NodeRole::Learner
    )
}

fn is_voter(node: &&Node) -> bool {
    matches!(node.role(), NodeRole::Leader | NodeRole::Voter)
}

pub(super) fn nodes_asked(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let cluster = match &facts.cluster {
        Ok(cluster) => cluster,
        Err(error) => return vec![DoctorFinding::unknown("which nodes there are", error)],
    };
    let missing: Vec<String> = (cluster.nodes.iter().filter(is_member))
        .filter(|node| !facts.answers().any(|answer| answer.node == node.id))
        .map(|node| node.id.to_string())
        .collect();
    let all = cluster.nodes.iter().filter(is_member).count();
    if missing.is_empty() {
        return vec![DoctorFinding::ok(format!("all {all} nodes were asked"))];
    }
    vec![DoctorFinding::warn(
        format!("nobody asked node {}", missing.join(", ")),
        "its clock, disk and version as it sees them are not known",
        "metalmesh doctor --node URL (the API of that node; repeat it for each)",
    )]
}

pub(super) fn leader(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let found = match &facts.cluster {
        Err(error) => DoctorFinding::fail(
            format!("the cluster cannot be looked at: {error}"),
            "no node answered; agents go on with what they were told last",
            "metalmesh doctor --only api",
        ),
        Ok(cluster) if cluster.leader == 0 => DoctorFinding::fail(
            "nobody leads",
            "without a majority of the voters nothing can be written, and no agent has a session",
            "metalmesh cluster status; start the nodes that are down",
        ),
        Ok(cluster) => DoctorFinding::ok(format!(
            "node {} leads in term {}",
            cluster.leader, cluster.term
        )),
    };
    vec![found]
}

pub(super) fn quorum(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let cluster = match &facts.cluster {
        Ok(cluster) => cluster,
        Err(error) => return vec![DoctorFinding::unknown("who can vote", error)],
    };
    let heard = |node: &&Node| {
        let heard_at = node.heard_at.as_ref();
        node.id == cluster.leader
            || heard_at.is_some_and(|at| facts.now_s - at.seconds <= HEARD_WITHIN_S)
            || facts.answers().any(|answer| answer.node == node.id)
    };
    let voters: Vec<&Node> = cluster.nodes.iter().filter(is_voter).collect();
    let there = voters.iter().filter(|node| heard(node)).count();
    let (all, needed) = (voters.len(), voters.len() / 2 + 1);
    let spare = there.saturating_sub(needed);
    let what = format!("{there} of {all} voters are there, {needed} are needed");
    let mut found = vec![match (there, spare) {
        _ if there < needed => DoctorFinding::fail(
            what,
            "nothing can be written",
            "start the nodes that are down; for good ones that are lost: metalmesh cluster remove",
        ),
        (1, _) if all == 1 => DoctorFinding::warn(
            "one node alone has the whole state",
            "while it is away nothing can be changed, and its disk is the only copy",
            "metalmesh cluster invite HOST:PORT (docs/how-to/run-three-nodes.md)",
        ),
        (_, 0) => DoctorFinding::warn(
            what,
            "if one more fails nothing can be written",
            "metalmesh cluster status; start the nodes that are down, or join another one",
        ),
        _ => DoctorFinding::ok(format!("{what}; {spare} may fail")),
    }];
    let silent = cluster.nodes.iter().filter(is_member);
    found.extend(silent.filter(|node| !heard(node)).map(|node| {
        DoctorFinding::warn(
            format!("node {} is not heard", node.id),
            "it has no vote and no copy of what is written now",
            format!("systemctl status metalmeshd (on {})", node.peer_address),
        )
    }));
    found
}

pub(super) fn lag(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let cluster = match &facts.cluster {
        Ok(cluster) => cluster,
        Err(error) => return vec![DoctorFinding::unknown("how far nodes are behind", error)],
    };
    let members = cluster.nodes.iter().filter(is_member);
    let behind = members.filter_map(|node| Some((node.id, node.behind?)));
    let late: Vec<DoctorFinding> = behind
        .filter(|(_, behind)| *behind > LAG_WARN)
        .map(|(id, behind)| {
            let what = format!("node {id} is {behind} entries behind");
            let why = "it would have to catch up before it could lead";
            let mend = "metalmesh cluster status; look at its disk and its network";
            DoctorFinding::graded(high(behind, LAG_WARN, LAG_FAIL), what, why, mend)
        })
        .collect();
    if late.is_empty() {
        return vec![DoctorFinding::ok("no node is behind")];
    }
    late
}

pub(super) fn versions(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let cluster = match &facts.cluster {
        Ok(cluster) => cluster,
        Err(error) => return vec![DoctorFinding::unknown("which versions run", error)],
    };
    let members: Vec<&Node> = cluster.nodes.iter().filter(is_member).collect();
    let told = |member: &Node| {
        format!(
            "node {}: {} (level {})",
            member.id, member.version, member.feature_level
        )
    };
    let is_same = members.windows(2).all(|two| {
        two[0].version == two[1].version && two[0].feature_level == two[1].feature_level
    });
    match members.first() {
        Some(first) if is_same => vec![DoctorFinding::ok(format!(
            "all nodes run {} (level {})",
            first.version, first.feature_level
        ))],
        _ => vec![DoctorFinding::warn(
            members
                .iter()
                .map(|member| told(member))
                .collect::<Vec<_>>()
                .join(", "),
            "what only the newer ones know stays off until all know it",
            "metalmesh cluster upgrade plan (docs/how-to/upgrade.md)",
        )],
    }
}

pub(super) fn time(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let cluster = match &facts.cluster {
        Ok(cluster) => cluster,
        Err(error) => return vec![DoctorFinding::unknown("the cluster's time", error)],
    };
    let Some(time) = &cluster.time else {
        return vec![DoctorFinding::ok(
            "no leader has set the cluster's time yet",
        )];
    };
    let Some(known) = &time.time else {
        return vec![DoctorFinding::ok(
            "no leader has set the cluster's time yet",
        )];
    };
    if let Some(held) = &time.held {
        return vec![DoctorFinding::fail(
            format!(
                "the clock of node {} shows {held}, the cluster's time is {known}: the jump is held",
                time.held_node
            ),
            "no deadline passes, and nothing expires or is cleared away, until the time is confirmed",
            format!(
                "if the clock of node {} is wrong: timedatectl set-ntp true (there); if it is right: \
                 metalmesh cluster accept-time",
                time.held_node
            ),
        )];
    }
    if let Some(made_at) = &time.restored_from {
        return vec![DoctorFinding::warn(
            format!("the cluster was restored from a backup of {made_at}"),
            "no machine is judged: none counts as silent, none is wiped or reclaimed",
            "compare first: metalmesh cluster reconcile-after-restore --dry-run",
        )];
    }
    let ahead_s = known.seconds - facts.now_s;
    let what = format!("the cluster's time is {ahead_s} s ahead of the clock here");
    if ahead_s <= TIME_AHEAD_WARN_S {
        return vec![DoctorFinding::ok("the leader's clock is believed")];
    }
    vec![DoctorFinding::warn(
        what,
        "a leader's clock was ahead: deadlines wait until the true time comes to it",
        "set the clocks right, then: metalmesh cluster accept-time",
    )]
}

/// One finding for each node that answered.
fn each(
    facts: &DoctorFacts,
    what: &str,
    look: impl Fn(&DoctorServiceGetResponse) -> DoctorFinding,
) -> Vec<DoctorFinding> {
    let found: Vec<DoctorFinding> = facts.answers().map(look).collect();
    if found.is_empty() {
        return vec![DoctorFinding::unknown(what, &facts.silence())];
    }
    found
}

pub(super) fn log_sync(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    each(facts, "how fast the disks are", |node| {
        let Some(p99) = node.sync_p99_us else {
            return DoctorFinding::ok(format!("node {} has written nothing yet", node.node));
        };
        let what = format!(
            "node {}: a sync of the log takes up to {:.1} ms",
            node.node,
            ms(p99)
        );
        let why = "each change waits for it, and a leader that waits long is voted out";
        let mend = "give data_dir a disk of its own with power-loss protection";
        DoctorFinding::graded(high(p99, SYNC_WARN_US, SYNC_FAIL_US), what, why, mend)
    })
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

pub(super) fn disk(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    each(facts, "how full the disks are", |node| {
        let (all, free) = (node.disk_bytes, node.disk_free_bytes);
        let percent = free.saturating_mul(100).checked_div(all).unwrap_or(0);
        let what = format!("node {}: {percent} % of its disk are free", node.node);
        let why = "a node that cannot write its log stops";
        let mend = "make room on the disk of data_dir";
        DoctorFinding::graded(low(percent, FREE_WARN, FREE_FAIL), what, why, mend)
    })
}

pub(super) fn snapshot(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    each(facts, "how old the snapshots are", |node| {
        let since = node.applied.saturating_sub(node.snapshot);
        let what = format!(
            "node {}: {since} entries since its last snapshot",
            node.node
        );
        if since <= node.snapshot_every.saturating_mul(SNAPSHOTS_DUE) {
            return DoctorFinding::ok(what);
        }
        let why = "snapshots are not made: the log grows, and a restart takes long";
        DoctorFinding::warn(what, why, "journalctl -u metalmeshd (look for snapshots)")
    })
}

pub(super) fn backup(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    if facts.answers().next().is_none() {
        return vec![DoctorFinding::unknown(
            "how old the backups are",
            &facts.silence(),
        )];
    }
    if !facts.answers().any(|answer| answer.has_schedule) {
        return vec![DoctorFinding::warn(
            "no backups are scheduled",
            "when a majority loses its disks, everything is gone",
            "set [backup] on all nodes (docs/how-to/backup-and-restore.md), or now: metalmesh \
             cluster backup FILE",
        )];
    }
    let Some(leader) = facts.serving() else {
        let why = "the node that leads makes them, and nobody asked it";
        let mend = "metalmesh doctor --node URL (of the node that leads)";
        return vec![DoctorFinding::warn(
            "how old the backups are is not known",
            why,
            mend,
        )];
    };
    let places = leader
        .backups
        .iter()
        .map(|backup| backup_at(backup, facts.now_s));
    let mut found: Vec<DoctorFinding> = places.collect();
    if found.is_empty() {
        found.push(DoctorFinding::ok(
            "the node that leads is about to look at them",
        ));
    }
    found
}

fn backup_at(backup: &DoctorBackup, now_s: i64) -> DoctorFinding {
    let place = &backup.place;
    let mend = "metalmesh cluster backup FILE; then look into the leader's log";
    if !backup.error.is_empty() {
        let what = format!("{place}: {}", backup.error);
        return DoctorFinding::fail(what, "the last backup was not made", mend);
    }
    let Some(newest) = &backup.newest else {
        let why = "when a majority loses its disks, everything is gone";
        return DoctorFinding::warn(format!("{place} has no backup yet"), why, mend);
    };
    let minutes = (now_s - newest.seconds).max(0) / 60;
    let every = i64::try_from(backup.every_minutes).unwrap_or(i64::MAX);
    let what = format!("{place}: the newest backup is {minutes} minutes old");
    let why = "changes since then would be lost with a majority of the disks";
    let (warn, fail) = (every.saturating_mul(2), every.saturating_mul(4));
    DoctorFinding::graded(high(minutes, warn, fail), what, why, mend)
}

pub(super) fn authority(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let all = facts.answers().flat_map(|node| &node.authority);
    let first = all
        .filter_map(|authority| Some((authority.ends.as_ref()?.seconds, authority.id.as_str())))
        .min();
    let Some((ends, id)) = first else {
        return vec![DoctorFinding::unknown(
            "when the authority ends",
            &facts.silence(),
        )];
    };
    let days = (ends - facts.now_s).div_euclid(DAY_S);
    let what = format!("the authority's certificate {id:?} ends in {days} days");
    let why = "no agent, machine or node can prove who it is from then on";
    let mend = "metalmesh ca rotate";
    let level = low(days, AUTHORITY_WARN_DAYS, AUTHORITY_FAIL_DAYS);
    vec![DoctorFinding::graded(level, what, why, mend)]
}
