//! Questions to a person, and what their answers have to be like.

use std::io::{BufRead, Write};

use anyhow::{Context as _, Result, bail};

/// Repetitions of a question whose answer breaks its rule. After them the program ends.
const ATTEMPTS_MAX: usize = 5;
/// Longest answer, bytes. The rest of a longer line is not read.
const ANSWER_BYTES_MAX: u64 = 4096;

/// A conversation: questions go to `output`, answers come from `input`.
#[derive(Debug)]
pub(super) struct Dialogue<R, W> {
    input: R,
    output: W,
}

impl<R: BufRead, W: Write> Dialogue<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        Self { input, output }
    }

    /// Asks a question until the answer keeps its rule. An empty answer means `default`; `rule` returns
    /// the value, or what is wrong with the answer.
    ///
    /// # Errors
    /// The input ended, or too many answers broke the rule.
    pub(super) fn ask<T>(
        &mut self,
        question: &str,
        default: &str,
        rule: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T> {
        let shown = match default {
            "" => "none",
            default => default,
        };
        for _ in 0..ATTEMPTS_MAX {
            write!(self.output, "{question} [{shown}]: ")?;
            self.output.flush()?;
            let answer = self.line()?;
            let answer = match answer.trim() {
                "" => default,
                answer => answer,
            };
            match rule(answer) {
                Ok(value) => return Ok(value),
                Err(problem) => writeln!(self.output, "  {answer:?}: {problem}")?,
            }
        }
        bail!(
            "{question}: {ATTEMPTS_MAX} answers broke the rule; give them in a file: --answers FILE"
        )
    }

    /// Asks a question whose answer is yes or no.
    pub(super) fn confirm(&mut self, question: &str, default: bool) -> Result<bool> {
        let shown = if default { "yes" } else { "no" };
        self.ask(question, shown, |answer| {
            match answer.to_ascii_lowercase().as_str() {
                "y" | "yes" => Ok(true),
                "n" | "no" => Ok(false),
                _ => Err("answer yes or no".to_owned()),
            }
        })
    }

    /// Shows a line between two questions.
    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        writeln!(self.output, "{text}")?;
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let mut input = std::io::Read::take(&mut self.input, ANSWER_BYTES_MAX);
        let read = input
            .read_line(&mut line)
            .context("the answer cannot be read")?;
        if read == 0 {
            bail!("the input ended before the last question; nothing was written");
        }
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(answer: &str) -> Result<u16, String> {
        answer.parse().map_err(|_| "is no number".to_owned())
    }

    #[test]
    fn answers_that_break_the_rule_are_asked_again() {
        for (typed, expected) in [
            ("7\n", Some(7)),
            ("\n", Some(3)),
            ("x\n\n", Some(3)),
            ("x\ny\n 9 \n", Some(9)),
            ("", None),
            ("a\nb\nc\nd\ne\n5\n", None),
        ] {
            let mut shown = Vec::new();
            let asked = Dialogue::new(typed.as_bytes(), &mut shown).ask("number", "3", number);
            assert_eq!(asked.ok(), expected, "{typed:?}");
            assert!(
                String::from_utf8(shown)
                    .unwrap()
                    .starts_with("number [3]: ")
            );
        }
    }

    #[test]
    fn yes_and_no() {
        for (typed, default, expected) in [
            ("\n", true, true),
            ("\n", false, false),
            ("YES\n", false, true),
            ("perhaps\nn\n", true, false),
        ] {
            let asked = Dialogue::new(typed.as_bytes(), Vec::new()).confirm("sure", default);
            assert_eq!(asked.unwrap(), expected, "{typed:?}");
        }
    }
}
