mod alerts;

use std::collections::BTreeSet;

use clap::Parser as _;
use proto_errors::{ErrorCode, IssueCode};

use super::page::{PAGES, PARTS};
use super::*;
use crate::cmd::CommandLine;

/// Pages of the operations guide. A test of the server runs the commands of the drills.
const GUIDES: [&str; 4] = [
    include_str!("../../../../../../docs/operations/sizing.md"),
    include_str!("../../../../../../docs/operations/ports.md"),
    include_str!("../../../../../../docs/operations/certificates.md"),
    include_str!("../../../../../../docs/operations/service-levels.md"),
];

fn of_kind(kind: &str) -> Vec<Explanation> {
    let all = page::explanations().into_iter();
    all.filter(|found| found.page.kind == kind).collect()
}

/// Values of the words in capitals that stand for something other than any text.
fn example(word: &str) -> &str {
    match word {
        "NUMBER" | "NODE" => "2",
        "KIND" => "core",
        word => word,
    }
}

/// The commands of `metalmesh` in backticks of a text.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted
        .flat_map(|quoted| quoted.split(" && "))
        .filter(|command| command.starts_with("metalmesh "))
}

#[test]
fn every_error_has_a_section_and_every_section_an_error() {
    let mut codes = ErrorCode::ALL.to_vec();
    codes.sort_by_key(|code| code.number());
    let sections = of_kind("error");
    let named: Vec<String> = codes.iter().map(ToString::to_string).collect();
    let there: Vec<&str> = sections.iter().map(|found| found.code).collect();
    assert_eq!(there, named, "docs/reference/errors.md, in order");
    for (code, found) in codes.iter().zip(&sections) {
        let kind = serde_json::to_value(code.kind()).unwrap();
        let kind = kind.as_str().unwrap().to_ascii_uppercase();
        let title = found.title().replace('`', "");
        assert_eq!(title, format!("{} ({kind})", code.title()), "{code}");
        let remedy = found.part("Remedy");
        assert!(remedy.contains(code.hint()), "{code}: {}", code.hint());
    }
}

#[test]
fn every_issue_has_a_section() {
    let there: Vec<&str> = of_kind("issue").iter().map(|found| found.code).collect();
    let all: Vec<&str> = IssueCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(there, all, "docs/reference/issues.md, in order");
}

#[test]
fn every_section_is_whole_and_has_its_own_code() {
    let mut codes = BTreeSet::new();
    for found in page::explanations() {
        let code = found.code;
        assert!(codes.insert(code.to_ascii_lowercase()), "{code} is twice");
        assert!(!found.title().is_empty(), "{code} has no title");
        for part in PARTS {
            let begun = found.text.matches(&format!("\n{part}: ")).count();
            assert_eq!(begun, 1, "{code}: the lines that begin with {part}");
            assert!(!found.part(part).is_empty(), "{code}: {part} is empty");
        }
        let order = PARTS.map(|part| found.text.find(&format!("\n{part}: ")));
        assert!(order.is_sorted(), "{code}: the parts are in another order");
    }
    // A section that is not found would be missing in the list alone.
    let headings = PAGES.iter().map(|page| page.text.matches("\n## ").count());
    assert_eq!(headings.sum::<usize>(), codes.len());
}

/// Parses a command, with values for the words in capitals.
fn parse(of: &str, command: &str) {
    let parsed = CommandLine::try_parse_from(command.split(' ').map(example));
    let error = parsed.err().map(|error| error.to_string());
    assert_eq!(error, None, "{of}: {command}");
}

#[test]
fn every_command_of_the_operations_guide_exists() {
    let mut count = 0;
    for guide in GUIDES {
        let title = guide.lines().next().unwrap();
        let lines = guide.lines().map(|line| line.split("  #").next().unwrap());
        let lines = lines
            .map(str::trim)
            .filter(|line| line.starts_with("metalmesh "));
        for command in commands(guide).chain(lines) {
            parse(title, command);
            count += 1;
        }
    }
    assert!(count > 15, "{count}");
}

#[test]
fn every_command_of_a_section_exists() {
    let mut count = 0;
    for found in page::explanations() {
        for command in commands(found.text) {
            parse(found.code, command);
            count += 1;
        }
    }
    assert!(count > 300, "{count}");
}

#[test]
fn every_finding_of_the_doctor_has_commands() {
    for found in of_kind("check").iter().chain(&of_kind("issue")) {
        for part in ["Detect", "Verify"] {
            let text = found.part(part);
            let count = commands(&text).count();
            assert!(count > 0, "{}: {part} names no command", found.code);
        }
        let remedy = found.part("Remedy");
        assert!(remedy.contains('`'), "{}: no command: {remedy}", found.code);
    }
}

#[test]
fn codes_are_found_however_they_are_written() {
    let all = page::explanations();
    for (wanted, expected) in [
        ("MM-1203", "MM-1203"),
        ("mm-1203", "MM-1203"),
        ("1203", "MM-1203"),
        (" 1203 ", "MM-1203"),
        ("disk", "disk"),
        ("Crashloop", "crashloop"),
    ] {
        assert_eq!(find(&all, wanted).unwrap().code, expected, "{wanted}");
    }
    let long = "x".repeat(10_000);
    for (wanted, suggested) in [
        ("MM-12033", "MM-1203"),
        ("MM-9203", "MM-1203"),
        ("disc", "disk"),
        ("crash-loop", "crashloop"),
        ("", "api"),
        (long.as_str(), "metalmesh explain"),
    ] {
        let error = find(&all, wanted).unwrap_err().to_string();
        assert!(error.contains(suggested), "{wanted}: {error}");
        assert!(error.len() < 300, "{}", error.len());
    }
}

#[test]
fn a_section_is_printed_as_it_is_and_as_an_object() {
    let all = page::explanations();
    let found = find(&all, "MM-1203").unwrap();
    let printed = found.to_string();
    let (code, text) = printed.split_once("\n\n").unwrap();
    let page = include_str!("../../../../../../docs/reference/errors.md");
    assert_eq!(code, "MM-1203");
    assert!(
        page.contains(&format!("## MM-1203\n\n{text}\n\n## ")),
        "{text}"
    );
    let json = found.json();
    for (field, expected) in [
        ("code", "MM-1203"),
        ("kind", "error"),
        ("title", "No machine is available (RESOURCE_EXHAUSTED)"),
        ("doc", "docs/reference/errors.md#mm-1203"),
    ] {
        assert_eq!(json[field], expected);
    }
    for part in PARTS {
        let field = part.to_ascii_lowercase();
        assert_eq!(json[&field], found.part(part), "{field}");
    }
    // A part of several lines.
    let remedy = find(&all, "leader").unwrap().part("Remedy");
    assert!(
        remedy.lines().count() > 1 && !remedy.contains("Verify"),
        "{remedy}"
    );
}
