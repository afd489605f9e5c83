//! The coverage page: every field of the public contract is in exactly one of its rows, and every
//! test that a row names is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Findings;
use super::named_tests::{self, NamedTests, Sources};
use super::schema_fields::fields;

/// The page with a row for each feature of the contract.
const PAGE: &str = "docs/reference/contract-coverage.md";
/// Folders of the public contract's schema.
const SCHEMA: [&str; 3] = [
    "proto/schema/metalstack/api/v2",
    "proto/schema/metalstack/admin/v2",
    "proto/schema/metalstack/infra/v2",
];
/// Marks tests against a real system, and tests through the published client.
const MARKS: [&str; 2] = [SYSTEM, CLIENT];
const SYSTEM: &str = "system";
const CLIENT: &str = "client";

pub(crate) fn check(root: &Path) -> Result<Findings> {
    let mut contract = BTreeSet::new();
    for folder in SCHEMA {
        let entries = fs::read_dir(root.join(folder)).with_context(|| format!("no {folder}"))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "proto") {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                contract.extend(fields(&text));
            }
        }
    }
    let page =
        fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let rows = rows(&page);
    let named = rows.iter().flat_map(|row| &row.tests);
    let sources = named_tests::load(root, named.map(|tests| tests.path.as_str()));
    Ok([
        compare(&contract, &page, &rows),
        rows.iter().flat_map(|row| untrue(row, &sources)).collect(),
    ]
    .concat())
}

/// Names each field that is in no row or in several, and each that the contract does not have.
fn compare(contract: &BTreeSet<String>, page: &str, rows: &[Row<'_>]) -> Findings {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for field in rows.iter().flat_map(|row| &row.fields) {
        *counts.entry(field).or_default() += 1;
    }
    let mut findings = Findings::new();
    for field in contract {
        match counts.get(field.as_str()) {
            None => findings.push(format!(
                "{PAGE}: {field} is in no row; say where it is stored, whom it reaches, what tests it"
            )),
            Some(1) => {}
            Some(count) => findings.push(format!("{PAGE}: {field} is in {count} rows; keep one")),
        }
    }
    for field in counts.keys().filter(|field| !contract.contains(**field)) {
        findings.push(format!("{PAGE}: {field} is not in the contract; remove it"));
    }
    let summary = summary(rows);
    if !page.contains(&summary) {
        findings.push(format!("{PAGE}: the counts must read \"{summary}\""));
    }
    findings
}

/// Names each test of a row that is not there, and each mark that stands at no test.
fn untrue(row: &Row<'_>, sources: &Sources) -> Findings {
    let field = row.fields.first().copied().unwrap_or_default();
    let mut findings = Findings::new();
    for tests in &row.tests {
        findings.extend(named_tests::missing(tests, sources));
        let path = &tests.path;
        if tests.functions.is_empty() {
            findings.push(format!("{path} without a function; name the test"));
        }
        for mark in &tests.marks {
            if !MARKS.contains(&mark.as_str()) {
                findings.push(format!("unknown mark {mark}; it is one of {MARKS:?}"));
            } else if mark == SYSTEM && path.ends_with(".py") {
                findings.push(format!(
                    "{path} drives the published client: mark it **client**"
                ));
            }
        }
    }
    if row.is_marked_without_test {
        findings.push("a mark that follows no test; name the test before it".to_owned());
    }
    findings
        .into_iter()
        .map(|finding| format!("{PAGE}: row of {field}: {finding}"))
        .collect()
}

/// The counts that stand at the start of the page.
fn summary(rows: &[Row<'_>]) -> String {
    let fields: usize = rows.iter().map(|row| row.fields.len()).sum();
    let marked = |mark| rows.iter().filter(|row| row.has(mark)).count();
    let (system, client) = (marked(SYSTEM), marked(CLIENT));
    let untested = rows.iter().filter(|row| row.tests.is_empty()).count();
    let rows = rows.len();
    format!(
        "{rows} rows, {fields} fields; {system} rows are proven through a real system, \
         {client} through the published client; {untested} name no test."
    )
}

/// A row of the page's tables.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    /// The fields in the first cell, each in backticks.
    fields: Vec<&'a str>,
    /// The tests in the last cell, with whole paths.
    tests: Vec<NamedTests>,
    /// `true` if a mark stands in a row that names no file of tests.
    is_marked_without_test: bool,
}

impl Row<'_> {
    fn has(&self, mark: &str) -> bool {
        let mut marks = self.tests.iter().flat_map(|tests| &tests.marks);
        marks.any(|given| given == mark)
    }
}

/// The rows that name fields.
fn rows(page: &str) -> Vec<Row<'_>> {
    let table = named_tests::table_rows(page);
    let folders: BTreeMap<&str, &str> = table.iter().filter_map(|row| folder(row)).collect();
    table
        .iter()
        .filter_map(|row| fields_and_tests(row, &folders))
        .collect()
}

/// A short prefix and the folder that it stands for: "api/" and "control/api/tests/api/".
fn folder<'a>(cells: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let [short, path] = cells else { return None };
    let path = path.split_once(';').map_or(*path, |(path, _)| path);
    (short.ends_with('/') && path.ends_with('/')).then_some((*short, path))
}

fn fields_and_tests<'a>(cells: &[&'a str], folders: &BTreeMap<&str, &str>) -> Option<Row<'a>> {
    let (first, last) = (cells.first()?, cells.last()?);
    let fields: Vec<&str> = first.split('`').skip(1).step_by(2).collect();
    if fields.is_empty() {
        return None;
    }
    let mut tests = named_tests::named_tests(last);
    for tests in &mut tests {
        let long = folders.iter().find_map(|(short, folder)| {
            let rest = tests.path.strip_prefix(short)?;
            Some(format!("{folder}{rest}"))
        });
        tests.path = long.unwrap_or_else(|| tests.path.clone());
    }
    let is_marked = MARKS
        .iter()
        .any(|mark| last.contains(&format!("**{mark}**")));
    Some(Row {
        fields,
        is_marked_without_test: is_marked && tests.is_empty(),
        tests,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CLIENT, SYSTEM, Sources, compare, rows, untrue};

    #[test]
    fn rows_of_pages() {
        let folders = "| short | path |\n|---|---|\n| api/ | control/api/; and so on |\n\n";
        for (line, expected) in [
            ("no table: `api.A.a`", None),
            ("| feature | stored | tested by |\n|---|---|---|", None),
            (
                "| `api.A.a` | `A.a` | no test names it |",
                Some((vec!["api.A.a"], vec![], false, false)),
            ),
            (
                "| `api.A.a` `api.A.b` | no | `api/c.rs`: d **system** |",
                Some((
                    vec!["api.A.a", "api.A.b"],
                    vec!["control/api/c.rs"],
                    true,
                    false,
                )),
            ),
            (
                "| `api.A.a` | no | `api/c.rs`: d; `e/f.py`: g **client** |",
                Some((
                    vec!["api.A.a"],
                    vec!["control/api/c.rs", "e/f.py"],
                    false,
                    true,
                )),
            ),
        ] {
            let page = format!("{folders}{line}");
            let found = rows(&page);
            let found = found.last().map(|row| {
                let paths = row.tests.iter().map(|tests| tests.path.as_str());
                let (system, client) = (row.has(SYSTEM), row.has(CLIENT));
                (
                    row.fields.clone(),
                    paths.collect::<Vec<_>>(),
                    system,
                    client,
                )
            });
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn tests_that_are_not_what_a_row_says() {
        let sources = ["a.rs", "b.py"].map(|path| (path.to_owned(), "fn one() {}".to_owned()));
        let sources = Sources::from(sources);
        for (cell, expected) in [
            ("no test names it", None),
            ("`a.rs`: one **system**", None),
            ("`a.rs`: one; `b.py`: one **client**", None),
            ("`a.rs`: two", Some("a.rs has no function two")),
            ("`c.rs`: one", Some("there is no c.rs")),
            ("`a.rs`", Some("a.rs without a function")),
            ("**system**", Some("a mark that follows no test")),
            ("`a.rs`: one **real**", Some("unknown mark real")),
            ("`b.py`: one **system**", Some("mark it **client**")),
        ] {
            let page = format!("| `api.A.a` | no | {cell} |");
            let findings = untrue(&rows(&page)[0], &sources);
            let count = usize::from(expected.is_some());
            assert_eq!(findings.len(), count, "{cell}: {findings:?}");
            for (finding, part) in findings.iter().zip(expected) {
                assert!(finding.contains(part), "{finding}");
            }
        }
    }

    #[test]
    fn a_page_and_a_contract_that_differ() {
        let contract = BTreeSet::from(["api.A.a", "api.A.b"].map(str::to_owned));
        let counts = |rows: usize, fields: usize| {
            format!(
                "{rows} rows, {fields} fields; 0 rows are proven through a real system, \
                 0 through the published client; {rows} name no test.\n"
            )
        };
        for (page, expected) in [
            (counts(1, 2) + "| `api.A.a` `api.A.b` | x |\n", None),
            (
                counts(1, 1) + "| `api.A.a` | x |\n",
                Some("api.A.b is in no row"),
            ),
            (
                counts(2, 3) + "| `api.A.a` `api.A.b` | x |\n| `api.A.b` | x |\n",
                Some("api.A.b is in 2 rows"),
            ),
            (
                counts(1, 3) + "| `api.A.a` `api.A.b` `api.A.c` | x |\n",
                Some("api.A.c is not in the contract"),
            ),
            (
                "| `api.A.a` `api.A.b` | x |\n".to_owned(),
                Some("the counts must read \"1 rows, 2 fields"),
            ),
        ] {
            let findings = compare(&contract, &page, &rows(&page));
            assert_eq!(
                findings.len(),
                usize::from(expected.is_some()),
                "{findings:?}"
            );
            for (finding, part) in findings.iter().zip(expected) {
                assert!(finding.contains(part), "{finding}");
            }
        }
    }
}
