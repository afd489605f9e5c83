//! The plan of an upgrade: the order of the nodes, what stands against it, and the way back.

use proto_public::metalmesh::admin::v1::{ClusterServiceStatusResponse, Node, NodeRole};
use serde::Serialize;

use super::facts::{
    ProgramVersion, UpgradeFacts, is_heard, is_leaders_word, is_voter, members, silent_voters,
    target,
};
use super::remark::UpgradeRemark;

/// Log entries that a node may be behind; with one that is further behind no other node is restarted.
const BEHIND_MAX: u64 = 1_000;
/// Age from which a backup is too old to undo an upgrade with, seconds: a day.
const BACKUP_AGE_MAX_S: i64 = 86_400;
/// Time by which a backup may be dated ahead of the clock of this host, seconds: an hour, as the
/// cluster's own time.
const BACKUP_AHEAD_MAX_S: i64 = 3_600;

/// A step of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub(super) enum UpgradeStep {
    /// Install the program on a node, restart it, and wait until it has caught up.
    UpgradeNode {
        node: u64,
        /// Where its peers reach it.
        address: String,
        runs: ProgramVersion,
    },
    /// Transfer leadership, so that no call waits for an election.
    TransferLeader {
        /// The new leader.
        node: u64,
    },
}

/// A plan. Empty steps mean that all nodes run the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct UpgradePlan {
    /// The new program. `None` means that nobody named one.
    pub(super) target: Option<ProgramVersion>,
    /// The level in use: programs below it are refused.
    pub(super) level_in_use: u32,
    /// The level in use after the last step; from then on there is no way back to a program below it.
    pub(super) level_afterwards: u32,
    pub(super) steps: Vec<UpgradeStep>,
    pub(super) obstacles: Vec<UpgradeRemark>,
    pub(super) notes: Vec<UpgradeRemark>,
}

/// Makes the plan.
pub(super) fn plan(facts: &UpgradeFacts) -> UpgradePlan {
    let cluster = &facts.cluster;
    let target = target(cluster, facts.program.as_ref());
    let level = cluster.feature_level;
    let mut plan = UpgradePlan {
        level_in_use: level,
        level_afterwards: level,
        steps: Vec::new(),
        obstacles: Vec::new(),
        notes: Vec::new(),
        target,
    };
    if !is_leaders_word(cluster) {
        plan.obstacles.push(UpgradeRemark::new(
            "no leader answers",
            "it is not known which nodes are there, and nothing can be written",
            "metalmesh cluster status; start the nodes that are down",
        ));
        return plan;
    }
    plan.steps = steps(cluster, plan.target.as_ref());
    if plan.steps.is_empty() {
        // The program that a node ran before it went away proves nothing about now.
        plan.obstacles.extend(away(cluster));
        return plan;
    }
    if let Some(target) = &plan.target {
        plan.level_afterwards = target.feature_level.max(level);
        // 0 means that a node has not said its level, which is an obstacle of its own.
        let known = (level > 0).then_some(level);
        plan.obstacles
            .extend(known.and_then(|level| wrong_level(target, level)));
    }
    plan.obstacles.extend(nameless(cluster));
    plan.obstacles.extend(away(cluster));
    plan.obstacles.extend(behind(cluster));
    plan.notes.extend(silent_spares(cluster));
    plan.notes.extend(pauses(cluster));
    plan.notes.extend(time(cluster));
    if let Some(remark) = backup(facts) {
        // Without a higher level the earlier program can be started again, and no backup is needed.
        match plan.level_afterwards > level {
            true => plan.obstacles.push(remark),
            false => plan.notes.push(remark),
        }
    }
    plan
}

/// The nodes in their order: learners, which have no vote, then followers, then the leader.
pub(super) fn steps(
    cluster: &ClusterServiceStatusResponse,
    target: Option<&ProgramVersion>,
) -> Vec<UpgradeStep> {
    let is_due = |node: &&Node| target.is_none_or(|target| *target != ProgramVersion::of(node));
    let turn = |node: &&Node| (is_voter(node), node.id == cluster.leader, node.id);
    let mut due: Vec<&Node> = members(cluster).filter(is_due).collect();
    due.sort_by_key(turn);
    let mut steps = Vec::new();
    for node in due {
        if node.id == cluster.leader
            && let Some(successor) = successor(cluster)
        {
            steps.push(UpgradeStep::TransferLeader { node: successor });
        }
        steps.push(UpgradeStep::UpgradeNode {
            node: node.id,
            address: node.peer_address.clone(),
            runs: ProgramVersion::of(node),
        });
    }
    steps
}

/// The voter that leads while the leader restarts: when its turn comes all others run the new program,
/// so that the one that is least behind is taken. `None` means that there is no other voter.
fn successor(cluster: &ClusterServiceStatusResponse) -> Option<u64> {
    let others = members(cluster).filter(|node| node.role() == NodeRole::Voter);
    let present = others.filter(|node| is_heard(cluster, node));
    let best = present.min_by_key(|node| (node.behind.unwrap_or(u64::MAX), node.id));
    best.map(|node| node.id)
}

/// The reason why the level of the program does not fit the level in use.
fn wrong_level(target: &ProgramVersion, level: u32) -> Option<UpgradeRemark> {
    let known = target.feature_level;
    if known < level {
        return Some(UpgradeRemark::new(
            format!("{target} is too old: the cluster uses feature level {level}"),
            "the level was raised when the last node knew it, and an older program cannot read what \
             was written since: there is no way back",
            format!(
                "take a program of level {level} or higher; or restore a backup of before \
                     (docs/how-to/backup-and-restore.md)"
            ),
        ));
    }
    (known > level.saturating_add(1)).then(|| {
        UpgradeRemark::new(
            format!("{target} is too new: the cluster uses feature level {level}"),
            "programs run together when their levels are one apart, and no further",
            format!("upgrade to a program of level {} first", level + 1),
        )
    })
}

/// Members of which nothing is known.
fn nameless(cluster: &ClusterServiceStatusResponse) -> impl Iterator<Item = UpgradeRemark> {
    let nameless = members(cluster).filter(|node| node.feature_level == 0);
    nameless.map(|node| {
        UpgradeRemark::new(
            format!("the program of node {} is not known", node.id),
            "it may be too old to read what the others will write",
            format!(
                "restart it, so that it says what it runs; or: metalmesh cluster remove {}",
                node.id
            ),
        )
    })
}

/// Voters that do not answer: with a further one restarting, the cluster cannot write, or cannot lose
/// another one.
fn away(cluster: &ClusterServiceStatusResponse) -> Option<UpgradeRemark> {
    let silent = silent_voters(cluster);
    if silent.is_empty() {
        return None;
    }
    let voters = members(cluster).filter(|node| is_voter(node)).count();
    let needed = voters / 2 + 1;
    let left = (voters - silent.len()).saturating_sub(1);
    let names = silent.iter().map(|node| node.id.to_string());
    let hosts: Vec<&str> = silent.iter().map(|node| &*node.peer_address).collect();
    let removals = silent.iter().map(|node| node.id.to_string());
    Some(UpgradeRemark::new(
        format!("node {} is not heard", names.collect::<Vec<_>>().join(", ")),
        format!("while another one restarts {left} voters are left, {needed} are needed to write"),
        format!(
            "start it, with its program or the new one: systemctl status metalmeshd (on {}); one that is \
             lost: metalmesh cluster remove {}",
            hosts.join(", "),
            removals.collect::<Vec<_>>().join(" or ")
        ),
    ))
}

/// Members that must catch up first.
fn behind(cluster: &ClusterServiceStatusResponse) -> impl Iterator<Item = UpgradeRemark> {
    let late = members(cluster).filter(move |node| is_heard(cluster, node));
    let late = late.filter_map(|node| Some((node.id, node.behind?)));
    late.filter(|(_, behind)| *behind > BEHIND_MAX)
        .map(|(node, behind)| {
            UpgradeRemark::new(
                format!("node {node} is {behind} entries behind"),
                "if another node restarts now, every write waits for it",
                format!("metalmesh cluster upgrade status --wait {node}"),
            )
        })
}

/// Members without a vote that are away.
fn silent_spares(cluster: &ClusterServiceStatusResponse) -> impl Iterator<Item = UpgradeRemark> {
    let silent = members(cluster).filter(|node| !is_voter(node) && !is_heard(cluster, node));
    silent.map(|node| {
        UpgradeRemark::new(
            format!("node {} is not heard", node.id),
            "a level is raised only when the last node knows it",
            format!(
                "start it; one that is lost: metalmesh cluster remove {}",
                node.id
            ),
        )
    })
}

/// Restarts that clients notice.
fn pauses(cluster: &ClusterServiceStatusResponse) -> Option<UpgradeRemark> {
    let voters = members(cluster).filter(|node| is_voter(node)).count();
    let what = match voters {
        1 => "the cluster has one voter".to_owned(),
        2 => "the cluster has two voters, and both are needed to write".to_owned(),
        _ => return None,
    };
    Some(UpgradeRemark::new(
        what,
        "while a voter restarts nothing can be written; agents go on with what they were told last",
        "metalmesh cluster invite HOST:PORT (docs/how-to/run-three-nodes.md), or choose a quiet hour",
    ))
}

/// States of the cluster's time that an operator should end first.
fn time(cluster: &ClusterServiceStatusResponse) -> Option<UpgradeRemark> {
    let time = cluster.time.as_ref()?;
    if time.held.is_some() {
        return Some(UpgradeRemark::new(
            format!(
                "the cluster's time is held: the clock of node {} jumped",
                time.held_node
            ),
            "no deadline passes until it is confirmed",
            "metalmesh doctor --only cluster-time",
        ));
    }
    time.restored_from.as_ref().map(|made_at| {
        UpgradeRemark::new(
            format!("the cluster was restored from a backup of {made_at} and not reconciled"),
            "no machine is judged until then",
            "metalmesh cluster reconcile-after-restore --dry-run",
        )
    })
}

/// The reason why no backup could undo the upgrade.
fn backup(facts: &UpgradeFacts) -> Option<UpgradeRemark> {
    let why = "after the level was raised a backup is the only way back";
    let mend = "metalmesh cluster backup FILE, then: metalmesh cluster upgrade plan --backup FILE";
    let what = match &facts.backup {
        Ok(Some(made_s)) => {
            let age_s = facts.now_s.saturating_sub(*made_s);
            match age_s {
                age_s if age_s >= BACKUP_AGE_MAX_S => {
                    format!("the newest backup is {} hours old", age_s / 3600)
                }
                age_s if age_s < -BACKUP_AHEAD_MAX_S => format!(
                    "the newest backup is dated {} hours ahead: a clock is wrong, and it may be old",
                    age_s.saturating_neg() / 3600
                ),
                _ => return None,
            }
        }
        Ok(None) => "there is no backup".to_owned(),
        Err(reason) => format!("the age of the newest backup is not known: {reason}"),
    };
    Some(UpgradeRemark::new(what, why, mend))
}
