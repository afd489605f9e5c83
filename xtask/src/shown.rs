//! What of the tests' output is shown: libtest keeps what a passed test printed, and with it the
//! reason why a test left something out. It is told to print all of it, and only those reasons
//! are passed on.

/// Reads the lines of `cargo test -- --show-output`.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// In the part that repeats what passed tests printed.
    in_successes: bool,
    /// The test whose lines come.
    test: String,
    /// What was left out, with its test.
    pub(crate) skipped: Vec<String>,
}

impl Shown {
    /// What to print for a line, if anything.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
        if line == "successes:" {
            self.in_successes = true;
        }
        if line.starts_with("test result:") || line == "failures:" {
            self.in_successes = false;
        }
        if !self.in_successes {
            return Some(line.to_owned());
        }
        let name = line
            .strip_prefix("---- ")
            .and_then(|it| it.strip_suffix(" stdout ----"));
        if let Some(name) = name {
            name.clone_into(&mut self.test);
            return None;
        }
        let (word, reason) = line.split_once(": ")?;
        if !word.eq_ignore_ascii_case("skipped") {
            return None;
        }
        let skipped = format!("SKIPPED {}: {reason}", self.test);
        self.skipped.push(skipped.clone());
        Some(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_shown_and_the_rest_is_not() {
        let output = "\
running 2 tests
test one ... ok
test two ... ok

successes:

---- one stdout ----
42 writes were acknowledged

---- two stdout ----
skipped: no go: see below
SKIPPED: python3 is missing

successes:
    one
    two

test result: ok. 2 passed
next";
        let mut shown = Shown::default();
        let lines: Vec<_> = output.lines().filter_map(|it| shown.line(it)).collect();
        let expected = [
            "running 2 tests",
            "test one ... ok",
            "test two ... ok",
            "",
            "SKIPPED two: no go: see below",
            "SKIPPED two: python3 is missing",
            "test result: ok. 2 passed",
            "next",
        ];
        assert_eq!(lines, expected);
        assert_eq!(shown.skipped.len(), 2);
    }

    #[test]
    fn failures_are_shown_whole() {
        let mut shown = Shown::default();
        let output = "successes:\n\nfailures:\n\n---- one stdout ----\npanicked\n";
        let lines: Vec<_> = output.lines().filter_map(|it| shown.line(it)).collect();
        assert_eq!(lines, ["failures:", "", "---- one stdout ----", "panicked"]);
    }
}
