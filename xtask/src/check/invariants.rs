//! The invariants of each crate: a list in its `//!`, and the same list in ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use syn::{Attribute, Expr, Lit, Meta};

use super::Findings;
use super::source::Source;

const PAGE: &str = "ARCHITECTURE.md";
/// Lines of the page between which the list stands.
const BEGIN: &str = "<!-- From the `//!` of each crate, by `./dev fix`. -->\n";
const END: &str = "<!-- End of the list. -->\n";
/// Line of a `//!` that the list of invariants follows.
const HEADING: &str = "Invariants:";

pub(crate) fn check(root: &Path, sources: &[Source]) -> Result<Findings> {
    let page =
        fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let crates = crates(sources);
    let mut findings: Findings = crates
        .iter()
        .filter(|(_, invariants)| invariants.is_empty())
        .map(|(folder, _)| {
            format!(
                "{folder}: its `//!` lists no invariants; write a line `{HEADING}` and items that \
                 begin with `- `"
            )
        })
        .collect();
    if with_list(&page, &crates)? != page {
        findings.push(format!(
            "{PAGE}: its list of invariants is not that of the crates; `./dev fix` writes it"
        ));
    }
    Ok(findings)
}

/// Writes the list of the crates into the page.
pub(crate) fn write(root: &Path, sources: &[Source]) -> Result<()> {
    let path = root.join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let new = with_list(&page, &crates(sources))?;
    if new != page {
        fs::write(&path, new).with_context(|| format!("cannot write {PAGE}"))?;
    }
    Ok(())
}

/// The invariants of each crate, by its folder.
fn crates(sources: &[Source]) -> BTreeMap<&str, Vec<String>> {
    let mut found = BTreeMap::new();
    for source in sources.iter().filter(|source| source.module.is_empty()) {
        let Some((folder, file)) = source.path.split_once("/src/") else {
            continue;
        };
        // A program beside a library says what the program does.
        if file == "lib.rs" || (file == "main.rs" && !found.contains_key(folder)) {
            found.insert(folder, invariants(&docs(&source.syntax.attrs)));
        }
    }
    found
}

/// The lines of a file's `//!`.
fn docs(attributes: &[Attribute]) -> Vec<String> {
    let line = |attribute: &Attribute| {
        let Meta::NameValue(value) = &attribute.meta else {
            return None;
        };
        match &value.value {
            Expr::Lit(literal) if value.path.is_ident("doc") => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        }
    };
    attributes.iter().filter_map(line).collect()
}

/// The items of the list behind the heading, each on one line and without links.
fn invariants(docs: &[String]) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let behind = docs
        .iter()
        .skip_while(|line| line.trim() != HEADING)
        .skip(1);
    for line in behind.map(|line| line.trim()) {
        match (line.strip_prefix("- "), items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, Some(item)) if !line.is_empty() => {
                item.push(' ');
                item.push_str(line);
            }
            (None, Some(_)) => break,
            (None, None) => {}
        }
    }
    let plain = |item: String| item.replace("[`", "`").replace("`]", "`");
    items.into_iter().map(plain).collect()
}

fn with_list(page: &str, crates: &BTreeMap<&str, Vec<String>>) -> Result<String> {
    let missing = || format!("{PAGE} has no line {}", BEGIN.trim_end());
    let (before, rest) = page.split_once(BEGIN).with_context(missing)?;
    let missing = || format!("{PAGE} has no line {}", END.trim_end());
    let (_, after) = rest.split_once(END).with_context(missing)?;
    let mut list = String::new();
    for (folder, invariants) in crates {
        list.push_str(&format!("\n`{folder}`\n\n"));
        for item in invariants {
            let item = item.trim_end_matches([';', '.']);
            list.push_str(&format!("- {item}.\n"));
        }
    }
    Ok(format!("{before}{BEGIN}{list}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse("control-one", path, &[], text).unwrap()
    }

    #[test]
    fn the_list_of_the_page_is_that_of_the_crates() {
        let text = "//! One.\n//!\n//! Invariants:\n//! - it never sleeps,\n//!   see [`Bed`];\n\
                    //! - it is quiet.\n//!\n//! - no invariant\n";
        let sources = [
            source("control/one/src/lib.rs", text),
            source("control/one/src/main.rs", "//! The program.\n"),
        ];
        let crates = crates(&sources);
        let page = format!("Before.\n{BEGIN}old\n{END}After.\n");
        let list = "\n`control/one`\n\n- it never sleeps, see `Bed`.\n- it is quiet.\n\n";
        let new = with_list(&page, &crates).unwrap();
        assert_eq!(new, format!("Before.\n{BEGIN}{list}{END}After.\n"));
        assert_eq!(with_list(&new, &crates).unwrap(), new);
    }

    #[test]
    fn a_page_without_a_place_for_the_list_is_an_error() {
        let error = with_list("Nothing.", &BTreeMap::new()).unwrap_err();
        assert!(error.to_string().contains("has no line"), "{error}");
    }
}
