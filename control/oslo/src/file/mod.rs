//! Policy files: YAML, or JSON, of names and check strings.

mod raw_check;
mod raw_rules;

use std::collections::HashSet;

use proto_bounds::{BRACKETS_MAX, has_few_brackets};

use crate::expression::CheckExpression;
use crate::fault::PolicyFault;
use raw_check::RawCheck;
use raw_rules::RawRules;

/// Bytes that a file may have. A file of every default of Ironic, with comments, has some 60 KiB.
pub const FILE_BYTES_MAX: usize = 256 << 10;
/// Rules that a file may have. Ironic has 133.
pub const RULES_MAX: usize = 1024;
/// Bytes that the name of a rule may have.
const NAME_BYTES_MAX: usize = 256;
const SHAPE_REMEDY: &str = "write names and check strings: \"baremetal:node:get\": \"role:reader\"";

/// The rules of one file, in its order.
#[derive(Clone, Debug, Default)]
pub struct PolicyFile {
    rules: Vec<FileRule>,
}

/// A rule of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRule {
    /// Name of the rule.
    pub name: String,
    /// Its check string.
    pub check: CheckExpression,
}

impl PolicyFile {
    /// Reads a file. One without rules is a file that changes nothing.
    ///
    /// # Errors
    /// It is too large, has too many brackets, is no mapping of names to check strings, has a rule
    /// twice, or a malformed check string.
    pub fn parse(text: &str) -> Result<Self, PolicyFault> {
        let raw = read(text)?;
        let mut seen = HashSet::with_capacity(raw.0.len());
        let mut rules = Vec::with_capacity(raw.0.len());
        for (name, raw) in &raw.0 {
            check_name(name)?;
            if !seen.insert(name) {
                return Err(PolicyFault::of_rule(
                    name,
                    "the file has it twice",
                    "remove one of them; oslo.policy would take the last",
                ));
            }
            let check = match raw {
                RawCheck::Text(text) => text.parse::<CheckExpression>(),
                RawCheck::List(alternatives) => CheckExpression::from_list(
                    alternatives
                        .iter()
                        .map(|checks| checks.iter().map(String::as_str).collect()),
                ),
            };
            rules.push(FileRule {
                name: name.clone(),
                check: check.map_err(|fault| PolicyFault::of_check(name, &fault))?,
            });
        }
        Ok(Self { rules })
    }

    /// The rules in the order of the file.
    #[must_use]
    pub fn rules(&self) -> &[FileRule] {
        &self.rules
    }

    /// The check string of a rule.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&CheckExpression> {
        let rule = self.rules.iter().find(|rule| rule.name == name);
        rule.map(|rule| &rule.check)
    }
}

fn read(text: &str) -> Result<RawRules, PolicyFault> {
    if text.len() > FILE_BYTES_MAX {
        return Err(PolicyFault::of_file(
            format!("it has {} bytes, at most {FILE_BYTES_MAX}", text.len()),
            "remove the rules that are as the defaults",
        ));
    }
    // The parser of YAML takes time that grows with the square of the nesting.
    if !has_few_brackets(text.as_bytes()) {
        return Err(PolicyFault::of_file(
            format!("it has more than {BRACKETS_MAX} brackets and braces, or a line of dashes"),
            "write check strings as texts instead of lists",
        ));
    }
    // The parser of JSON takes tabs between values, which that of YAML refuses.
    if text.trim_start().starts_with('{')
        && let Ok(rules) = serde_json::from_str(text)
    {
        return Ok(rules);
    }
    serde_norway::from_str(text)
        .map_err(|error| PolicyFault::of_file(error.to_string(), SHAPE_REMEDY))
}

fn check_name(name: &str) -> Result<(), PolicyFault> {
    if name.len() > NAME_BYTES_MAX {
        let begin: String = name.chars().take(40).collect();
        return Err(PolicyFault::of_rule(
            &begin,
            format!(
                "its name has {} bytes, at most {NAME_BYTES_MAX}",
                name.len()
            ),
            "shorten it",
        ));
    }
    let is_wrong = |sign: char| sign.is_whitespace() || sign.is_control();
    if name.is_empty() || name.contains(is_wrong) {
        return Err(PolicyFault::of_rule(
            name,
            "its name is empty or has white space, so that nothing can refer to it",
            "write a name such as baremetal:node:get",
        ));
    }
    Ok(())
}
