//! Holds our contract against the published Python package `metal-stack-api`: the same
//! descriptors, and the same verdicts of the published validator.
//!
//! Needs `python3` with `venv` and a way to PyPI (or `PIP_INDEX_URL`, `PIP_FIND_LINKS`);
//! where they are missing the test says so and is skipped, unless `CONFORMANCE=required`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop")]
#![allow(clippy::print_stdout, reason = "shows what was compared, or why not")]

mod facts;
mod python;

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::time::SystemTime;

use prost_reflect::{DescriptorPool, DynamicMessage};

/// The version we promise to be wire-equal to.
const PUBLISHED: &str = "metal-stack-api==0.8.4";
/// Differences shown before the rest is only counted.
const SHOWN_MAX: usize = 40;

#[test]
fn equal_to_the_published_package() {
    let python = match python::Python::with(PUBLISHED) {
        Ok(python) => python,
        Err(reason) => {
            let required = std::env::var("CONFORMANCE").is_ok_and(|v| v == "required");
            assert!(!required, "CONFORMANCE=required, but {reason}");
            return println!("skipped: {reason}");
        }
    };
    descriptors(&python);
    verdicts(&python);
}

fn descriptors(python: &python::Python) {
    let file = python.run("descriptors.py", "published.bin").unwrap();
    let published = DescriptorPool::decode(&std::fs::read(file).unwrap()[..]).unwrap();
    let theirs = facts::Facts::read(&published);
    let ours = facts::Facts::read(proto_public::pool());
    println!("published: {theirs}");
    println!("ours:      {ours}");
    let different = differences(&theirs.all, &ours.all);
    show(&different);
    assert!(
        different.is_empty(),
        "the contract differs from {PUBLISHED}"
    );
    // The numbers of reference: a reader that reads nothing would agree with itself.
    let counts = [
        theirs.services,
        theirs.methods,
        theirs.messages,
        theirs.enums,
        theirs.fields,
    ];
    assert_eq!(counts, [39, 152, 424, 39, 1182]);
}

fn differences(theirs: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> Vec<String> {
    let keys: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
    let show = |side: Option<&String>| side.map_or("(none)", String::as_str).to_owned();
    keys.into_iter()
        .filter(|k| theirs.get(*k) != ours.get(*k))
        .map(|k| {
            format!(
                "{k}\n  - {}\n  + {}",
                show(theirs.get(k)),
                show(ours.get(k))
            )
        })
        .collect()
}

/// A violation: field path and rule id.
type Verdict = BTreeSet<(String, String)>;

fn verdicts(python: &python::Python) {
    let file = python.run("verdicts.py", "verdicts.jsonl").unwrap();
    let lines = std::io::BufReader::new(std::fs::File::open(file).unwrap()).lines();
    let (mut messages, mut violations, mut kinds) = (0, 0, BTreeSet::new());
    let mut different = Vec::new();
    for line in lines {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let name = line["type"].as_str().unwrap();
        let message = decode(name, line["bytes"].as_str().unwrap());
        let theirs = theirs(&line["violations"]);
        let ours = ours(&message);
        messages += 1;
        violations += theirs.len();
        kinds.extend(theirs.iter().map(|(_, rule)| rule.clone()));
        if !agree(&theirs, &ours) {
            let only =
                |a: &Verdict, b: &Verdict| format!("{:?}", a.difference(b).collect::<Vec<_>>());
            different.push(format!(
                "{name} {message}\n  - {}\n  + {}",
                only(&theirs, &ours),
                only(&ours, &theirs)
            ));
        }
    }
    println!(
        "verdicts: {messages} messages, {violations} violations of {} rules, {} differences",
        kinds.len(),
        different.len()
    );
    show(&different);
    assert!(different.is_empty(), "our validator judges differently");
    assert!(
        messages > 10_000 && kinds.len() > 40,
        "too few cases to mean anything"
    );
}

/// We stop after a number of violations: then ours are among theirs.
fn agree(theirs: &Verdict, ours: &Verdict) -> bool {
    theirs == ours || ours.len() >= REPORTED_FULL && ours.is_subset(theirs)
}

/// A full report may hold a field and rule twice, so the set can be a little smaller than the
/// limit of twenty.
const REPORTED_FULL: usize = 15;

fn decode(name: &str, bytes: &str) -> DynamicMessage {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(bytes)
        .unwrap();
    DynamicMessage::decode(proto_public::message(name).unwrap(), &bytes[..]).unwrap()
}

fn theirs(violations: &serde_json::Value) -> Verdict {
    let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    violations
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (text(&v[0]), text(&v[1])))
        .collect()
}

fn ours(message: &DynamicMessage) -> Verdict {
    match proto_public::validate(message, SystemTime::now()) {
        Ok(()) => Verdict::new(),
        Err(found) => found
            .iter()
            .map(|v| (v.field.clone(), v.rule.to_owned()))
            .collect(),
    }
}

fn show(different: &[String]) {
    for text in different.iter().take(SHOWN_MAX) {
        println!("{text}");
    }
    if different.len() > SHOWN_MAX {
        println!("… and {} more", different.len() - SHOWN_MAX);
    }
}
