//! Plans and progress for people.

use super::facts::ProgramVersion;
use super::plan::{UpgradePlan, UpgradeStep};
use super::progress::UpgradeProgress;
use super::remark::UpgradeRemark;
use crate::output::print_table;
use crate::text::or_dash;

/// Prints a plan.
pub(super) fn plan(plan: &UpgradePlan) {
    outln!(
        "upgrade to {}; the cluster uses feature level {}",
        named(plan.target.as_ref()),
        plan.level_in_use
    );
    if plan.steps.is_empty() && plan.obstacles.is_empty() {
        outln!("all nodes run it");
        return;
    }
    if !plan.steps.is_empty() {
        outln!();
        let rows = (1_usize..).zip(&plan.steps);
        print_table(
            &["step", "node", "address", "runs", "do"],
            rows.map(|(number, step)| row(number, step, plan.target.as_ref())),
        );
        outln!("\n{}", way_back(plan));
    }
    remarks("note", &plan.notes);
    remarks("obstacle", &plan.obstacles);
}

fn row(number: usize, step: &UpgradeStep, target: Option<&ProgramVersion>) -> Vec<String> {
    let number = number.to_string();
    match step {
        UpgradeStep::TransferLeader { node } => vec![
            number,
            "-".into(),
            "-".into(),
            "-".into(),
            format!("metalmesh cluster transfer-leader {node}"),
        ],
        UpgradeStep::UpgradeNode {
            node,
            address,
            runs,
        } => {
            let program = target.map_or("the new metalmeshd", |target| &*target.version);
            vec![
                number,
                node.to_string(),
                or_dash(address.clone()),
                runs.to_string(),
                format!(
                    "install {program}, restart; metalmesh cluster upgrade status --wait {node}"
                ),
            ]
        }
    }
}

/// The changes that can be undone, and until when.
fn way_back(plan: &UpgradePlan) -> String {
    let UpgradePlan {
        target,
        level_in_use: level,
        level_afterwards: after,
        ..
    } = plan;
    match target {
        None => format!(
            "way back: to programs that know feature level {level}; name the new one by --program"
        ),
        Some(_) if after > level => format!(
            "way back: open until the last node runs the new program; then the cluster uses feature \
             level {after}, and only a backup leads back"
        ),
        Some(_) => format!(
            "way back: open; the level stays {level}, and each node may get its earlier program again"
        ),
    }
}

fn remarks(kind: &str, remarks: &[UpgradeRemark]) {
    for UpgradeRemark { what, why, mend } in remarks {
        outln!("{kind}: {what} — {why} — {mend}");
    }
}

/// Prints the progress of an upgrade.
pub(super) fn progress(progress: &UpgradeProgress) {
    let level = progress.level_in_use;
    match &progress.target {
        None if progress.complete => {
            outln!("all nodes run the same program; the cluster uses feature level {level}");
        }
        None => outln!(
            "nobody named another program, and a node is away or catches up; the cluster uses feature \
             level {level}"
        ),
        Some(target) => {
            let state = match progress.complete {
                true => "complete",
                false => "not complete",
            };
            outln!("upgrade to {target}: {state}; the cluster uses feature level {level}");
        }
    }
    outln!();
    let rows = progress.nodes.iter().map(|node| {
        let state: &str = node.state.into();
        vec![
            node.node.to_string(),
            if node.leads { "yes" } else { "no" }.to_owned(),
            or_dash(node.runs.version.clone()),
            node.runs.feature_level.to_string(),
            state.to_owned(),
        ]
    });
    print_table(&["node", "leads", "version", "level", "state"], rows);
}

fn named(target: Option<&ProgramVersion>) -> String {
    target.map_or_else(|| "another program".to_owned(), ToString::to_string)
}
