//! `metalmesh policy lint`: a policy file of Ironic beside the defaults of Ironic.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use control_oslo::{AccessChange, CallAccess, DangerousRule, PolicyFile, PolicyLint, ironic};
use serde_json::{Value, json};

use super::lint_rows::rows;
use crate::files;
use crate::output::{OutputFormat, print_table};

/// Allows every rule: `--allow-dangerous all`.
const ALL: &str = "all";

#[derive(Debug, Args)]
pub(crate) struct PolicyLintArgs {
    /// Policy file of Ironic, YAML or JSON; - is stdin.
    file: PathBuf,
    /// Accept this dangerous rule, by its name or that of the rule in the file that it rests on.
    /// all accepts every one. Repeatable.
    #[arg(long, value_name = "RULE|all")]
    allow_dangerous: Vec<String>,
}

impl PolicyLintArgs {
    fn allows(&self, rule: &DangerousRule) -> bool {
        let mut names = self.allow_dangerous.iter();
        names.any(|name| name == ALL || rule.is_named(name))
    }
}

/// Prints the gains and losses of sample callers, and the rules that are dangerous.
///
/// # Errors
/// The file is refused, or has a dangerous rule that is not allowed.
pub(super) fn lint(output: &OutputFormat, args: &PolicyLintArgs) -> Result<()> {
    let file = args.file.display().to_string();
    let lint = linted(args).with_context(|| file.clone())?;
    if output.is_table() {
        print(output, &lint);
        notes(args, &lint);
    } else {
        output.value(&to_value(args, &lint))?;
    }
    let refused: Vec<&str> = lint
        .dangerous
        .iter()
        .filter(|rule| !args.allows(rule))
        .map(|rule| rule.rule.name)
        .collect();
    ensure!(
        refused.is_empty(),
        "{file}: {} rules give projects what belongs to others: {}; correct them, or accept each by \
         --allow-dangerous RULE, or every one by --allow-dangerous all",
        refused.len(),
        refused.join(", ")
    );
    Ok(())
}

fn linted(args: &PolicyLintArgs) -> Result<PolicyLint> {
    let file = PolicyFile::parse(&files::read(&args.file)?)?;
    Ok(PolicyLint::of(&file)?)
}

fn print(output: &OutputFormat, lint: &PolicyLint) {
    if lint.changes.is_empty() {
        return;
    }
    let titles = ["rule", "change", "who", "objects", "danger", "calls"];
    let shown = if output.is_wide() { 6 } else { 5 };
    let rows = rows(&lint.changes).into_iter().map(|row| {
        let mut cells = row.cells().to_vec();
        cells.truncate(shown);
        cells
    });
    print_table(titles.get(..shown).unwrap_or_default(), rows);
}

/// Remarks and the sums, for people.
fn notes(args: &PolicyLintArgs, lint: &PolicyLint) {
    for remark in &lint.remarks {
        noteln!("note:  {remark}");
    }
    for name in args.allow_dangerous.iter().filter(|name| *name != ALL) {
        if !lint.dangerous.iter().any(|rule| rule.is_named(name)) {
            noteln!(
                "note:  no dangerous rule is called {name}: --allow-dangerous {name} has no effect"
            );
        }
    }
    let gained = lint
        .changes
        .iter()
        .filter(|change| change.is_gain())
        .count();
    let allowed = lint
        .dangerous
        .iter()
        .filter(|rule| args.allows(rule))
        .count();
    noteln!(
        "{gained} gained, {} lost by sample callers beside the defaults of Ironic {}; {} rules are \
         dangerous, {allowed} of them accepted",
        lint.changes.len() - gained,
        ironic::RELEASE,
        lint.dangerous.len()
    );
}

fn to_value(args: &PolicyLintArgs, lint: &PolicyLint) -> Value {
    let dangerous = lint.dangerous.iter().map(|rule| {
        let kinds: Vec<&str> = rule.kinds.iter().map(Into::into).collect();
        json!({
            "rule": rule.rule.name, "kinds": kinds, "callers": rule.personas,
            "causes": rule.causes, "accepted": args.allows(rule),
        })
    });
    let remarks = lint.remarks.iter().map(
        |remark| json!({ "rule": remark.rule, "problem": remark.problem, "remedy": remark.remedy }),
    );
    json!({
        "file": args.file, "release": ironic::RELEASE,
        "changes": lint.changes.iter().map(change).collect::<Vec<_>>(),
        "dangerous": dangerous.collect::<Vec<_>>(),
        "remarks": remarks.collect::<Vec<_>>(),
    })
}

fn change(change: &AccessChange) -> Value {
    let access = |access: CallAccess| -> &'static str { access.into() };
    let object: &str = change.situation.into();
    let danger: Option<&str> = change.danger.map(Into::into);
    json!({
        "rule": change.rule.name, "calls": change.rule.calls, "caller": change.persona,
        "object": object, "change": if change.is_gain() { "gains" } else { "loses" },
        "before": access(change.before), "after": access(change.after),
        "reason": change.reason, "danger": danger,
    })
}
