//! Pages whose tables end in the tests that prove each row: the tests have to be there.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Findings;
use super::named_tests::{self, NamedTests, Sources};

/// A page with tables whose last cell names tests.
struct Page {
    path: &'static str,
    /// Heading of the section that has the table. `None` means the whole page.
    section: Option<&'static str>,
    /// `true` if a row may name a file as a whole, or a command instead of a function.
    may_name_files: bool,
}

const PAGES: [Page; 3] = [
    Page {
        path: "docs/reference/differences.md",
        section: None,
        may_name_files: false,
    },
    Page {
        path: "docs/reference/stories.md",
        section: Some("Sentences and tests"),
        may_name_files: false,
    },
    Page {
        path: "docs/threat-model.md",
        section: Some("Attacks that are tests"),
        may_name_files: true,
    },
];

pub(crate) fn check(root: &Path) -> Result<Findings> {
    let mut findings = Findings::new();
    for page in PAGES {
        let path = page.path;
        let text =
            fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        let part = match page.section {
            Some(heading) => named_tests::section(&text, heading)
                .with_context(|| format!("{path} has no section \"{heading}\""))?,
            None => &text,
        };
        let rows = rows(part);
        let named = rows.iter().flat_map(|row| &row.tests);
        let sources = named_tests::load(root, named.map(|tests| tests.path.as_str()));
        findings.extend(untrue(&page, &rows, &sources));
    }
    Ok(findings)
}

struct Row<'a> {
    /// First cell, by which findings name the row.
    name: &'a str,
    /// Last cell.
    cell: &'a str,
    tests: Vec<NamedTests>,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let mut found = Vec::new();
    for cells in named_tests::table_rows(page) {
        if let (Some(name), Some(cell)) = (cells.first(), cells.last()) {
            let tests = named_tests::named_tests(cell);
            found.push(Row { name, cell, tests });
        }
    }
    found
}

/// Names each row without a test, and each test that is not there.
fn untrue(page: &Page, rows: &[Row<'_>], sources: &Sources) -> Findings {
    let mut findings = Findings::new();
    for row in rows {
        let mut wrong: Vec<String> = row
            .tests
            .iter()
            .flat_map(|tests| named_tests::missing(tests, sources))
            .collect();
        let has_function = row.tests.iter().any(|tests| !tests.functions.is_empty());
        let has_file = !row.tests.is_empty() || row.cell.contains("`./dev ");
        let is_proven = has_function || (page.may_name_files && has_file);
        if !is_proven {
            wrong.push("names no test; write `path` `function`".to_owned());
        }
        if row.cell.contains("as above") || row.cell.contains("the same") {
            wrong.push("points at another row; name the test".to_owned());
        }
        let lines = wrong.iter();
        findings.extend(lines.map(|line| format!("{}: \"{}\": {line}", page.path, row.name)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{Page, Sources, rows, untrue};

    #[test]
    fn rows_that_prove_nothing() {
        let sources = Sources::from([("a.rs".to_owned(), "fn one() {}".to_owned())]);
        for (cell, of_functions, of_files) in [
            ("`a.rs` `one`", None, None),
            ("`a.rs`, on three nodes: `one`", None, None),
            ("`a.rs`", Some("names no test"), None),
            ("`./dev lab --drill b`", Some("names no test"), None),
            ("", Some("names no test"), Some("names no test")),
            (
                "`a.rs` `two`",
                Some("a.rs has no function two"),
                Some("a.rs has no function two"),
            ),
            (
                "`c.rs` `one`",
                Some("there is no c.rs"),
                Some("there is no c.rs"),
            ),
            (
                "the same, `a.rs` `one`",
                Some("points at another row"),
                Some("points at another row"),
            ),
        ] {
            for (may_name_files, expected) in [(false, of_functions), (true, of_files)] {
                let page = Page {
                    path: "p.md",
                    section: None,
                    may_name_files,
                };
                let text = format!("| x | test |\n|---|---|\n| y | {cell} |\n");
                let findings = untrue(&page, &rows(&text), &sources);
                let count = usize::from(expected.is_some());
                assert_eq!(findings.len(), count, "{cell}: {findings:?}");
                for (finding, part) in findings.iter().zip(expected) {
                    assert!(finding.contains(part), "{finding}");
                }
            }
        }
    }
}
