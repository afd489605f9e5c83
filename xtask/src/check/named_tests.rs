//! Tests that pages name: every file and every function of it has to be there.
//!
//! A cell of a table names tests as "`path`: name, name; `path`: name" or as
//! "`path` `name`, `name`". Remarks in parentheses name nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Texts of files, by their paths from the root. A folder has an empty text.
pub(crate) type Sources = BTreeMap<String, String>;

/// Tests of one file that a cell names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedTests {
    /// Path as the page has it.
    pub(crate) path: String,
    /// Functions of that file. Empty means the file as a whole.
    pub(crate) functions: Vec<String>,
    /// Marks such as `**system**` that follow the functions, without the stars.
    pub(crate) marks: Vec<String>,
    /// Parts of the list that are no name of a function.
    pub(crate) malformed: Vec<String>,
}

/// Cells of each row of a page's tables, without heads and rulers.
pub(crate) fn table_rows(page: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = page.lines().collect();
    let is_ruler = |line: &&str| line.starts_with("|--");
    lines
        .iter()
        .enumerate()
        .filter(|(at, line)| {
            let is_head = lines.get(at + 1).is_some_and(is_ruler);
            line.starts_with("| ") && !is_head
        })
        .filter_map(|(_, line)| {
            let row = line.trim_end().strip_prefix('|')?.strip_suffix('|')?;
            Some(row.split('|').map(str::trim).collect())
        })
        .collect()
}

/// The part of a page from a heading of the second level to the next one.
pub(crate) fn section<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    let (_, after) = page.split_once(&format!("\n## {heading}\n"))?;
    Some(
        after
            .split_once("\n## ")
            .map_or(after, |(section, _)| section),
    )
}

/// The tests that a cell names, file by file.
pub(crate) fn named_tests(cell: &str) -> Vec<NamedTests> {
    let text = without_remarks(cell);
    let mut found: Vec<NamedTests> = Vec::new();
    // `true` from the colon after a path to the next semicolon: bare words are names.
    let mut is_list = false;
    let mut is_after_path = false;
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            is_after_path = is_path(part);
            if is_after_path {
                found.push(NamedTests {
                    path: part.to_owned(),
                    ..NamedTests::default()
                });
                is_list = false;
            } else if let Some(last) = found.last_mut().filter(|_| is_function(part)) {
                last.functions.push(part.to_owned());
            }
            continue;
        }
        let mut rest = part;
        if is_after_path && let Some(list) = part.strip_prefix(':') {
            is_list = true;
            rest = list;
        }
        if let Some(last) = found.last_mut() {
            is_list = read_text(last, rest, is_list);
        }
    }
    found
}

/// Reads marks, and in a list also bare names. `true` if the list goes on after the text.
fn read_text(tests: &mut NamedTests, text: &str, is_list: bool) -> bool {
    let mut plain = String::new();
    for (at, part) in text.split("**").enumerate() {
        if at % 2 == 1 {
            tests.marks.push(part.to_owned());
        } else {
            plain.push_str(part);
        }
    }
    if !is_list {
        return false;
    }
    let (list, is_open) = match plain.split_once(';') {
        Some((list, _)) => (list, false),
        None => (plain.as_str(), true),
    };
    for name in list
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        let names = if is_function(name) {
            &mut tests.functions
        } else {
            &mut tests.malformed
        };
        names.push(name.to_owned());
    }
    is_open
}

/// A cell without what it has in parentheses.
fn without_remarks(cell: &str) -> String {
    let mut depth = 0_usize;
    cell.chars()
        .filter(|sign| {
            let is_outside = depth == 0 && *sign != '(';
            match sign {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            is_outside
        })
        .collect()
}

fn is_path(code: &str) -> bool {
    let is_file = |end: &str| code.strip_suffix(end).is_some_and(|stem| !stem.is_empty());
    let is_command = code.contains(' ') || code.starts_with('.');
    !is_command && (code.contains('/') || is_file(".rs") || is_file(".py"))
}

fn is_function(code: &str) -> bool {
    code.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && code
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// One line for each file, function or word that is not what the page takes it for.
pub(crate) fn missing(tests: &NamedTests, sources: &Sources) -> Vec<String> {
    let path = &tests.path;
    let Some(source) = sources.get(path) else {
        return vec![format!("there is no {path}")];
    };
    let functions = tests
        .functions
        .iter()
        .filter(|name| !defines(source, name))
        .map(|name| format!("{path} has no function {name}"));
    let words = tests
        .malformed
        .iter()
        .map(|word| format!("\"{word}\" after {path} is no name of a test; put remarks in ( )"));
    functions.chain(words).collect()
}

/// `true` if a Rust or Python source defines a function of that name.
fn defines(source: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    ["fn ", "def "].iter().any(|keyword| {
        source
            .match_indices(&format!("{keyword}{name}"))
            .any(|(at, found)| {
                let is_begun = source[..at].ends_with(is_word);
                !is_begun && !source[at + found.len()..].starts_with(is_word)
            })
    })
}

/// Reads every file that is named and can be read.
pub(crate) fn load<'a>(root: &Path, paths: impl Iterator<Item = &'a str>) -> Sources {
    let mut sources = Sources::new();
    for path in paths {
        if sources.contains_key(path) {
            continue;
        }
        let full = root.join(path);
        if full.is_dir() {
            sources.insert(path.to_owned(), String::new());
        } else if let Ok(mut text) = fs::read_to_string(&full) {
            // The parts of a long script are in modules beside it.
            for module in python_modules(path, &text) {
                let beside = full.with_file_name(format!("{module}.py"));
                text += &fs::read_to_string(beside).unwrap_or_default();
            }
            sources.insert(path.to_owned(), text);
        }
    }
    sources
}

/// Names of the modules that a Python script imports. Empty for other files.
fn python_modules(path: &str, text: &str) -> Vec<String> {
    if !path.ends_with(".py") {
        return Vec::new();
    }
    text.lines()
        .filter_map(|line| {
            let rest = line
                .strip_prefix("from ")
                .or_else(|| line.strip_prefix("import "))?;
            rest.split([' ', ',', '.']).next().map(str::to_owned)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{NamedTests, Sources, defines, missing, named_tests, section, table_rows};

    fn tests(path: &str, functions: &[&str], marks: &[&str], malformed: &[&str]) -> NamedTests {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        NamedTests {
            path: path.to_owned(),
            functions: owned(functions),
            marks: owned(marks),
            malformed: owned(malformed),
        }
    }

    #[test]
    fn tests_of_cells() {
        for (cell, expected) in [
            ("no test names it", vec![]),
            ("as above", vec![]),
            ("`./dev lab --drill lying-leaf`", vec![]),
            ("`api/a.rs`", vec![tests("api/a.rs", &[], &[], &[])]),
            ("`proto/bounds`", vec![tests("proto/bounds", &[], &[], &[])]),
            (
                "`api/a.rs`: one, two_2; `b.py`: three **client**",
                vec![
                    tests("api/a.rs", &["one", "two_2"], &[], &[]),
                    tests("b.py", &["three"], &["client"], &[]),
                ],
            ),
            (
                "`a.rs` `one`, `two`; `b.rs`, `three`",
                vec![
                    tests("a.rs", &["one", "two"], &[], &[]),
                    tests("b.rs", &["three"], &[], &[]),
                ],
            ),
            (
                "`a.rs`: one (`vendor` only; not `b`), two **system** (of ipmi_sim)",
                vec![tests("a.rs", &["one", "two"], &["system"], &[])],
            ),
            (
                "`a.rs`, on three nodes: `one`, and of every list `two`",
                vec![tests("a.rs", &["one", "two"], &[], &[])],
            ),
            (
                "`a.rs`: one, by hand; and so on",
                vec![tests("a.rs", &["one"], &[], &["by hand"])],
            ),
            (
                "`a.rs`: **system**",
                vec![tests("a.rs", &[], &["system"], &[])],
            ),
        ] {
            assert_eq!(named_tests(cell), expected, "{cell}");
        }
    }

    #[test]
    fn what_is_not_there_is_told() {
        let source = "async fn one() {}\nfn two<T>() {}\nfn three_more() {}\n    def four(self):\n";
        let sources = Sources::from([("a.rs".to_owned(), source.to_owned())]);
        for (cell, expected) in [
            ("`a.rs`", None),
            ("`a.rs`: one, two, four", None),
            ("`a.rs`: three", Some("a.rs has no function three")),
            ("`a.rs` `five`", Some("a.rs has no function five")),
            ("`b.rs`: one", Some("there is no b.rs")),
            (
                "`a.rs`: one, by hand",
                Some("\"by hand\" after a.rs is no name"),
            ),
        ] {
            let told: Vec<String> = named_tests(cell)
                .iter()
                .flat_map(|tests| missing(tests, &sources))
                .collect();
            assert_eq!(told.len(), usize::from(expected.is_some()), "{told:?}");
            for (line, part) in told.iter().zip(expected) {
                assert!(line.contains(part), "{line}");
            }
        }
    }

    #[test]
    fn functions_of_sources() {
        for (source, expected) in [
            ("fn one() {}", true),
            ("def one():", true),
            ("fn one_two() {}", false),
            ("undef one():", false),
            ("one()", false),
        ] {
            assert_eq!(defines(source, "one"), expected, "{source}");
        }
    }

    #[test]
    fn rows_and_sections_of_pages() {
        let page = "# A\n\n## B\n\n| x | y |\n|---|---|\n| 1 | 2 |\n| 3 | |\n\n## C\n\n| 5 | 6 |\n";
        assert_eq!(
            table_rows(page),
            vec![vec!["1", "2"], vec!["3", ""], vec!["5", "6"]]
        );
        let part = section(page, "B").expect("there is a section B");
        assert_eq!(table_rows(part).len(), 2);
        assert_eq!(section(page, "D"), None);
    }
}
