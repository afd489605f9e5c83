//! The standard output of a run of a playbook: changes, summary, reason of a failure.

use std::collections::{BTreeMap, BTreeSet};

/// A change that a run made, or would make.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Change {
    /// Role and name of the task.
    pub(super) task: String,
    /// Host, and item if the task has a loop.
    pub(super) subject: String,
    /// Lines of the difference, without the names of files: those are temporary ones.
    pub(super) diff: Vec<String>,
}

/// The changes in the output of a run.
pub(super) fn changes(output: &str) -> BTreeSet<Change> {
    let mut found = BTreeSet::new();
    let mut task = "";
    let mut diff = Vec::new();
    for line in output.lines() {
        if let Some(name) = task_name(line) {
            task = name;
            diff.clear();
        } else if let Some(subject) = line.strip_prefix("changed: ") {
            found.insert(Change {
                task: task.to_owned(),
                subject: subject.to_owned(),
                diff: std::mem::take(&mut diff),
            });
        } else if is_result(line) || line.starts_with("--- ") {
            diff.clear();
        } else if line.starts_with(['@', '+', '-', ' ']) && !line.starts_with("+++ ") {
            diff.push(line.to_owned());
        }
    }
    found
}

fn task_name(line: &str) -> Option<&str> {
    let kinds = ["TASK [", "RUNNING HANDLER [", "PLAY ["];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.rsplit_once(']').map(|(name, _)| name)
}

/// A line that ends what was said of a host before, without a change.
fn is_result(line: &str) -> bool {
    let results = ["ok: ", "skipping: ", "fatal: ", "failed: ", "included: "];
    results.iter().any(|result| line.starts_with(result))
}

/// Changes by host, in the summary at the end of a run.
pub(super) fn changed_by_host(output: &str) -> BTreeMap<String, u32> {
    let lines = output
        .lines()
        .skip_while(|line| !line.starts_with("PLAY RECAP"));
    lines.filter_map(changed).collect()
}

fn changed(line: &str) -> Option<(String, u32)> {
    let (host, numbers) = line.split_once(" : ")?;
    let count = |word: &str| word.strip_prefix("changed=")?.parse().ok();
    let changed = numbers.split_whitespace().find_map(count)?;
    Some((host.trim().to_owned(), changed))
}

/// Why a run failed: what Ansible says of hosts that failed, else its last lines.
pub(super) fn reason(output: &str) -> String {
    let failed = |line: &&str| {
        let marks = ["fatal: ", "failed: ", "[ERROR]", "ERROR!"];
        marks.iter().any(|mark| line.starts_with(mark))
    };
    let said: Vec<&str> = output.lines().filter(failed).collect();
    if !said.is_empty() {
        return said.join(" | ");
    }
    let lines: Vec<&str> = output.lines().filter(|line| !line.is_empty()).collect();
    let from = lines.len().saturating_sub(4);
    lines.get(from..).unwrap_or_default().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "\
PLAY [Hosts of partitions] *****************************************************

TASK [metalmesh.metalmesh.agent : Write the configuration] *********************
--- before: /etc/metalmesh/bmc.toml
+++ after: /tmp/ansible-local-1/tmpx
@@ -1,2 +1,2 @@
 # Written by Ansible
-interval_s = 60
+interval_s = 30

changed: [mgmt-1]
ok: [mgmt-2]

RUNNING HANDLER [metalmesh.metalmesh.agent : Restart the agent] ****************
changed: [mgmt-1 -> mgmt-2]

PLAY RECAP *********************************************************************
control-1                  : ok=20   changed=0    unreachable=0    failed=0    skipped=3    rescued=0    ignored=0
mgmt-1                     : ok=12   changed=2    unreachable=0    failed=0    skipped=3    rescued=0    ignored=0
";

    #[test]
    fn changes_have_task_host_and_difference() {
        let found: Vec<Change> = changes(RUN).into_iter().collect();
        let [restart, write] = &*found else {
            panic!("{found:?}")
        };
        // In the order of their names.
        let (write, restart) = match restart.diff.is_empty() {
            true => (write, restart),
            false => (restart, write),
        };
        assert_eq!(
            write.task,
            "metalmesh.metalmesh.agent : Write the configuration"
        );
        assert_eq!(write.subject, "[mgmt-1]");
        assert_eq!(
            write.diff,
            [
                "@@ -1,2 +1,2 @@",
                " # Written by Ansible",
                "-interval_s = 60",
                "+interval_s = 30"
            ]
        );
        assert_eq!(
            restart.task,
            "metalmesh.metalmesh.agent : Restart the agent"
        );
        assert_eq!(restart.subject, "[mgmt-1 -> mgmt-2]");
    }

    #[test]
    fn names_of_temporary_files_are_no_difference() {
        let other = RUN.replace("tmpx", "tmpy");
        assert_eq!(changes(RUN), changes(&other));
        assert_ne!(changes(RUN), changes(&RUN.replace("= 30", "= 31")));
    }

    #[test]
    fn the_summary_counts_by_host() {
        let found = changed_by_host(RUN);
        let expected = [("control-1".to_owned(), 0), ("mgmt-1".to_owned(), 2)];
        assert_eq!(found, BTreeMap::from(expected));
        assert!(changed_by_host("").is_empty());
    }

    #[test]
    fn a_failure_is_told_by_the_line_of_its_host() {
        let output = "TASK [x] ***\nfatal: [h1]: FAILED! => {\"msg\": \"no\"}\nPLAY RECAP ***\n";
        assert_eq!(reason(output), "fatal: [h1]: FAILED! => {\"msg\": \"no\"}");
        assert_eq!(reason("a\n\nb\n"), "a | b");
    }
}
