//! Regular expressions that administrators write: bounded, of plain ASCII, and matched as a whole.

use regex::bytes::{RegexSet, RegexSetBuilder};

/// Largest compiled patterns of a list, bytes; larger ones are refused.
const COMPILED_BYTES_MAX: usize = 256 * 1024;
/// Longest pattern, bytes; a longer one is refused.
pub const PATTERN_BYTES_MAX: usize = 256;

/// The rule that a pattern breaks; `None` means that it breaks none that is checked before it is
/// compiled.
pub(super) fn broken_rule(pattern: &str) -> Option<String> {
    if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX {
        return Some(format!(
            "a pattern must have 1 to {PATTERN_BYTES_MAX} bytes"
        ));
    }
    // Options of groups could switch to Unicode's tables, which not every build of a program has:
    // two control nodes would come to different results.
    if !pattern.is_ascii() || pattern.contains("(?") {
        return Some("a pattern must be ASCII and have no options of groups, \"(?\"".to_owned());
    }
    None
}

/// Compiles patterns. Each must match the whole text: "prod" must not admit "not-prod".
///
/// # Errors
/// The rule that a pattern breaks, or the compiler's reason.
pub(super) fn compile<'a>(patterns: impl Iterator<Item = &'a String>) -> Result<RegexSet, String> {
    let mut anchored = Vec::new();
    for pattern in patterns {
        if let Some(rule) = broken_rule(pattern) {
            return Err(rule);
        }
        // By itself first: "a)|(b" would break out of the group below.
        RegexSetBuilder::new([pattern])
            .unicode(false)
            .size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|error| short(&error))?;
        anchored.push(format!("^(?:{pattern})$"));
    }
    RegexSetBuilder::new(anchored)
        .unicode(false)
        .size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| short(&error))
}

/// The last line of an error of the compiler: the lines before it repeat the pattern.
fn short(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().next_back().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}
