//! The real command line, as the lab's admin and as its tenants.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::netns::Namespace;
use crate::process::output;
use crate::wait::{Interrupted, interrupted};

/// One person with a context file and a place in the network. Commands are given as one line, as
/// nothing in a lab has a space in its name, or as words.
#[derive(Clone, Debug)]
pub struct Person {
    pub name: &'static str,
    pub namespace: Namespace,
    pub program: PathBuf,
    pub config: PathBuf,
}

impl Person {
    fn command(&self, line: &str) -> Command {
        self.command_of(line.split_whitespace())
    }

    fn command_of<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.namespace.command(&self.program);
        command.arg("--config").arg(&self.config).args(words);
        command
    }

    /// Runs `metalmesh …`; what it printed.
    ///
    /// # Errors
    /// What it said on standard error.
    pub fn run(&self, line: &str) -> Result<String> {
        output(&mut self.command(line)).with_context(|| self.said(line))
    }

    /// Runs `metalmesh …` with words that may have spaces in them; returns its standard output.
    ///
    /// # Errors
    /// The text on standard error when it fails.
    pub fn run_words(&self, words: &[&str]) -> Result<String> {
        let mut command = self.command_of(words.iter().copied());
        output(&mut command).with_context(|| self.said(&words.join(" ")))
    }

    /// Runs `metalmesh … -o json`.
    ///
    /// # Errors
    /// What it said on standard error, or no JSON.
    pub fn json(&self, line: &str) -> Result<Value> {
        let text = self.run(&format!("{line} -o json"))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} answered {text:?}", self.said(line)))
    }

    /// Runs `metalmesh … -o json` and hands over each line of its standard error as it comes.
    ///
    /// # Errors
    /// Its last line on standard error, no JSON, or Ctrl-C.
    pub fn watch(&self, line: &str, mut heard: impl FnMut(&str)) -> Result<Value> {
        let mut command = self.command(&format!("{line} -o json"));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let errors = child.stderr.take().context("no standard error")?;
        let mut last = String::new();
        for text in BufReader::new(errors).lines() {
            last = text?;
            heard(&last);
            if interrupted() {
                child.kill()?;
                child.wait()?;
                return Err(Interrupted.into());
            }
        }
        let ended = child.wait_with_output()?;
        if !ended.status.success() {
            bail!("{}: {last}", self.said(line));
        }
        Ok(serde_json::from_slice(&ended.stdout)?)
    }

    /// The command is refused with this in its message.
    ///
    /// # Errors
    /// It went through, or failed otherwise.
    pub fn refused(&self, line: &str, because: &str) -> Result<()> {
        match self.run(line) {
            Ok(text) => bail!("{} was not refused: {text}", self.said(line)),
            Err(error) => {
                let text = format!("{error:#}");
                let found = text.to_lowercase().contains(&because.to_lowercase());
                if found { Ok(()) } else { Err(error) }
            }
        }
    }

    fn said(&self, line: &str) -> String {
        format!("{}: metalmesh {line}", self.name)
    }
}

/// A string in a JSON object.
///
/// # Errors
/// There is none of that name.
pub fn text<'a>(value: &'a Value, path: &str) -> Result<&'a str> {
    value
        .pointer(path)
        .and_then(Value::as_str)
        .with_context(|| format!("no {path} in {value}"))
}
