//! The coverage page: every field of the public contract is in exactly one of its rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Findings;

/// The page with a row for each feature of the contract.
const PAGE: &str = "docs/reference/contract-coverage.md";
/// Folders of the public contract's schema.
const SCHEMA: [&str; 3] = [
    "proto/schema/metalstack/api/v2",
    "proto/schema/metalstack/admin/v2",
    "proto/schema/metalstack/infra/v2",
];
/// Marks a row whose test runs against a real system.
const REAL_SYSTEM: &str = "**system**";

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
    Ok(compare(&contract, &page))
}

/// Names each field that is in no row or in several, and each that the contract does not have.
fn compare(contract: &BTreeSet<String>, page: &str) -> Findings {
    let rows = rows(page);
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
    let summary = summary(&rows);
    if !page.contains(&summary) {
        findings.push(format!("{PAGE}: the counts must read \"{summary}\""));
    }
    findings
}

/// The counts that stand at the start of the page.
fn summary(rows: &[Row<'_>]) -> String {
    let fields: usize = rows.iter().map(|row| row.fields.len()).sum();
    let real = rows.iter().filter(|row| row.is_system).count();
    let rows = rows.len();
    format!("{rows} rows, {fields} fields; {real} rows are proven through a real system.")
}

/// A row of the page's tables.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    /// The fields in the first cell, each in backticks.
    fields: Vec<&'a str>,
    /// `true` if the row's test runs against a real system.
    is_system: bool,
}

/// The rows that name fields; heads and rulers of tables do not.
fn rows(page: &str) -> Vec<Row<'_>> {
    page.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row<'_>> {
    let (first, rest) = line.strip_prefix("| ")?.split_once(" |")?;
    let fields: Vec<&str> = first.split('`').skip(1).step_by(2).collect();
    (!fields.is_empty()).then(|| Row {
        fields,
        is_system: rest.contains(REAL_SYSTEM),
    })
}

/// The fields of a `.proto` file's messages, as `api.Message.field`.
fn fields(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut package = "";
    // The message that each open block belongs to, outermost first.
    let mut blocks: Vec<Option<String>> = Vec::new();
    let mut statement: Vec<&str> = Vec::new();
    let mut brackets = 0_usize;
    for token in tokens(text) {
        match token {
            "[" => brackets += 1,
            "]" => brackets = brackets.saturating_sub(1),
            // Options of a field may hold blocks of their own.
            _ if brackets > 0 => {}
            "{" => {
                let around = blocks.last().and_then(Option::as_deref);
                let message = opened(package, around, &statement);
                blocks.push(message);
                statement.clear();
            }
            "}" => {
                blocks.pop();
                statement.clear();
            }
            ";" => {
                if let ["package", name] = statement[..] {
                    package = name.split('.').nth(1).unwrap_or(name);
                }
                let message = blocks.last().and_then(Option::as_deref);
                if let (Some(message), Some(field)) = (message, field_name(&statement)) {
                    found.push(format!("{message}.{field}"));
                }
                statement.clear();
            }
            _ => statement.push(token),
        }
    }
    found
}

/// The message whose fields a block holds. `None` for enums, services, extensions and options.
fn opened(package: &str, around: Option<&str>, statement: &[&str]) -> Option<String> {
    match statement {
        ["message", name] => Some(format!("{}.{name}", around.unwrap_or(package))),
        ["oneof", _] => around.map(str::to_owned),
        _ => None,
    }
}

/// The name of the field that a statement in a message declares. `None` for other statements.
fn field_name<'a>(statement: &[&'a str]) -> Option<&'a str> {
    if matches!(statement.first(), None | Some(&("option" | "reserved"))) {
        return None;
    }
    let assigned = statement.iter().position(|token| *token == "=")?;
    statement.get(assigned.checked_sub(1)?).copied()
}

/// Words, string literals and single signs, without comments.
fn tokens(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_line = rest.starts_with("//");
        let is_block = rest.starts_with("/*");
        let end = match first {
            _ if is_line => rest.find('\n'),
            _ if is_block => rest.find("*/").map(|at| at + 2),
            '"' | '\'' => literal_end(rest, first),
            _ if is_word(first) => rest.find(|c| !is_word(c)),
            _ => Some(first.len_utf8()),
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        if !is_line && !is_block {
            found.push(token);
        }
        rest = after.trim_start();
    }
    found
}

/// The end of the string literal that `text` begins with. `None` if it has none.
fn literal_end(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return Some(at + c.len_utf8());
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{compare, fields, rows};

    #[test]
    fn fields_of_schemas() {
        let package = "syntax = \"proto3\"; package metalstack.api.v2;";
        for (text, expected) in [
            ("message A {}", vec![]),
            ("message A { string a = 1; }", vec!["api.A.a"]),
            ("message A { optional b.C a = 1; }", vec!["api.A.a"]),
            ("message A { repeated string a = 1; }", vec!["api.A.a"]),
            ("message A { map<string, B> a = 1; }", vec!["api.A.a"]),
            (
                "message A { oneof b { option (c).required = true; D d = 1; E e = 2; } F f = 3; }",
                vec!["api.A.d", "api.A.e", "api.A.f"],
            ),
            (
                "message A { message B { string b = 1; } B a = 2; }",
                vec!["api.A.B.b", "api.A.a"],
            ),
            (
                "message A { enum B { C = 0; } reserved 1; B a = 2; }",
                vec!["api.A.a"],
            ),
            (
                "message A { string a = 1 [(v).cel = { id: \"}\", x: \"it's\" }, (w) = true]; }",
                vec!["api.A.a"],
            ),
            (
                "// message Z { string z = 1; }\nmessage A { /* b */ string a = 1; // c = 2;\n}",
                vec!["api.A.a"],
            ),
            (
                "message A { option (b) = { c: 1 }; string a = 1; }",
                vec!["api.A.a"],
            ),
            (
                "service S { rpc Get(A) returns (B) { option (c) = D; } }\nenum E { F = 0; }",
                vec![],
            ),
            ("extend b.C { bool d = 1 [(e) = { f: \"g\" }]; }", vec![]),
        ] {
            assert_eq!(fields(&format!("{package}{text}")), expected, "{text}");
        }
    }

    #[test]
    fn rows_of_pages() {
        for (line, expected) in [
            ("no table: `api.A.a`", None),
            ("| feature | stored | reaches | tested by |", None),
            ("|---|---|---|---|", None),
            (
                "| `api.A.a` | `A.a` | `b` | `c.rs` |",
                Some((vec!["api.A.a"], false)),
            ),
            (
                "| `api.A.a` `api.A.b` | no | clients | `c.rs` **system** |",
                Some((vec!["api.A.a", "api.A.b"], true)),
            ),
        ] {
            let found = rows(line).pop().map(|row| (row.fields, row.is_system));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn a_page_and_a_contract_that_differ() {
        let contract = BTreeSet::from(["api.A.a", "api.A.b"].map(str::to_owned));
        let counts = |rows: usize, fields: usize| {
            format!("{rows} rows, {fields} fields; 0 rows are proven through a real system.\n")
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
            let findings = compare(&contract, &page);
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
