//! `./dev check`: format, lints and structure. It reads, and never writes.

mod arrows;
pub(crate) mod comments;
mod coverage;
mod dependencies;
pub(crate) mod hits;
mod invariants;
mod metadata;
mod named_tests;
mod pages;
mod products;
pub(crate) mod rules;
mod schema;
mod schema_fields;
pub(crate) mod source;
mod specification;
mod tidy;

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;

use self::metadata::Metadata;
use self::schema::Outcome;
use self::source::Source;

/// Findings of one check: each line names the file, the rule and the remedy.
pub(crate) type Findings = Vec<String>;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only what needs no build: structure, pages and schema, not format and lints
    #[arg(long)]
    structure: bool,
}

/// Runs every check and reports all findings, not only the first.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let mut failed = check_structure(root)?;
    if !options.structure {
        failed.extend(check_code(root)?);
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "failed: {}; `./dev fix` mends what a tool can mend",
        failed.join(", ")
    )
}

/// Checks what can be read without a build; names the parts that failed.
fn check_structure(root: &Path) -> Result<Vec<&'static str>> {
    let metadata = Metadata::load(root)?;
    let sources = source::load(root, &metadata)?;
    let parts: [(&str, Findings); 10] = [
        ("arrows", arrows::check(&metadata)),
        ("crates", arrows::check_names(&metadata)),
        ("coverage", coverage::check(root)?),
        ("dependencies", dependencies::check(root, &metadata)?),
        ("invariants", invariants::check(root, &sources)?),
        ("pages", pages::check(root)?),
        ("products", products::check(root)?),
        ("rules", hits::check(&sources)),
        ("specification", specification::check(root)?),
        ("tidy", tidy::check(root)?),
    ];
    let mut failed = Vec::new();
    for (name, findings) in parts {
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
    Ok(failed)
}

/// Checks format and lints; names the parts that failed.
fn check_code(root: &Path) -> Result<Vec<&'static str>> {
    let mut failed = Vec::new();
    for (name, args) in [
        ("format", vec!["fmt", "--all", "--check"]),
        ("clippy", lints()),
    ] {
        let ok = cargo(root, &args)?;
        report(name, ok);
        if !ok {
            failed.push(name);
        }
    }
    Ok(failed)
}

/// The call of cargo that checks lints: the build itself where it is made by clippy, as in
/// continuous integration, whose tests run from it.
fn lints() -> Vec<&'static str> {
    if std::env::var_os("RUSTC_WORKSPACE_WRAPPER").is_some_and(|name| name == "clippy-driver") {
        return vec!["build", "--workspace", "--all-targets"];
    }
    let clippy = ["clippy", "--quiet", "--workspace", "--all-targets"];
    [&clippy[..], &["--", "-D", "warnings"]].concat()
}

/// Mends what a tool can mend: format, lints that have an automatic fix, the list of invariants.
pub(crate) fn fix(root: &Path) -> Result<()> {
    let clippy = [
        "clippy",
        "--all-targets",
        "--workspace",
        "--fix",
        "--allow-dirty",
    ];
    for tool in [&clippy[..], &["fmt", "--all"]] {
        if !cargo(root, tool)? {
            bail!("the tools above could not mend everything");
        }
    }
    invariants::write(root, &sources(root)?)
}

/// The sources that rules are about.
pub(crate) fn sources(root: &Path) -> Result<Vec<Source>> {
    source::load(root, &Metadata::load(root)?)
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
