//! Rows of `metalmesh policy lint`: callers with the same change of the same rule share one.

use control_oslo::{AccessChange, CallAccess, DangerKind, ObjectSituation, RegisteredRule};

/// Sample callers in groups that a row may name by one word, and the number of each.
const GROUPS: [(&str, usize); 4] = [("system-", 5), ("owner-", 6), ("lessee-", 6), ("other-", 6)];

/// A change of a rule, and the callers that it has.
#[derive(Debug)]
pub(super) struct LintRow<'a> {
    rule: &'static RegisteredRule,
    effect: LintEffect,
    personas: Vec<&'a str>,
}

/// A change as one row shows it.
#[derive(Debug, PartialEq, Eq)]
struct LintEffect {
    word: &'static str,
    situations: Vec<ObjectSituation>,
    danger: Option<DangerKind>,
}

/// Changes as rows, in the order of the rules.
pub(super) fn rows(changes: &[AccessChange]) -> Vec<LintRow<'_>> {
    let mut rows: Vec<LintRow<'_>> = Vec::new();
    let of_persona = |one: &AccessChange, next: &AccessChange| {
        one.rule.name == next.rule.name && one.persona == next.persona
    };
    for run in changes.chunk_by(of_persona) {
        for (rule, persona, effect) in effects(run) {
            let same = rows
                .iter_mut()
                .rev()
                .take_while(|row| row.rule.name == rule.name)
                .find(|row| row.effect == effect);
            match same {
                Some(row) => row.personas.push(persona),
                None => rows.push(LintRow {
                    rule,
                    effect,
                    personas: vec![persona],
                }),
            }
        }
    }
    rows
}

/// The effects of one rule on one caller: objects with the same change belong together.
fn effects(run: &[AccessChange]) -> Vec<(&'static RegisteredRule, &str, LintEffect)> {
    let mut found: Vec<(&'static RegisteredRule, &str, LintEffect)> = Vec::new();
    for change in run {
        let word = word(change);
        let same = found
            .iter_mut()
            .find(|(_, _, effect)| effect.word == word && effect.danger == change.danger);
        match same {
            Some((_, _, effect)) => effect.situations.push(change.situation),
            None => {
                let effect = LintEffect {
                    word,
                    situations: vec![change.situation],
                    danger: change.danger,
                };
                found.push((change.rule, change.persona.as_str(), effect));
            }
        }
    }
    found
}

fn word(change: &AccessChange) -> &'static str {
    match (change.is_gain(), change.after) {
        (true, CallAccess::Hidden) => "would gain",
        (true, _) => "gains",
        (false, _) => "loses",
    }
}

impl LintRow<'_> {
    /// The cells, those of wide tables alone last.
    pub(super) fn cells(&self) -> [String; 6] {
        [
            self.rule.name.to_owned(),
            self.effect.word.to_owned(),
            callers(&self.personas),
            self.objects(),
            self.effect.danger.map_or("-", Into::into).to_owned(),
            self.rule.calls.join(", "),
        ]
    }

    fn objects(&self) -> String {
        let all = ObjectSituation::of(self.rule.subject);
        match self.effect.situations.as_slice() {
            [ObjectSituation::NoObject] => "-".to_owned(),
            some if some.len() == all.len() => "any".to_owned(),
            some => {
                let names: Vec<&str> = some.iter().map(Into::into).collect();
                names.join(", ")
            }
        }
    }
}

/// Names of callers; a whole group is one word.
fn callers(personas: &[&str]) -> String {
    let mut names: Vec<String> = Vec::new();
    for persona in personas {
        let group = GROUPS.into_iter().find(|(prefix, size)| {
            let members = personas.iter().filter(|name| name.starts_with(prefix));
            persona.starts_with(prefix) && members.count() == *size
        });
        let name = match group {
            Some((prefix, _)) => format!("{prefix}*"),
            None => (*persona).to_owned(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use control_oslo::{PolicyFile, PolicyLint};

    use super::rows;

    #[test]
    fn callers_with_the_same_change_share_a_row() {
        let file = r#"
baremetal:node:validate: role:admin
baremetal:node:list: '@'
show_password: role:admin and system_scope:all
"#;
        let lint = PolicyLint::of(&PolicyFile::parse(file).unwrap()).unwrap();
        let rows: Vec<String> = rows(&lint.changes)
            .iter()
            .map(|row| row.cells()[..5].join(" | "))
            .collect();
        assert_eq!(
            rows,
            [
                "show_password | gains | system-admin | - | passwords",
                "baremetal:node:list | gains | owner-none, lessee-none, other-none | - | -",
                "baremetal:node:validate | loses | system-manager, system-member, \
                 system-service, elevated-service | any | -",
                "baremetal:node:validate | would gain | owner-admin | leased, unowned | \
                 foreign-objects",
                "baremetal:node:validate | loses | owner-manager, owner-member, owner-service | \
                 owned-and-leased, owned | -",
                "baremetal:node:validate | would gain | lessee-admin | owned, unowned | \
                 foreign-objects",
                "baremetal:node:validate | loses | lessee-manager | owned-and-leased, leased | -",
                "baremetal:node:validate | would gain | other-admin | any | foreign-objects",
            ]
        );
    }

    #[test]
    fn whole_groups_are_one_word() {
        let all = [
            "other-a", "other-b", "other-c", "other-d", "other-e", "other-f",
        ];
        assert_eq!(super::callers(&all), "other-*");
        assert_eq!(
            super::callers(&["owner-admin", "other-none"]),
            "owner-admin, other-none"
        );
    }
}
