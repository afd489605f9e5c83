//! SPECIFICATION.md: every promise has an id, is one sentence, and names tests that are there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Findings;
use super::named_tests::{self, NamedTests, Sources};

const PAGE: &str = "SPECIFICATION.md";
/// Promises that the page may have: as many as people read. One more takes the place of another.
const PROMISES_MAX: usize = 70;

/// A row of the page: id, promise and tests.
struct Promise<'a> {
    /// Heading of the section that has it.
    section: &'a str,
    id: &'a str,
    text: &'a str,
    tests: Vec<NamedTests>,
}

/// Id of a promise: the letter of its section, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id {
    letter: char,
    number: u32,
}

pub(crate) fn check(root: &Path) -> Result<Findings> {
    let page =
        fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let (promises, mut findings) = promises(&page);
    let named = promises.iter().flat_map(|promise| &promise.tests);
    let sources = named_tests::load(root, named.map(|tests| tests.path.as_str()));
    findings.extend(judge(&promises, &sources));
    Ok(findings)
}

/// The rows of all sections, and a finding for each row of another shape.
fn promises(page: &str) -> (Vec<Promise<'_>>, Findings) {
    let (mut found, mut findings) = (Vec::new(), Findings::new());
    for part in page.split("\n## ").skip(1) {
        let section = part.lines().next().unwrap_or_default();
        for cells in named_tests::table_rows(part) {
            if let [id, text, tests] = cells[..] {
                let tests = named_tests::named_tests(tests);
                found.push(Promise {
                    section,
                    id,
                    text,
                    tests,
                });
            } else {
                let row = cells.join(" | ");
                findings.push(format!("{PAGE}: \"{row}\": write id | promise | tests"));
            }
        }
    }
    (found, findings)
}

fn judge(promises: &[Promise<'_>], sources: &Sources) -> Findings {
    let mut findings = Findings::new();
    if promises.len() > PROMISES_MAX {
        let count = promises.len();
        findings.push(format!(
            "{PAGE}: {count} promises, at most {PROMISES_MAX}; remove the one that matters least"
        ));
    }
    for promise in promises {
        let mut wrong: Vec<String> = promise
            .tests
            .iter()
            .flat_map(|tests| named_tests::missing(tests, sources))
            .collect();
        if promise.tests.iter().all(|tests| tests.functions.is_empty()) {
            wrong.push("names no test; write `path`: function".to_owned());
        }
        if !is_one_sentence(promise.text) {
            wrong.push("a promise is one sentence that ends with a full stop".to_owned());
        }
        let lines = wrong.iter();
        findings.extend(lines.map(|line| format!("{PAGE}: {}: {line}", promise.id)));
    }
    findings.extend(misnumbered(promises));
    findings
}

/// Names ids of another form, ids that do not ascend, and letters of two sections.
fn misnumbered(promises: &[Promise<'_>]) -> Findings {
    let mut findings = Findings::new();
    let mut sections: BTreeMap<char, &str> = BTreeMap::new();
    let mut last: Option<(&str, Id)> = None;
    for promise in promises {
        let Some(id) = parse_id(promise.id) else {
            let id = promise.id;
            findings.push(format!(
                "{PAGE}: \"{id}\" is no id; write a letter and a number: D1"
            ));
            continue;
        };
        let owner = *sections.entry(id.letter).or_insert(promise.section);
        if owner != promise.section {
            findings.push(format!(
                "{PAGE}: {}: the letter {} belongs to the section \"{owner}\"",
                promise.id, id.letter
            ));
        }
        if let Some((section, before)) = last
            && section == promise.section
            && (before.letter != id.letter || before.number >= id.number)
        {
            findings.push(format!(
                "{PAGE}: {}: ids of a section have one letter and ascend",
                promise.id
            ));
        }
        last = Some((promise.section, id));
    }
    findings
}

fn parse_id(text: &str) -> Option<Id> {
    let letter = text.chars().next().filter(char::is_ascii_uppercase)?;
    let digits = &text[1..];
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|sign| sign.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_plain)?;
    Some(Id { letter, number })
}

/// `true` if the text ends with the one full stop that ends a sentence.
fn is_one_sentence(text: &str) -> bool {
    let ends = [". ", "? ", "! "];
    text.ends_with('.') && !ends.iter().any(|end| text.contains(end))
}

#[cfg(test)]
mod tests {
    use super::{PROMISES_MAX, Sources, judge, promises};

    const GOOD: &str = "`a.rs`: one";

    fn findings(rows: &[(&str, &str, &str)]) -> Vec<String> {
        let mut page = "# S\n\n## A\n\n| id | promise | test |\n|---|---|---|\n".to_owned();
        for (id, promise, tests) in rows {
            if *id == "##" {
                page += "\n## B\n\n| id | promise | test |\n|---|---|---|\n";
            } else {
                page += &format!("| {id} | {promise} | {tests} |\n");
            }
        }
        let sources = Sources::from([("a.rs".to_owned(), "fn one() {}".to_owned())]);
        let (promises, mut findings) = promises(&page);
        findings.extend(judge(&promises, &sources));
        findings
    }

    #[test]
    fn promises_that_are_wrong() {
        for (id, promise, tests, expected) in [
            ("A1", "It holds.", GOOD, None),
            ("A1", "It holds 0.5 s, see a.b.", GOOD, None),
            ("A1", "It holds", GOOD, Some("is one sentence")),
            ("A1", "It holds. Always.", GOOD, Some("is one sentence")),
            ("A1", "It holds.", "", Some("names no test")),
            ("A1", "It holds.", "`a.rs`", Some("names no test")),
            ("A1", "It holds.", "`a.rs`: two", Some("no function two")),
            ("A1", "It holds.", "`b.rs`: one", Some("there is no b.rs")),
            (
                "A1",
                "It holds.",
                "`a.rs`: one | x",
                Some("write id | promise"),
            ),
            ("1", "It holds.", GOOD, Some("is no id")),
            ("A01", "It holds.", GOOD, Some("is no id")),
            ("A", "It holds.", GOOD, Some("is no id")),
        ] {
            let found = findings(&[(id, promise, tests)]);
            let count = usize::from(expected.is_some());
            assert_eq!(found.len(), count, "{id} {promise} {tests}: {found:?}");
            for (line, part) in found.iter().zip(expected) {
                assert!(line.contains(part), "{line}");
            }
        }
    }

    #[test]
    fn ids_that_are_wrong() {
        for (ids, expected) in [
            (vec!["A1", "A2", "A4"], None),
            (vec!["A1", "##", "B1", "B2"], None),
            (vec!["A2", "A1"], Some("ascend")),
            (vec!["A1", "A1"], Some("ascend")),
            (vec!["A1", "B2"], Some("have one letter")),
            (vec!["A1", "##", "A2"], Some("belongs to the section \"A\"")),
        ] {
            let rows: Vec<_> = ids.iter().map(|id| (*id, "It holds.", GOOD)).collect();
            let found = findings(&rows);
            assert_eq!(
                found.len(),
                usize::from(expected.is_some()),
                "{ids:?}: {found:?}"
            );
            for (line, part) in found.iter().zip(expected) {
                assert!(line.contains(part), "{line}");
            }
        }
    }

    #[test]
    fn promises_are_bounded() {
        let ids: Vec<String> = (1..=PROMISES_MAX + 1).map(|n| format!("A{n}")).collect();
        let rows: Vec<_> = ids
            .iter()
            .map(|id| (id.as_str(), "It holds.", GOOD))
            .collect();
        assert_eq!(findings(&rows[1..]), [""; 0]);
        assert_eq!(findings(&rows).len(), 1);
    }
}
