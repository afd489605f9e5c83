//! `metalmesh explain`: the runbook of a code. Needs no server.

mod nearest;
mod page;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;

use crate::output::{OutputFormat, print_table};
use page::Explanation;

/// Longest code that is looked for, characters. Codes are far shorter; the bound limits the work of
/// the comparison with all of them.
const CODE_MAX: usize = 64;
/// Most codes that an error suggests.
const SUGGESTIONS_MAX: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct CodeExplainArgs {
    /// Code of an error (MM-1203 or 1203), check of the doctor (disk) or issue of a machine
    /// (crashloop). Without it all codes are listed.
    code: Option<String>,
}

/// Prints the section of a code, or lists all codes.
///
/// # Errors
/// There is no such code; the error names the nearest ones.
pub(crate) fn run(output: &OutputFormat, explain: &CodeExplainArgs) -> Result<()> {
    let all = page::explanations();
    let Some(code) = &explain.code else {
        return list(output, &all);
    };
    let found = find(&all, code)?;
    if output.is_table() {
        outln!("{found}");
        return Ok(());
    }
    output.value(&found.json())
}

fn list(output: &OutputFormat, all: &[Explanation]) -> Result<()> {
    if !output.is_table() {
        let all: Vec<Value> = all.iter().map(Explanation::json).collect();
        return output.value(&Value::Array(all));
    }
    let rows = all.iter().map(|found| {
        let (code, kind) = (found.code.to_owned(), found.page.kind.to_owned());
        vec![code, kind, found.title().to_owned()]
    });
    print_table(&["code", "kind", "title"], rows);
    Ok(())
}

/// The explanation of a code, in any case. A number alone is the number of an error.
fn find(all: &[Explanation], code: &str) -> Result<Explanation> {
    let mut wanted: String = code.trim().chars().take(CODE_MAX).collect();
    if !wanted.is_empty() && wanted.bytes().all(|byte| byte.is_ascii_digit()) {
        wanted.insert_str(0, "MM-");
    }
    let is_wanted = |found: &&Explanation| found.code.eq_ignore_ascii_case(&wanted);
    if let Some(found) = all.iter().find(is_wanted) {
        return Ok(*found);
    }
    let codes = all.iter().map(|found| found.code);
    let nearest = nearest::nearest(codes, &wanted, SUGGESTIONS_MAX);
    bail!(
        "there is no code {wanted:?}; near to it: {}; all codes: metalmesh explain",
        nearest.join(", ")
    )
}

#[cfg(test)]
mod tests;
