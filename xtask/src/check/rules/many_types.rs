//! A file is about one type: one with more than `TYPES_MAX` at its top level is a hit.

use super::{Hit, types};
use crate::check::source::Source;

/// Types that a file may have at its top level.
const TYPES_MAX: usize = 3;

pub(super) fn find(sources: &[Source]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for source in sources {
        let types = types::top_level(&source.syntax.items);
        if let Some(first_too_many) = types.get(TYPES_MAX) {
            let what = format!("{} types", types.len());
            hits.push(Hit::new(source, first_too_many.line, what));
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::check::rules::hits;

    #[test]
    fn files_with_many_types() {
        for (text, expected) in [
            ("struct A; enum B {} trait C {}", vec![]),
            (
                "struct A; enum B {} trait C {}\ntype D = u8;",
                vec!["2 4 types"],
            ),
            ("struct A; struct B; struct C; mod d { struct D; }", vec![]),
            (
                "struct A; struct B; struct C;\n#[cfg(test)] struct D;",
                vec![],
            ),
        ] {
            assert_eq!(hits(find, text), expected, "{text}");
        }
    }
}
