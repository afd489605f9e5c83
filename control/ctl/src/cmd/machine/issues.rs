//! `metalmesh machine issues`.

use anyhow::Result;
use clap::Args;
use proto_errors::IssueCode;
use proto_public::admin::v2::MachineServiceIssuesRequest;
use proto_public::api::v2::{MachineIssue, MachineIssues, MachineIssuesQuery, MachineQuery};
use serde_json::{Value, json};

use crate::app::App;
use crate::output::print_table;
use crate::text::{ISSUE_TYPE, enum_text, enum_value, issue_code, or_dash};

const SEVERITY: &str = "metalstack.api.v2.MachineIssueSeverity";

#[derive(Debug, Args)]
pub(crate) struct MachineIssuesArgs {
    /// Explain the issues of this machine: cause and remedy.
    machine: Option<String>,
    /// Show only these issues, separated by commas.
    #[arg(long, value_name = "ISSUE", value_delimiter = ',')]
    only: Vec<String>,
    /// Leave these issues out, separated by commas.
    #[arg(long, value_name = "ISSUE", value_delimiter = ',')]
    omit: Vec<String>,
    /// Show only issues of at least this severity: minor, major or critical.
    #[arg(long)]
    severity: Option<String>,
    /// Show only issues of machines in this partition.
    #[arg(long)]
    partition: Option<String>,
}

/// One issue of one machine.
struct IssueLine {
    machine: String,
    severity: String,
    code: String,
    what: String,
    details: String,
    doc: String,
}

impl IssueLine {
    fn entry(&self) -> Option<IssueCode> {
        IssueCode::of(&self.code)
    }

    fn why(&self) -> &'static str {
        self.entry().map(IssueCode::why).unwrap_or_default()
    }

    /// The remedy, with the machine's id in place of the catalogue's `MACHINE`.
    fn mend(&self) -> String {
        let mend = self.entry().map(IssueCode::mend).unwrap_or_default();
        mend.replace("MACHINE", &self.machine)
    }

    fn json(&self) -> Value {
        json!({
            "machine": self.machine,
            "code": self.code,
            "severity": self.severity,
            "what": self.what,
            "details": self.details,
            "why": self.why(),
            "mend": self.mend(),
            "doc": self.doc,
        })
    }
}

/// Numbers of issues in the contract's enum. Issues that metalmesh added have 0.
fn numbers(names: &[String]) -> Result<Vec<i32>> {
    let mut numbers = Vec::new();
    for name in names {
        match enum_value(ISSUE_TYPE, name) {
            Ok(number) => numbers.push(number),
            Err(_) if IssueCode::of(name).is_some() => numbers.push(0),
            Err(error) => return Err(error),
        }
    }
    Ok(numbers)
}

pub(super) async fn show(app: &App, issues: MachineIssuesArgs) -> Result<()> {
    let is_one = issues.machine.is_some();
    let uuid = match &issues.machine {
        Some(machine) => Some(app.machine_id(machine).await?),
        None => None,
    };
    let severity = issues.severity.as_deref();
    let query = MachineIssuesQuery {
        machine_query: Some(MachineQuery {
            uuid,
            partition: issues.partition,
            ..Default::default()
        }),
        only: numbers(&issues.only)?,
        // Zero stands for every issue that metalmesh added; to omit it would omit them all.
        omit: numbers(&issues.omit)?
            .into_iter()
            .filter(|number| *number != 0)
            .collect(),
        severity: severity
            .map(|name| enum_value(SEVERITY, name))
            .transpose()?,
        ..Default::default()
    };
    let request = MachineServiceIssuesRequest { query: Some(query) };
    let answer = app.client.admin_machines().issues(request).await?;
    let mut lines = lines(&answer.into_inner().issues);
    let is_own = |line: &IssueLine| enum_value(ISSUE_TYPE, &line.code).is_err();
    lines.retain(|line| {
        let is_named = |names: &[String]| names.contains(&line.code);
        !is_own(line)
            || ((issues.only.is_empty() || is_named(&issues.only)) && !is_named(&issues.omit))
    });
    if !app.output.is_table() {
        let all: Vec<Value> = lines.iter().map(IssueLine::json).collect();
        return app.output.value(&Value::Array(all));
    }
    if is_one {
        explain(&lines);
    } else {
        table(&lines, app.output.is_wide());
    }
    Ok(())
}

/// The issues, the most severe first.
fn lines(machines: &[MachineIssues]) -> Vec<IssueLine> {
    let all = machines
        .iter()
        .flat_map(|machine| machine.issues.iter().map(move |issue| (machine, issue)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, issue)| std::cmp::Reverse(issue.severity));
    let line = |(machine, issue): (&MachineIssues, &MachineIssue)| IssueLine {
        machine: machine.uuid.clone(),
        severity: enum_text(SEVERITY, issue.severity),
        code: issue_code(issue),
        what: issue.description.clone(),
        details: issue.details.clone(),
        doc: issue.reference_url.clone(),
    };
    all.into_iter().map(line).collect()
}

fn table(lines: &[IssueLine], is_wide: bool) {
    let mut titles = vec!["machine", "severity", "issue", "what", "details"];
    if is_wide {
        titles.push("what to do");
    }
    let rows = lines.iter().map(|line| {
        let mut row = vec![
            line.machine.clone(),
            line.severity.clone(),
            line.code.clone(),
            line.what.clone(),
            or_dash(line.details.clone()),
        ];
        row.extend(is_wide.then(|| line.mend()));
        row
    });
    print_table(&titles, rows);
}

fn explain(lines: &[IssueLine]) {
    if lines.is_empty() {
        outln!("the machine has no issues");
    }
    for line in lines {
        outln!("{} ({}): {}", line.code, line.severity, line.what);
        if !line.details.is_empty() {
            outln!("  details:    {}", line.details);
        }
        outln!("  why:        {}", line.why());
        outln!("  what to do: {}", line.mend());
        outln!("  more:       {}", line.doc);
    }
}
