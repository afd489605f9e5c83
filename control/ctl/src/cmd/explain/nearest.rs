//! The names that resemble a misspelt one.

/// The names with the fewest edits from `wanted`, in any case, at most `max` of them, in their
/// order. Empty only if there are no names.
pub(super) fn nearest<'a>(
    names: impl Iterator<Item = &'a str>,
    wanted: &str,
    max: usize,
) -> Vec<&'a str> {
    let wanted = wanted.to_ascii_lowercase();
    let distances = names.map(|name| (edits(&name.to_ascii_lowercase(), &wanted), name));
    let distances: Vec<(usize, &str)> = distances.collect();
    let Some(least) = distances.iter().map(|(edits, _)| *edits).min() else {
        return Vec::new();
    };
    let found = distances.into_iter().filter(|(edits, _)| *edits == least);
    found.map(|(_, name)| name).take(max).collect()
}

/// Characters to insert, remove or replace in order to turn one text into the other (Levenshtein).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // Edits from the characters of `from` so far to each beginning of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, left) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, right) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, expected) in [
            ("", "", 0),
            ("disk", "disk", 0),
            ("disk", "", 4),
            ("disk", "disks", 1),
            ("disk", "dusk", 1),
            ("backup", "bakcup", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edits(from, to), expected, "{from} {to}");
            assert_eq!(edits(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn the_nearest_are_suggested() {
        const NAMES: [&str; 5] = ["disk", "clock", "MM-1201", "MM-1202", "MM-1203"];
        for (wanted, max, expected) in [
            ("disc", 3, &["disk"][..]),
            ("CLOCKS", 3, &["clock"][..]),
            ("mm-1204", 2, &["MM-1201", "MM-1202"][..]),
            ("mm-1203", 2, &["MM-1203"][..]),
        ] {
            assert_eq!(
                nearest(NAMES.into_iter(), wanted, max),
                expected,
                "{wanted}"
            );
        }
        assert!(nearest([].into_iter(), "disk", 3).is_empty());
    }
}
