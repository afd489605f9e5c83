//! The budget of the rules: how many hits of each a crate still may have.
//!
//! `budget.toml` is a ratchet. More hits than it says fail the check, and so do fewer, so that a
//! number that went down cannot go up again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Findings;
use super::rules::{Hit, RULES, Rule};
use super::source::Source;

/// Where the numbers are.
const FILE: &str = "xtask/src/check/budget.toml";
const HEAD: &str = "\
# Hits of each rule that a crate still may have; a crate without a line may have none.
# `./dev check` fails on more and on fewer. `./dev fix` lowers the numbers to what there is;
# `./dev budget` writes what there is, also where it is more: after a merge, and in a commit that
# says why.
";
/// Hits of a crate that a finding names.
const HITS_SHOWN_MAX: usize = 20;

/// Numbers by rule and crate.
pub(crate) type Counts = BTreeMap<String, BTreeMap<String, usize>>;

/// The hits of every rule, rule by rule in the order of `RULES`.
pub(crate) struct Found(pub(crate) Vec<Vec<Hit>>);

impl Found {
    pub(crate) fn of(sources: &[Source]) -> Self {
        Self(RULES.iter().map(|rule| (rule.find)(sources)).collect())
    }

    /// Hits of each rule, counted by crate.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::new();
        for (rule, hits) in RULES.iter().zip(&self.0) {
            let by_crate = counts.entry(rule.name.to_owned()).or_default();
            for hit in hits {
                *by_crate.entry(hit.krate.clone()).or_default() += 1;
            }
        }
        counts
    }
}

/// Compares the hits that there are with the budget.
pub(crate) fn check(root: &Path, sources: &[Source]) -> Result<Findings> {
    Ok(compare(&Found::of(sources), &read(root)?))
}

fn compare(found: &Found, budget: &Counts) -> Findings {
    let mut findings = Findings::new();
    let counts = found.counts();
    for (rule, hits) in RULES.iter().zip(&found.0) {
        let present = counts.get(rule.name);
        let tolerated = budget.get(rule.name);
        let mut crates: Vec<&String> = [present, tolerated]
            .into_iter()
            .flatten()
            .flat_map(BTreeMap::keys)
            .collect();
        crates.sort();
        crates.dedup();
        for krate in crates {
            let number = |counts: Option<&BTreeMap<String, usize>>| {
                counts
                    .and_then(|counts| counts.get(krate))
                    .copied()
                    .unwrap_or(0)
            };
            let (have, may) = (number(present), number(tolerated));
            if have > may {
                findings.extend(too_many(rule, krate, hits, may));
            } else if have < may {
                findings.push(format!(
                    "{FILE}: [{}] {krate} = {may}, and there are {have} now: write {have}, or run \
                     ./dev fix",
                    rule.name
                ));
            }
        }
    }
    let is_rule = |name: &&String| RULES.iter().any(|rule| rule.name == **name);
    let unknown = budget.keys().filter(|name| !is_rule(name));
    findings.extend(unknown.map(|name| format!("{FILE}: there is no rule {name}; remove it")));
    findings
}

/// Names the rule, then the hits of the crate.
fn too_many(rule: &Rule, krate: &str, hits: &[Hit], may: usize) -> Findings {
    let hits: Vec<&Hit> = hits.iter().filter(|hit| hit.krate == krate).collect();
    let mut lines = vec![format!(
        "{}: {krate} has {}, and may have {may}: {}",
        rule.name,
        hits.len(),
        rule.advice
    )];
    let shown = hits.iter().take(HITS_SHOWN_MAX);
    lines.extend(shown.map(|hit| format!("  {}:{}: {}", hit.path, hit.line, hit.what)));
    if hits.len() > HITS_SHOWN_MAX {
        lines.push(format!(
            "  and {} more: ./dev measure --list {} --package {krate}",
            hits.len() - HITS_SHOWN_MAX,
            rule.name
        ));
    }
    lines
}

/// Lowers each number to the hits that there are; raises none.
pub(crate) fn lower(root: &Path, sources: &[Source]) -> Result<()> {
    let found = Found::of(sources).counts();
    write(root, &lowered(read(root)?, &found))
}

fn lowered(mut budget: Counts, found: &Counts) -> Counts {
    for (rule, by_crate) in &mut budget {
        let present = found.get(rule);
        for (krate, number) in by_crate.iter_mut() {
            let have = present.and_then(|counts| counts.get(krate)).copied();
            *number = (*number).min(have.unwrap_or(0));
        }
    }
    budget
}

/// Writes the hits that there are, also where they are more than before.
pub(crate) fn rewrite(root: &Path, sources: &[Source]) -> Result<()> {
    write(root, &Found::of(sources).counts())
}

fn write(root: &Path, counts: &Counts) -> Result<()> {
    fs::write(root.join(FILE), text(counts)).with_context(|| format!("cannot write {FILE}"))
}

/// The budget as a file, without lines that say 0.
fn text(counts: &Counts) -> String {
    let mut text = HEAD.to_owned();
    for rule in RULES {
        let mut lines = String::new();
        for (krate, number) in counts.get(rule.name).into_iter().flatten() {
            if *number > 0 {
                lines += &format!("{krate} = {number}\n");
            }
        }
        if !lines.is_empty() {
            text += &format!("\n[{}]\n{lines}", rule.name);
        }
    }
    text
}

fn read(root: &Path) -> Result<Counts> {
    let text =
        fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    toml::from_str(&text).with_context(|| FILE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Counts, Found, RULES, compare, lowered, text};
    use crate::check::rules::Hit;

    fn counts(rule: &str, krate: &str, number: usize) -> Counts {
        Counts::from([(rule.to_owned(), [(krate.to_owned(), number)].into())])
    }

    fn found(number: usize) -> Found {
        let hit = Hit {
            krate: "control-a".to_owned(),
            path: "a.rs".to_owned(),
            line: 7,
            what: "A".to_owned(),
        };
        let mut all = vec![Vec::new(); RULES.len()];
        all[0] = vec![hit; number];
        Found(all)
    }

    #[test]
    fn numbers_that_do_not_fit() {
        for (have, may, expected) in [
            (0, 0, vec![]),
            (2, 2, vec![]),
            (1, 0, vec!["control-a has 1, and may have 0", "a.rs:7: A"]),
            (1, 2, vec!["control-a = 2, and there are 1 now: write 1"]),
            (0, 1, vec!["control-a = 1, and there are 0 now: write 0"]),
        ] {
            let budget = counts(RULES[0].name, "control-a", may);
            let findings = compare(&found(have), &budget);
            assert_eq!(findings.len(), expected.len(), "{findings:?}");
            for (finding, part) in findings.iter().zip(expected) {
                assert!(finding.contains(part), "{finding}");
            }
        }
        assert_eq!(
            compare(&found(0), &counts("no-rule", "control-a", 0)).len(),
            1
        );
        assert_eq!(compare(&found(99), &Counts::new()).len(), 22);
    }

    #[test]
    fn a_budget_is_lowered_and_never_raised() {
        for (may, have, expected) in [(3, 2, 2), (2, 3, 2), (3, 0, 0)] {
            let name = RULES[0].name;
            let budget = lowered(counts(name, "control-a", may), &found(have).counts());
            assert_eq!(budget, counts(name, "control-a", expected));
        }
    }

    #[test]
    fn a_budget_is_read_as_it_was_written() {
        let budget = counts(RULES[0].name, "control-a", 3);
        let written = text(&budget);
        assert_eq!(
            toml::from_str::<Counts>(&written).expect("it is TOML"),
            budget
        );
        let nothing = text(&counts(RULES[0].name, "control-a", 0));
        assert!(!nothing.contains("control-a"), "{nothing}");
    }
}
