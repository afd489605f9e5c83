//! The hits of the rules. `./dev check` refuses every one.

use super::Findings;
use super::rules::{Hit, RULES, Rule};
use super::source::Source;

/// Most hits of a rule that the check names; it counts the rest.
const HITS_SHOWN_MAX: usize = 20;

/// The hits of every rule, rule by rule in the order of `RULES`.
pub(crate) struct Hits(pub(crate) Vec<Vec<Hit>>);

impl Hits {
    pub(crate) fn of(sources: &[Source]) -> Self {
        Self(RULES.iter().map(|rule| (rule.find)(sources)).collect())
    }
}

pub(crate) fn check(sources: &[Source]) -> Findings {
    let hits = Hits::of(sources);
    RULES.iter().zip(&hits.0).flat_map(findings).collect()
}

/// Names the rule and its advice, then its hits.
fn findings((rule, hits): (&Rule, &Vec<Hit>)) -> Findings {
    if hits.is_empty() {
        return Findings::new();
    }
    let mut lines = vec![format!("{}: {}", rule.name, rule.advice)];
    let shown = hits.iter().take(HITS_SHOWN_MAX);
    lines.extend(shown.map(|hit| format!("  {}:{}: {}", hit.path, hit.line, hit.what)));
    if hits.len() > HITS_SHOWN_MAX {
        let more = hits.len() - HITS_SHOWN_MAX;
        lines.push(format!(
            "  and {more} more: ./dev measure --list {}",
            rule.name
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{Hit, RULES, findings};

    #[test]
    fn every_hit_is_refused_and_the_first_are_named() {
        let hit = Hit {
            krate: "control-a".to_owned(),
            path: "a.rs".to_owned(),
            line: 7,
            what: "A".to_owned(),
        };
        for (number, lines) in [(0, 0), (1, 2), (20, 21), (99, 22)] {
            let found = findings((&RULES[0], &vec![hit.clone(); number]));
            assert_eq!(found.len(), lines, "{found:?}");
        }
        let found = findings((&RULES[0], &vec![hit]));
        assert!(found[0].contains(RULES[0].advice), "{found:?}");
        assert!(found[1].contains("a.rs:7: A"), "{found:?}");
    }
}
