//! A type name says one thing in all of `control/`: every definition of a name that another file
//! or module defines too is a hit.

use std::collections::BTreeMap;

use super::{Hit, types};
use crate::check::source::Source;

pub(super) fn find(sources: &[Source]) -> Vec<Hit> {
    let mut by_name: BTreeMap<String, Vec<Hit>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_control()) {
        for found in types::all(&source.syntax.items) {
            let hit = Hit::new(source, found.line, &found.name);
            by_name.entry(found.name).or_default().push(hit);
        }
    }
    let mut hits: Vec<Hit> = by_name
        .into_values()
        .filter(|hits| hits.len() > 1)
        .flatten()
        .collect();
    hits.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    hits
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::check::rules::{hits, sources};

    #[test]
    fn names_defined_twice() {
        for (text, expected) in [
            ("struct A; struct B;", vec![]),
            ("struct A;\nmod b { enum A {} }", vec!["1 A", "2 A"]),
            ("trait A {}\nmod b { type A = u8; }", vec!["1 A", "2 A"]),
            ("struct A;\n#[cfg(test)]\nmod tests { struct A; }", vec![]),
            (
                "impl I for S { type A = u8; }\nimpl I for T { type A = u8; }",
                vec![],
            ),
        ] {
            assert_eq!(hits(find, text), expected, "{text}");
        }
    }

    #[test]
    fn names_of_several_crates() {
        let mut all = sources("control-a", &[("a.rs", "struct A;")]);
        all.extend(sources("agents-b", &[("b.rs", "struct A;")]));
        assert!(find(&all).is_empty(), "an agent shares no name space");
        all.extend(sources("control-c", &[("c.rs", "struct A;")]));
        let crates: Vec<String> = find(&all).into_iter().map(|hit| hit.krate).collect();
        assert_eq!(crates, ["control-a", "control-c"]);
    }
}
