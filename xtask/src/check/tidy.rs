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
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        findings.push(format!(
            "{name}: {lines} lines, at most {FILE_LINES_MAX}; split it"
        ));
    }
    let crate_root = name.ends_with("src/lib.rs") || name.ends_with("src/main.rs");
    if crate_root && !text.starts_with("//!") {
        findings.push(format!(
            "{name}: a crate begins with //! what it is, why, and its invariants"
        ));
    }
    // Tables of tests may be long: they are read line by line, not as a whole.
    if name.contains("tests/") || name.ends_with("_tests.rs") {
        return Ok(findings);
    }
    let file = syn::parse_file(text).with_context(|| format!("cannot parse {name}"))?;
    let mut functions = Functions {
        name,
        findings: &mut findings,
    };
    functions.visit_file(&file);
    Ok(findings)
}

/// Finds functions that are too long.
struct Functions<'a> {
    name: &'a str,
    findings: &'a mut Findings,
}

impl Functions<'_> {
    fn measure(&mut self, function: &str, body: &Brace) {
        let line = body.span.open().start().line;
        let lines = body.span.close().end().line - line + 1;
        if lines > FUNCTION_LINES_MAX {
            self.findings.push(format!(
                "{}:{line}: {function} has {lines} lines, at most {FUNCTION_LINES_MAX}; split it",
                self.name
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            syn::visit::visit_item_mod(self, item);
        }
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
    fn white_space_and_missing_new_line_are_found() {
        assert_eq!(check_text("a.toml", "a \nb").len(), 2);
        assert!(check_text("a.toml", "a\nb\n").is_empty());
    }
}
