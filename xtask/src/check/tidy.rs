//! The style budget: sizes of files and functions, headers, and what no file may hold.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::token::Brace;
use syn::visit::Visit;

use super::Findings;

/// Lines that a source file may have; 400 is the aim.
const FILE_LINES_MAX: usize = 800;
/// Lines that a function may have; 50 is the aim.
const FUNCTION_LINES_MAX: usize = 70;
/// Lines that a file of tests may have. A longer one is split by theme.
const TEST_FILE_LINES_MAX: usize = 400;
/// Lines that a function of tests may have. A longer one is split into steps, and its table of cases
/// becomes a constant.
const TEST_FUNCTION_LINES_MAX: usize = 100;
/// Folders that hold no source of ours.
const SKIP: &[&str] = &["target", ".git"];

pub(crate) fn check(root: &Path) -> Result<Findings> {
    let mut findings = Findings::new();
    for path in files(root)? {
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string();
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        findings.extend(check_text(&name, &text));
        if name.ends_with(".rs") {
            findings.extend(check_rust(&name, &text)?);
        }
    }
    Ok(findings)
}

fn check_text(name: &str, text: &str) -> Findings {
    let mut findings = Findings::new();
    for (index, line) in text.lines().enumerate() {
        if line.ends_with([' ', '\t']) && !name.ends_with(".md") {
            findings.push(format!(
                "{name}:{}: white space at the end of the line",
                index + 1
            ));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        findings.push(format!("{name}: no new line at the end of the file"));
    }
    findings
}

fn check_rust(name: &str, text: &str) -> Result<Findings> {
    let mut findings = Findings::new();
    let is_test = is_test_file(name);
    let lines = text.lines().count();
    let lines_max = if is_test {
        TEST_FILE_LINES_MAX
    } else {
        FILE_LINES_MAX
    };
    if lines > lines_max {
        findings.push(format!(
            "{name}: {lines} lines, at most {lines_max}; split it"
        ));
    }
    let crate_root = name.ends_with("src/lib.rs") || name.ends_with("src/main.rs");
    if crate_root && !text.starts_with("//!") {
        findings.push(format!(
            "{name}: a crate begins with //! what it is, why, and its invariants"
        ));
    }
    let file = syn::parse_file(text).with_context(|| format!("cannot parse {name}"))?;
    let mut functions = Functions {
        name,
        is_test,
        findings: &mut findings,
    };
    functions.visit_file(&file);
    Ok(findings)
}

/// `true` if the whole file is tests: it is in a folder `tests`, or its name says so.
fn is_test_file(name: &str) -> bool {
    let name = Path::new(name);
    let is_in_tests = name
        .parent()
        .is_some_and(|folder| folder.components().any(|part| part.as_os_str() == "tests"));
    let stem = name.file_stem().and_then(|stem| stem.to_str());
    is_in_tests || stem.is_some_and(|stem| stem == "tests" || stem.ends_with("_tests"))
}

/// Finds functions that are too long.
struct Functions<'a> {
    name: &'a str,
    /// `true` inside of tests, where functions may be longer.
    is_test: bool,
    findings: &'a mut Findings,
}

impl Functions<'_> {
    fn measure(&mut self, function: &str, body: &Brace) {
        let line = body.span.open().start().line;
        let lines = body.span.close().end().line - line + 1;
        let lines_max = if self.is_test {
            TEST_FUNCTION_LINES_MAX
        } else {
            FUNCTION_LINES_MAX
        };
        if lines > lines_max {
            self.findings.push(format!(
                "{}:{line}: {function} has {lines} lines, at most {lines_max}; split it",
                self.name
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_outer_test = self.is_test;
        self.is_test |= item.ident == "tests";
        syn::visit::visit_item_mod(self, item);
        self.is_test = is_outer_test;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig.ident.to_string(), &item.block.brace_token);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig.ident.to_string(), &item.block.brace_token);
        syn::visit::visit_impl_item_fn(self, item);
    }
}

fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
            let entry = entry?;
            let skip = SKIP.iter().any(|name| entry.file_name() == *name);
            if entry.file_type()?.is_dir() && !skip {
                folders.push(entry.path());
            } else if entry.file_type()?.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{check_rust, check_text};

    #[test]
    fn a_long_function_is_found() {
        let body = "    let _ = 1;\n".repeat(80);
        let text = format!("fn long() {{\n{body}}}\n");
        let findings = check_rust("a.rs", &text).expect("it parses");
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("long has 82 lines"), "{findings:?}");
    }

    #[test]
    fn functions_of_tests_may_be_longer() {
        let long = |lines| format!("fn long() {{\n{}}}\n", "    let _ = 1;\n".repeat(lines));
        let in_module = |lines| format!("mod tests {{\n{}}}\n", long(lines));
        for (name, text, expected) in [
            ("a/tests/b.rs", long(90), None),
            ("a/tests/b.rs", long(100), Some("at most 100")),
            ("a/src/b_tests.rs", long(90), None),
            ("a/src/c/tests.rs", long(100), Some("at most 100")),
            ("a/src/b.rs", in_module(90), None),
            ("a/src/b.rs", in_module(100), Some("at most 100")),
            ("a/src/b.rs", in_module(1) + &long(90), Some("at most 70")),
        ] {
            let findings = check_rust(name, &text).expect("it parses");
            assert_eq!(findings.len(), usize::from(expected.is_some()), "{name}");
            let is_as_expected = |finding: &String| finding.contains(expected.unwrap_or(""));
            assert!(findings.iter().all(is_as_expected), "{findings:?}");
        }
    }

    #[test]
    fn files_of_tests_are_shorter() {
        let text = "const A: u8 = 1;\n".repeat(401);
        for name in ["a/tests/b.rs", "a/src/b_tests.rs", "a/src/c/tests.rs"] {
            let findings = check_rust(name, &text).expect("it parses");
            assert_eq!(findings.len(), 1, "{name}: {findings:?}");
            assert!(findings[0].contains("at most 400"), "{findings:?}");
        }
        for name in ["a/src/b.rs", "a/src/contests.rs"] {
            let findings = check_rust(name, &text).expect("it parses");
            assert!(findings.is_empty(), "{findings:?}");
        }
    }

    #[test]
    fn white_space_and_missing_new_line_are_found() {
        assert_eq!(check_text("a.toml", "a \nb").len(), 2);
        assert!(check_text("a.toml", "a\nb\n").is_empty());
    }
}
