/// The line of a field of block mappings, from 1. 0 if the file writes it in another way.
pub(super) fn line_of(text: &str, path: &[&str]) -> usize {
    // The fields that enclose the current line, with their indents.
    let mut open: Vec<(usize, &str)> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let content = line.trim_start();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let indent = line.len() - content.len();
        open.retain(|field| field.0 < indent);
        if let Some((name, _)) = content.split_once(':') {
            open.push((indent, name.trim_matches(['"', '\''])));
        }
        if open.iter().map(|field| &field.1).eq(path) {
            return number;
        }
    }
    0
}

/// The line of a field, or that of the innermost mapping around it that begins on a line of its own.
pub(super) fn nearest_line(text: &str, path: &[&str]) -> usize {
    let lines = (1..=path.len()).rev();
    lines
        .filter_map(|length| path.get(..length))
        .map(|outer| line_of(text, outer))
        .find(|line| *line > 0)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{line_of, nearest_line};

    #[test]
    fn lines_of_fields() {
        let text = "a:\n  b: 1\n  # c: 2\n\n  c:\n    b: 3\nb: 4\n";
        for (path, line) in [
            (&["a"][..], 1),
            (&["a", "b"], 2),
            (&["a", "c"], 5),
            (&["a", "c", "b"], 6),
            (&["b"], 7),
            (&["d"], 0),
        ] {
            assert_eq!(line_of(text, path), line, "{path:?}");
        }
    }

    #[test]
    fn lines_of_mappings_around_a_field() {
        for (text, line) in [
            ("a:\n  b:\n    c: 1\n", 3),
            ("a:\n  b: {c: 1}\n", 2),
            ("x: 1\na: {b: {c: 1}}\n", 2),
            ("{a: {b: {c: 1}}}\n", 0),
        ] {
            assert_eq!(nearest_line(text, &["a", "b", "c"]), line, "{text}");
        }
    }
}
