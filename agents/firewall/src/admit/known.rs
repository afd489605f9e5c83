use serde_norway::Value;

use super::Problem;
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

    /// Hands over the outcome of each object of a list in its order. `check` finds it by the object
    /// and its place, and depends on nothing else.
    pub(super) fn admit(
        &mut self,
        list: &[Value],
        check: impl Fn(&Value, usize) -> Outcome,
        mut take: impl FnMut(Outcome),
    ) {
        let Some(known) = &mut self.objects else {
            for (index, value) in list.iter().enumerate() {
                take(check(value, index));
            }
            return;
        };
        if known.len() == list.len() {
            renew(known, list, check);
        } else {
            splice(known, list, check);
        }
        for object in known {
            take(object.outcome.clone());
        }
    }
}

impl KnownObject {
    fn new(value: &Value, outcome: Outcome) -> Self {
        let value = value.clone();
        Self { value, outcome }
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

/// Checks the objects that are not those at the same places before.
fn renew(known: &mut [KnownObject], list: &[Value], check: impl Fn(&Value, usize) -> Outcome) {
    for (index, (object, value)) in known.iter_mut().zip(list).enumerate() {
        if !is_same(&object.value, value) {
            *object = KnownObject::new(value, check(value, index));
        }
    }
}

/// Checks the objects between the first and the last that differ, and those whose outcome depends on
/// their place among the moved ones behind.
fn splice(known: &mut Vec<KnownObject>, list: &[Value], check: impl Fn(&Value, usize) -> Outcome) {
    let pairs = known.iter().zip(list);
    let begin = pairs
        .take_while(|(object, value)| is_same(&object.value, value))
        .count();
    let pairs = known[begin..].iter().rev().zip(list[begin..].iter().rev());
    let behind = pairs
        .take_while(|(object, value)| is_same(&object.value, value))
        .count();
    let (old_end, end) = (known.len() - behind, list.len() - behind);
    let between = list.iter().enumerate().take(end).skip(begin);
    let fresh: Vec<KnownObject> = between
        .map(|(index, value)| KnownObject::new(value, check(value, index)))
        .collect();
    known.splice(begin..old_end, fresh);
    for (index, object) in known.iter_mut().enumerate().skip(end) {
        if object.depends_on_place() {
            object.outcome = check(&object.value, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use proto_firewall::Violation;

    use super::{KnownObjects, Outcome};
    use crate::admit::Problem;

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
        known.admit(&list, check, |outcome| {
            names.push(outcome.map_or_else(|problem| problem.object, |_| "unnamed".to_owned()));
        });
        (checked.into_inner(), names)
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
