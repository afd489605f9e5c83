use serde_norway::Value;

use super::Problem;
use super::object_list::ObjectList;
use super::prefix_budget::PrefixBudget;
use crate::rule::Rule;

/// The rules of an object, or the reason why it has none.
pub(super) type Outcome = Result<Vec<Rule>, Problem>;

/// An object, and what became of it.
#[derive(Clone, Debug)]
struct KnownObject {
    value: Value,
    outcome: Outcome,
}

/// The objects of a list when it was last admitted. One that is unchanged is not checked again.
///
/// It holds the last list and nothing else, so that it is bounded as the list is.
#[derive(Debug, Default)]
pub(super) struct KnownObjects {
    /// `None` means that nothing is remembered.
    objects: Option<Vec<KnownObject>>,
}

impl KnownObjects {
    /// A list that is remembered from now on.
    pub(super) fn remembering() -> Self {
        Self {
            objects: Some(Vec::new()),
        }
    }

    /// Forgets what became of the objects, because what they depend on has changed.
    pub(super) fn forget(&mut self) {
        if let Some(objects) = &mut self.objects {
            objects.clear();
        }
    }

    /// Hands over the outcome of each object of a list in its order; one for whose prefixes there is
    /// no room is refused unread. `check` finds the outcome by the object and its place, and depends
    /// on nothing else.
    pub(super) fn admit(
        &mut self,
        list: ObjectList<'_>,
        prefixes: &mut PrefixBudget,
        check: impl Fn(&Value, usize) -> Outcome,
        mut take: impl FnMut(Outcome),
    ) {
        let values = list.values.iter().enumerate();
        let Some(known) = &mut self.objects else {
            for (index, value) in values {
                take(prefixes.bounded(|| list.place(index), || check(value, index)));
            }
            return;
        };
        let old = reusable(std::mem::take(known), list.values);
        for ((index, value), old) in values.zip(old) {
            let (own, known_outcome) = match old {
                Some(object) => (object.value, Some(object.outcome)),
                None => (value.clone(), None),
            };
            let read = || known_outcome.unwrap_or_else(|| check(value, index));
            let outcome = prefixes.bounded(|| list.place(index), read);
            take(outcome.clone());
            known.push(KnownObject {
                value: own,
                outcome,
            });
        }
        if prefixes.is_used_up() {
            // Objects that were refused unread depend on those before them.
            self.forget();
        }
    }
}

impl KnownObject {
    /// `true` if an object was written like this one.
    fn has(&self, value: &Value) -> bool {
        is_same(&self.value, value)
    }

    /// `true` if the outcome may be another one at another place: an object without a name has that
    /// of its place, and so has the problem of one whose name is not known.
    fn depends_on_place(&self) -> bool {
        let name = self.value.get("name").and_then(Value::as_str);
        self.outcome.is_err() || name.is_none_or(str::is_empty)
    }
}

/// `true` if both were written alike: equal, with their fields in the same order. To look up each
/// field, as `==` does, takes as long as to check the object.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Mapping(one), Value::Mapping(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|((key, value), (other_key, other))| {
                    is_same(key, other_key) && is_same(value, other)
                })
        }
        (Value::Sequence(one), Value::Sequence(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| is_same(one, other))
        }
        _ => one == other,
    }
}

/// For each object of a list the known one that has its outcome, if there is one: at the same place,
/// or moved by objects that came or went before it.
fn reusable(mut known: Vec<KnownObject>, list: &[Value]) -> Vec<Option<KnownObject>> {
    if known.len() == list.len() {
        let pairs = known.into_iter().zip(list);
        let unchanged = pairs.map(|(object, value)| object.has(value).then_some(object));
        return unchanged.collect();
    }
    let pairs = known.iter().zip(list);
    let begin = pairs
        .take_while(|(object, value)| object.has(value))
        .count();
    let pairs = known[begin..].iter().rev().zip(list[begin..].iter().rev());
    let behind = pairs
        .take_while(|(object, value)| object.has(value))
        .count();
    let moved = known.split_off(known.len() - behind);
    known.truncate(begin);
    let mut found: Vec<Option<KnownObject>> = known.into_iter().map(Some).collect();
    found.resize_with(list.len() - behind, || None);
    let moved = moved.into_iter();
    found.extend(moved.map(|object| (!object.depends_on_place()).then_some(object)));
    found
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use ipnet::Ipv4Net;
    use proto_firewall::{PREFIXES_TOTAL_MAX, Violation};

    use super::{KnownObjects, Outcome};
    use crate::admit::Problem;
    use crate::admit::object_list::ObjectList;
    use crate::admit::prefix_budget::PrefixBudget;
    use crate::rule::{Action, Controller, Direction, Rule, RuleId};

    /// Admits the objects of a text; returns the places that were checked, and the names of the
    /// outcomes.
    fn admit(known: &mut KnownObjects, text: &str) -> (Vec<usize>, Vec<String>) {
        let list: Vec<serde_norway::Value> = serde_norway::from_str(text).unwrap();
        let checked = RefCell::new(Vec::new());
        let mut names = Vec::new();
        let check = |value: &serde_norway::Value, index: usize| -> Outcome {
            checked.borrow_mut().push(index);
            let name = value.get("name").and_then(serde_norway::Value::as_str);
            let place = format!("[{index}]");
            match name {
                Some("bad") => Err(Problem::new(place, Violation::new("name", "bad", "no"))),
                Some(name) => Err(Problem::new(name, Violation::new("", "", ""))),
                None => Ok(Vec::new()),
            }
        };
        let list = ObjectList {
            name: "list",
            values: &list,
        };
        known.admit(list, &mut PrefixBudget::default(), check, |outcome| {
            names.push(outcome.map_or_else(|problem| problem.object, |_| "unnamed".to_owned()));
        });
        (checked.into_inner(), names)
    }

    /// A rule with so many prefixes.
    fn rule(prefixes: usize) -> Rule {
        Rule {
            id: RuleId {
                controller: Controller::Cwnp,
                object: "egress/x".to_owned(),
                rule: 0,
            },
            direction: Direction::Egress,
            sources: vec![Ipv4Net::default().into(); prefixes],
            destinations: Vec::new(),
            names: Vec::new(),
            protocols: Vec::new(),
            action: Action::Accept,
            log: false,
        }
    }

    /// Admits rules of an eighth of the room for prefixes each. The objects are their numbers, and
    /// those in `refused` the others.
    fn assert_refused(known: &mut KnownObjects, text: &str, refused: &[&str]) {
        let values: Vec<serde_norway::Value> = serde_norway::from_str(text).unwrap();
        let list = ObjectList {
            name: "list",
            values: &values,
        };
        let mut found = Vec::new();
        let check = |_: &serde_norway::Value, _| Ok(vec![rule(PREFIXES_TOTAL_MAX / 8)]);
        known.admit(list, &mut PrefixBudget::default(), check, |outcome| {
            found.extend(outcome.err().map(|problem| problem.object));
        });
        assert_eq!(found, refused, "{text}");
    }

    #[test]
    fn objects_beyond_the_prefixes_are_refused_until_there_is_room() {
        let mut known = KnownObjects::remembering();
        let nine = "[1, 2, 3, 4, 5, 6, 7, 8, 9, {name: a}, {name: A}]";
        for _ in 0..2 {
            assert_refused(&mut known, nine, &["list/a", "list[10]"]);
            assert_refused(&mut KnownObjects::default(), nine, &["list/a", "list[10]"]);
        }
        // Objects that were right before are refused when others come before them.
        assert_refused(&mut known, "[1, 2, 3, 4, 5, 6, 7, {name: a}]", &[]);
        let moved = "[8, 9, 1, 2, 3, 4, 5, 6, 7, {name: a}]";
        assert_refused(&mut known, moved, &["list/a"]);
        assert_refused(&mut known, "[9, {name: a}]", &[]);
    }

    #[test]
    fn only_what_changed_is_checked() {
        for (first, second, checked) in [
            ("[1, 2, 3]", "[1, 2, 3]", vec![]),
            ("[1, 2, 3]", "[1, 4, 3]", vec![1]),
            ("[1, 2, 3]", "[4, 2, 5]", vec![0, 2]),
            ("[]", "[1, 2]", vec![0, 1]),
            ("[1, 2]", "[]", vec![]),
            // An object without a name of its own is checked where it has moved to.
            ("[1, 2, 3]", "[1, 4, 2, 3]", vec![1, 2, 3]),
            ("[1, 2, 3]", "[1, 2]", vec![]),
            ("[{name: bad}, {name: bad}]", "[{name: bad}]", vec![]),
            ("[{name: a}, {name: bad}]", "[{name: bad}]", vec![0]),
            (
                "[{a: [1, 2]}, {b: {c: x}}]",
                "[{a: [1]}, {b: {c: x}}]",
                vec![0],
            ),
            (
                "[{a: [1]}, {b: {c: x}}]",
                "[{a: [1]}, {b: {c: y}}]",
                vec![1],
            ),
            ("[{a: 1, b: 2}]", "[{a: 1}]", vec![0]),
        ] {
            let mut known = KnownObjects::remembering();
            admit(&mut known, first);
            let (found, names) = admit(&mut known, second);
            assert_eq!(found, checked, "{first} to {second}");
            let (all, fresh) = admit(&mut KnownObjects::default(), second);
            assert_eq!(names, fresh, "{first} to {second}");
            assert_eq!(all.len(), fresh.len(), "nothing is remembered");
        }
    }

    #[test]
    fn what_is_forgotten_is_checked_again() {
        let mut known = KnownObjects::remembering();
        admit(&mut known, "[1, 2]");
        known.forget();
        assert_eq!(admit(&mut known, "[1, 2]").0, [0, 1]);
    }
}
