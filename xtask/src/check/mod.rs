//! `./dev check`: format, lints and structure. It reads, and never writes.

mod arrows;
pub(crate) mod budget;
pub(crate) mod comments;
mod coverage;
mod dependencies;
mod metadata;
mod named_tests;
mod pages;
mod products;
pub(crate) mod rules;
mod schema;
pub(crate) mod source;
mod tidy;

use std::path::Path;

use anyhow::{Context, Result, bail};

use self::metadata::Metadata;
use self::schema::Outcome;
use self::source::Source;
use crate::test::SIMULATION;

/// What one check found: each line names the file, the rule and what to do.
pub(crate) type Findings = Vec<String>;

/// Runs every check and reports all findings, not only the first.
pub(crate) fn run(root: &Path) -> Result<()> {
    let metadata = Metadata::load(root)?;
    let structure: [(&str, Findings); 8] = [
        ("arrows", arrows::check(&metadata)),
        ("crates", arrows::check_names(&metadata)),
        ("coverage", coverage::check(root)?),
        ("dependencies", dependencies::check(root, &metadata)?),
        ("pages", pages::check(root)?),
        ("products", products::check(root)?),
        (
            "rules",
            budget::check(root, &source::load(root, &metadata)?)?,
        ),
        ("tidy", tidy::check(root)?),
    ];
    let mut failed = Vec::new();
    for (name, findings) in structure {
        if !passed(name, &findings) {
            failed.push(name);
        }
    }
    for (name, outcome) in schema::check(root)? {
        match outcome {
            Outcome::Ran(findings) if !passed(name, &findings) => failed.push(name),
            Outcome::Ran(_) => {}
            Outcome::Skipped(reason) => {
                eprintln!("check {name:<14} skipped: {}", reason.replace('\n', " "));
            }
        }
    }
    let clippy = |what: &[&'static str]| {
        let begin = ["clippy", "--quiet", "--all-targets"];
        [&begin, what, &["--", "-D", "warnings"]].concat()
    };
    for (name, args) in [
        ("format", vec!["fmt", "--all", "--check"]),
        ("clippy", clippy(&["--workspace"])),
        ("clippy (sim)", clippy(&SIMULATION)),
    ] {
        let ok = cargo(root, &args)?;
        report(name, ok);
        if !ok {
            failed.push(name);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "failed: {}; `./dev fix` mends what a tool can mend",
        failed.join(", ")
    )
}

/// Mends what a tool can mend: format, lints that have an automatic fix, numbers that went down.
pub(crate) fn fix(root: &Path) -> Result<()> {
    let clippy = ["clippy", "--all-targets", "--fix", "--allow-dirty"];
    for what in [&["--workspace"][..], &SIMULATION] {
        if !cargo(root, &[&clippy, what].concat())? {
            bail!("the tools above could not mend everything");
        }
    }
    if !cargo(root, &["fmt", "--all"])? {
        bail!("the tools above could not mend everything");
    }
    budget::lower(root, &sources(root)?)
}

/// The sources that rules are about.
pub(crate) fn sources(root: &Path) -> Result<Vec<Source>> {
    source::load(root, &Metadata::load(root)?)
}

/// Writes the numbers of the rules as they are, also where they are higher than before.
pub(crate) fn rewrite_budget(root: &Path) -> Result<()> {
    budget::rewrite(root, &sources(root)?)
}

fn cargo(root: &Path, args: &[&str]) -> Result<bool> {
    let status = crate::cargo()
        .args(args)
        .current_dir(root)
        .status()
        .with_context(|| format!("cannot run cargo {}", args.join(" ")))?;
    Ok(status.success())
}

/// Tells the findings of one check; `true` if there are none.
fn passed(name: &str, findings: &[String]) -> bool {
    report(name, findings.is_empty());
    for finding in findings {
        eprintln!("  {finding}");
    }
    findings.is_empty()
}

fn report(name: &str, ok: bool) {
    eprintln!("check {name:<14} {}", if ok { "ok" } else { "FAILED" });
}
