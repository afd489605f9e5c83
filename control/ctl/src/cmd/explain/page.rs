//! Reference pages that are part of the program, and their sections.

use std::fmt;

use serde_json::{Value, json};

/// The parts of every section, in their order. A part begins with its name and a colon.
pub(super) const PARTS: [&str; 5] = ["Meaning", "Impact", "Detect", "Remedy", "Verify"];
/// Heading of a section; the rest of the line is its code.
const HEADING: &str = "## ";

/// A page of the documentation with one section for each code. The program has its text, so that
/// the command line and the documentation cannot differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RunbookPage {
    /// The kind of its codes: error, check or issue.
    pub(super) kind: &'static str,
    /// Its path in the repository.
    pub(super) path: &'static str,
    pub(super) text: &'static str,
}

/// The pages, in the order of lists.
pub(super) static PAGES: [RunbookPage; 3] = [
    RunbookPage {
        kind: "error",
        path: "docs/reference/errors.md",
        text: include_str!("../../../../../docs/reference/errors.md"),
    },
    RunbookPage {
        kind: "check",
        path: "docs/reference/doctor.md",
        text: include_str!("../../../../../docs/reference/doctor.md"),
    },
    RunbookPage {
        kind: "issue",
        path: "docs/reference/issues.md",
        text: include_str!("../../../../../docs/reference/issues.md"),
    },
];

/// The section of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Explanation {
    pub(super) code: &'static str,
    pub(super) page: &'static RunbookPage,
    /// The section as the page has it, without its heading.
    pub(super) text: &'static str,
}

/// All sections of all pages.
pub(super) fn explanations() -> Vec<Explanation> {
    PAGES.iter().flat_map(sections).collect()
}

/// The sections of a page. Each ends where the next one begins.
fn sections(page: &'static RunbookPage) -> Vec<Explanation> {
    let mut found: Vec<Explanation> = Vec::new();
    let mut offset = 0;
    let mut begin = 0;
    for line in page.text.split_inclusive('\n') {
        let end = offset + line.len();
        if let Some(code) = line.strip_prefix(HEADING) {
            if let Some(last) = found.last_mut() {
                last.text = page.text[begin..offset].trim();
            }
            let code = code.trim();
            found.push(Explanation {
                code,
                page,
                text: "",
            });
            begin = end;
        }
        offset = end;
    }
    if let Some(last) = found.last_mut() {
        last.text = page.text[begin..].trim();
    }
    found
}

impl Explanation {
    /// The first line, without its full stop.
    pub(super) fn title(&self) -> &'static str {
        let first = self.text.lines().next().unwrap_or_default();
        first.trim_end_matches('.')
    }

    /// The text of a part. Empty means that the section lacks it.
    pub(super) fn part(&self, name: &str) -> String {
        let mut lines: Vec<&str> = Vec::new();
        let mut is_inside = false;
        for line in self.text.lines() {
            let begun = PARTS.iter().find_map(|part| {
                let rest = line.strip_prefix(part)?.strip_prefix(": ")?;
                Some((*part, rest))
            });
            match begun {
                Some((part, rest)) => {
                    is_inside = part == name;
                    if is_inside {
                        lines.push(rest);
                    }
                }
                None if is_inside => lines.push(line),
                None => {}
            }
        }
        lines.join("\n").trim().to_owned()
    }

    /// Where the documentation has the section.
    pub(super) fn doc(&self) -> String {
        format!("{}#{}", self.page.path, self.code.to_ascii_lowercase())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "code": self.code,
            "kind": self.page.kind,
            "title": self.title(),
            "meaning": self.part("Meaning"),
            "impact": self.part("Impact"),
            "detect": self.part("Detect"),
            "remedy": self.part("Remedy"),
            "verify": self.part("Verify"),
            "doc": self.doc(),
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n\n{}", self.code, self.text)
    }
}
