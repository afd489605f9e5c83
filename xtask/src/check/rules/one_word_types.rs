//! Types of `control/` whose name is one word. A measure and no rule: the main type of a crate
//! may have such a name.

use super::{Hit, types};
use crate::check::source::Source;

pub(crate) fn find(sources: &[Source]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for source in sources.iter().filter(|source| source.is_control()) {
        for found in types::all(&source.syntax.items) {
            if words(&found.name) == 1 {
                hits.push(Hit::new(source, found.line, found.name));
            }
        }
    }
    hits
}

/// Words of a name in camel case. A run of capitals is one word.
fn words(name: &str) -> usize {
    let signs: Vec<char> = name.chars().collect();
    let begins = |at: usize| {
        let is_upper = signs[at].is_uppercase();
        let is_after_lower = at == 0 || !signs[at - 1].is_uppercase();
        let is_before_lower = signs.get(at + 1).is_some_and(|sign| sign.is_lowercase());
        is_upper && (is_after_lower || is_before_lower)
    };
    (0..signs.len()).filter(|at| begins(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::{find, words};
    use crate::check::rules::hits;

    #[test]
    fn words_of_names() {
        for (name, expected) in [
            ("Store", 1),
            ("StreamSlot", 2),
            ("BMC", 1),
            ("IPNet", 2),
            ("OpenIdToken", 3),
        ] {
            assert_eq!(words(name), expected, "{name}");
        }
    }

    #[test]
    fn types_of_one_word() {
        let text = "struct Known;\nstruct KnownPeer;\nimpl Known { fn a() {} }";
        assert_eq!(hits(find, text), ["1 Known"]);
    }
}
