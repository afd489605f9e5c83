//! The report of a first start: text as it goes, or one JSON object at its end.

use std::path::PathBuf;

use control_store::DirectoryOwner;
use serde_json::{Value, json};

use super::finding::SetupFinding;
use crate::args::ReportFormat;

/// The report. Text is printed when it is added, JSON when the report is printed.
#[derive(Debug)]
pub(super) struct SetupReport {
    format: ReportFormat,
    dry_run: bool,
    findings: Vec<Value>,
    config: Value,
    node: Value,
    done: Vec<String>,
    next: Vec<String>,
}

/// The configuration file of a first start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigText {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl SetupReport {
    pub(super) fn new(format: ReportFormat, dry_run: bool) -> Self {
        Self {
            format,
            dry_run,
            findings: Vec::new(),
            config: Value::Null,
            node: Value::Null,
            done: Vec::new(),
            next: Vec::new(),
        }
    }

    fn is_text(&self) -> bool {
        self.format == ReportFormat::Text
    }

    /// A step that is done, or what it found.
    pub(super) fn step(&mut self, line: String) {
        if self.is_text() {
            println!("{line}");
        }
        self.done.push(line);
    }

    pub(super) fn checked(&mut self, findings: &[SetupFinding]) {
        if self.is_text() {
            println!("checks of this host:");
            for finding in findings {
                println!("{}", finding.line());
            }
        }
        self.findings = findings.iter().map(SetupFinding::json).collect();
    }

    /// The configuration that a dry run does not write.
    pub(super) fn would_write(&mut self, config: &ConfigText) {
        if self.is_text() {
            println!("would write {}:\n\n{}", config.path.display(), config.text);
        }
        self.config = json!({ "path": config.path, "written": false, "content": config.text });
    }

    pub(super) fn wrote(&mut self, config: &ConfigText, mode: u32) {
        self.step(format!(
            "configuration: {} (mode {mode:04o})",
            config.path.display()
        ));
        self.config = json!({
            "path": config.path, "written": true, "mode": format!("{mode:04o}"),
        });
    }

    pub(super) fn node(&mut self, owner: &DirectoryOwner) {
        self.step(format!(
            "node {} of cluster {:?} ({})",
            owner.node, owner.cluster, owner.cluster_id
        ));
        self.node = json!({
            "id": owner.node, "cluster": owner.cluster, "cluster_id": owner.cluster_id.to_string(),
        });
    }

    pub(super) fn next(&mut self, steps: Vec<String>) {
        if self.is_text() {
            println!("next:");
            for step in &steps {
                println!("  - {step}");
            }
        }
        self.next = steps;
    }

    /// Ends the report, also of a set-up that failed.
    pub(super) fn print(&self, error: Option<&anyhow::Error>) {
        if !self.is_text() {
            println!("{:#}", self.json(error));
        }
    }

    fn json(&self, error: Option<&anyhow::Error>) -> Value {
        json!({
            "dry_run": self.dry_run,
            "checks": self.findings,
            "config": self.config,
            "node": self.node,
            "done": self.done,
            "next": self.next,
            "error": error.map(|error| format!("{error:#}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::SetupCheck;

    #[test]
    fn a_report_in_json_has_everything_at_its_end() {
        let mut report = SetupReport::new(ReportFormat::Json, true);
        let found = "on ext4".to_owned();
        report.checked(&[SetupFinding::ok(SetupCheck::Disk, "data_dir", found)]);
        report.would_write(&ConfigText {
            path: "/etc/metalmesh/metalmeshd.toml".into(),
            text: "data_dir = '/x'\n".to_owned(),
        });
        let error = anyhow::anyhow!("no");
        let json = report.json(Some(&error));
        assert_eq!(json["dry_run"], true);
        assert_eq!(json["checks"][0]["grade"], "ok");
        assert_eq!(json["config"]["written"], false);
        assert_eq!(json["config"]["content"], "data_dir = '/x'\n");
        assert_eq!(json["error"], "no");
        assert_eq!(report.json(None)["error"], Value::Null);
    }
}
