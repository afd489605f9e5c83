//! The control nodes together: majority, lag, disks, backups, authority.

use proto_public::metalmesh::admin::v1::{DoctorBackup, DoctorServiceGetResponse, Node, NodeRole};

use super::facts::Facts;
use super::report::{Found, high, low};

/// A node that was not heard for longer does not count, seconds.
const HEARD_WITHIN_S: i64 = 5;
/// Entries of the log that a node may be behind.
const LAG_WARN: u64 = 1_000;
const LAG_FAIL: u64 = 10_000;
/// How long the slowest syncs of the log may take, microseconds.
const SYNC_WARN_US: u64 = 100_000;
const SYNC_FAIL_US: u64 = 1_000_000;
/// What has to be free of a disk, hundredths.
const FREE_WARN: u64 = 20;
const FREE_FAIL: u64 = 5;
/// Snapshots that may be due and not made.
const SNAPSHOTS_DUE: u64 = 3;
const DAY_S: i64 = 86_400;
/// The cluster's time may be so far ahead of the clock here, seconds.
const TIME_AHEAD_WARN_S: i64 = 120;
/// The authority should be replaced so long before its end, days: agents that are away must see it.
const AUTHORITY_WARN_DAYS: i64 = 30;
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

pub(super) fn nodes_asked(facts: &Facts) -> Vec<Found> {
    let cluster = match &facts.cluster {
        Ok(cluster) => cluster,
        Err(error) => return vec![Found::unknown("which nodes there are", error)],
    };
    let missing: Vec<String> = (cluster.nodes.iter().filter(is_member))
        .filter(|node| !facts.answers().any(|it| it.node == node.id))
        .map(|node| node.id.to_string())
        .collect();
    let all = cluster.nodes.iter().filter(is_member).count();
    if missing.is_empty() {
        return vec![Found::ok(format!("all {all} nodes were asked"))];
    }
    vec![Found::warn(
        format!("nobody asked node {}", missing.join(", ")),
        "its clock, disk and version as it sees them are not known",
        "metalmesh doctor --node URL (the API of that node; repeat it for each)",
    )]
}

pub(super) fn leader(facts: &Facts) -> Vec<Found> {
    let found = match &facts.cluster {
        Err(error) => Found::fail(
            format!("the cluster cannot be looked at: {error}"),
            "no node answered; agents go on with what they were told last",
            "metalmesh doctor --only api",
        ),
        Ok(cluster) if cluster.leader == 0 => Found::fail(
            "nobody leads",
            "without a majority of the voters nothing can be written, and no agent has a session",
            "metalmesh cluster status; start the nodes that are down",
        ),
        Ok(cluster) => Found::ok(format!(
            "node {} leads in term {}",
            cluster.leader, cluster.term
        )),
    };
    vec![found]
}

pub(super) fn quorum(facts: &Facts) -> Vec<Found> {
    let cluster = match &facts.cluster {
        Ok(cluster) => cluster,
        Err(error) => return vec![Found::unknown("who can vote", error)],
    };
    let heard = |node: &&Node| {
        let heard_at = node.heard_at.as_ref();
        node.id == cluster.leader
            || heard_at.is_some_and(|at| facts.now_s - at.seconds <= HEARD_WITHIN_S)
            || facts.answers().any(|it| it.node == node.id)
    };
    let voters: Vec<&Node> = cluster.nodes.iter().filter(is_voter).collect();
    let there = voters.iter().filter(|node| heard(node)).count();
    let (all, needed) = (voters.len(), voters.len() / 2 + 1);
    let spare = there.saturating_sub(needed);
    let what = format!("{there} of {all} voters are there, {needed} are needed");
    let mut found = vec![match (there, spare) {
        _ if there < needed => Found::fail(
            what,
            "nothing can be written",
            "start the nodes that are down; for good ones that are lost: metalmesh cluster remove",
        ),
        (1, _) if all == 1 => Found::warn(
            "one node alone has the whole state",
            "while it is away nothing can be changed, and its disk is the only copy",
            "metalmesh cluster join (docs/how-to/run-three-nodes.md)",
        ),
        (_, 0) => Found::warn(
            what,
            "if one more fails nothing can be written",
            "metalmesh cluster status; start the nodes that are down, or join another one",
        ),
        _ => Found::ok(format!("{what}; {spare} may fail")),
    }];
    let silent = cluster.nodes.iter().filter(is_member);
    found.extend(silent.filter(|node| !heard(node)).map(|node| {
        Found::warn(
            format!("node {} is not heard", node.id),
            "it has no vote and no copy of what is written now",
            format!("systemctl status metalmeshd (on {})", node.peer_address),
        )
    }));
    found
}

pub(super) fn lag(facts: &Facts) -> Vec<Found> {
    let cluster = match &facts.cluster {
        Ok(cluster) => cluster,
        Err(error) => return vec![Found::unknown("how far nodes are behind", error)],
    };
    let members = cluster.nodes.iter().filter(is_member);
    let behind = members.filter_map(|node| Some((node.id, node.behind?)));
    let late: Vec<Found> = behind
        .filter(|(_, behind)| *behind > LAG_WARN)
        .map(|(id, behind)| {
            let what = format!("node {id} is {behind} entries behind");
            let why = "it would have to catch up before it could lead";
            let mend = "metalmesh cluster status; look at its disk and its network";
            Found::graded(high(behind, LAG_WARN, LAG_FAIL), what, why, mend)
        })
        .collect();
    if late.is_empty() {
        return vec![Found::ok("no node is behind")];
    }
    late
}

pub(super) fn versions(facts: &Facts) -> Vec<Found> {
    let cluster = match &facts.cluster {
        Ok(cluster) => cluster,
        Err(error) => return vec![Found::unknown("which versions run", error)],
    };
    let members: Vec<&Node> = cluster.nodes.iter().filter(is_member).collect();
    let told = |it: &Node| {
        format!(
            "node {}: {} (level {})",
            it.id, it.version, it.feature_level
        )
    };
    let is_same = members.windows(2).all(|two| {
        two[0].version == two[1].version && two[0].feature_level == two[1].feature_level
    });
    match members.first() {
        Some(first) if is_same => vec![Found::ok(format!(
            "all nodes run {} (level {})",
            first.version, first.feature_level
        ))],
        _ => vec![Found::warn(
            members
                .iter()
                .map(|it| told(it))
                .collect::<Vec<_>>()
                .join(", "),
            "what only the newer ones know stays off until all know it",
            "upgrade the older nodes, one at a time",
        )],
    }
}

pub(super) fn time(facts: &Facts) -> Vec<Found> {
    let cluster = match &facts.cluster {
        Ok(cluster) => cluster,
        Err(error) => return vec![Found::unknown("the cluster's time", error)],
    };
    let Some(time) = &cluster.time else {
        return vec![Found::ok("no leader has set the cluster's time yet")];
    };
    let Some(known) = &time.time else {
        return vec![Found::ok("no leader has set the cluster's time yet")];
    };
    if let Some(held) = &time.held {
        return vec![Found::fail(
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
        return vec![Found::warn(
            format!("the cluster was restored from a backup of {made_at}"),
            "no machine is judged: none counts as silent, none is wiped or reclaimed",
            "compare first: metalmesh cluster reconcile-after-restore --dry-run",
        )];
    }
    let ahead_s = known.seconds - facts.now_s;
    let what = format!("the cluster's time is {ahead_s} s ahead of the clock here");
    if ahead_s <= TIME_AHEAD_WARN_S {
        return vec![Found::ok("the leader's clock is believed")];
    }
    vec![Found::warn(
        what,
        "a leader's clock was ahead: deadlines wait until the true time comes to it",
        "set the clocks right, then: metalmesh cluster accept-time",
    )]
}

/// One finding for each node that said something of itself.
fn each(
    facts: &Facts,
    what: &str,
    look: impl Fn(&DoctorServiceGetResponse) -> Found,
) -> Vec<Found> {
    let found: Vec<Found> = facts.answers().map(look).collect();
    if found.is_empty() {
        return vec![Found::unknown(what, &facts.silence())];
    }
    found
}

pub(super) fn log_sync(facts: &Facts) -> Vec<Found> {
    each(facts, "how fast the disks are", |node| {
        let Some(p99) = node.sync_p99_us else {
            return Found::ok(format!("node {} has written nothing yet", node.node));
        };
        let what = format!(
            "node {}: a sync of the log takes up to {:.1} ms",
            node.node,
            ms(p99)
        );
        let why = "each change waits for it, and a leader that waits long is voted out";
        let mend = "give data_dir a disk of its own with power-loss protection";
        Found::graded(high(p99, SYNC_WARN_US, SYNC_FAIL_US), what, why, mend)
    })
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

pub(super) fn disk(facts: &Facts) -> Vec<Found> {
    each(facts, "how full the disks are", |node| {
        let (all, free) = (node.disk_bytes, node.disk_free_bytes);
        let percent = free.saturating_mul(100).checked_div(all).unwrap_or(0);
        let what = format!("node {}: {percent} % of its disk are free", node.node);
        let why = "a node that cannot write its log stops";
        let mend = "make room on the disk of data_dir";
        Found::graded(low(percent, FREE_WARN, FREE_FAIL), what, why, mend)
    })
}

pub(super) fn snapshot(facts: &Facts) -> Vec<Found> {
    each(facts, "how old the snapshots are", |node| {
        let since = node.applied.saturating_sub(node.snapshot);
        let what = format!(
            "node {}: {since} entries since its last snapshot",
            node.node
        );
        if since <= node.snapshot_every.saturating_mul(SNAPSHOTS_DUE) {
            return Found::ok(what);
        }
        let why = "snapshots are not made: the log grows, and a restart takes long";
        Found::warn(what, why, "journalctl -u metalmeshd (look for snapshots)")
    })
}

pub(super) fn backup(facts: &Facts) -> Vec<Found> {
    if facts.answers().next().is_none() {
        return vec![Found::unknown("how old the backups are", &facts.silence())];
    }
    if !facts.answers().any(|it| it.has_schedule) {
        return vec![Found::warn(
            "no backups are scheduled",
            "when a majority loses its disks, everything is gone",
            "set [backup] on all nodes (docs/how-to/backup-and-restore.md), or now: metalmesh \
             cluster backup FILE",
        )];
    }
    let Some(leader) = facts.serving() else {
        let why = "the node that leads makes them, and nobody asked it";
        let mend = "metalmesh doctor --node URL (of the node that leads)";
        return vec![Found::warn(
            "how old the backups are is not known",
            why,
            mend,
        )];
    };
    let places = leader.backups.iter().map(|it| backup_at(it, facts.now_s));
    let mut found: Vec<Found> = places.collect();
    if found.is_empty() {
        found.push(Found::ok("the node that leads is about to look at them"));
    }
    found
}

fn backup_at(backup: &DoctorBackup, now_s: i64) -> Found {
    let place = &backup.place;
    let mend = "metalmesh cluster backup FILE; then look into the leader's log";
    if !backup.error.is_empty() {
        let what = format!("{place}: {}", backup.error);
        return Found::fail(what, "the last backup was not made", mend);
    }
    let Some(newest) = &backup.newest else {
        let why = "when a majority loses its disks, everything is gone";
        return Found::warn(format!("{place} has no backup yet"), why, mend);
    };
    let minutes = (now_s - newest.seconds).max(0) / 60;
    let every = i64::try_from(backup.every_minutes).unwrap_or(i64::MAX);
    let what = format!("{place}: the newest backup is {minutes} minutes old");
    let why = "changes since then would be lost with a majority of the disks";
    let (warn, fail) = (every.saturating_mul(2), every.saturating_mul(4));
    Found::graded(high(minutes, warn, fail), what, why, mend)
}

pub(super) fn authority(facts: &Facts) -> Vec<Found> {
    let all = facts.answers().flat_map(|node| &node.authority);
    let first = all
        .filter_map(|it| Some((it.ends.as_ref()?.seconds, it.id.as_str())))
        .min();
    let Some((ends, id)) = first else {
        return vec![Found::unknown("when the authority ends", &facts.silence())];
    };
    let days = (ends - facts.now_s).div_euclid(DAY_S);
    let what = format!("the authority's certificate {id:?} ends in {days} days");
    let why = "no agent, machine or node can prove who it is from then on";
    let mend = "metalmesh ca rotate";
    let level = low(days, AUTHORITY_WARN_DAYS, AUTHORITY_FAIL_DAYS);
    vec![Found::graded(level, what, why, mend)]
}
