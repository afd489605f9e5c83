//! The real command line, as the lab's admin and as its tenants.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::netns::Namespace;
use crate::process::output;
use crate::wait::{Interrupted, interrupted};

/// One person with a context file and a place in the network.
#[derive(Clone, Debug)]
pub struct Person {
    pub name: &'static str,
    pub namespace: Namespace,
    pub program: PathBuf,
    pub config: PathBuf,
}

impl Person {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.namespace.command(&self.program);
        command.arg("--config").arg(&self.config).args(arguments);
        command
    }

    /// Runs `metalmesh …`; what it printed.
    ///
    /// # Errors
    /// What it said on standard error.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        output(&mut self.command(arguments)).with_context(|| self.said(arguments))
    }

    /// Runs `metalmesh … -o json`.
    ///
    /// # Errors
    /// What it said on standard error, or no JSON.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        let text = self.run(&all)?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} answered {text:?}", self.said(&all)))
    }

    /// Runs `metalmesh … -o json` and hands over each line of its standard error as it comes.
    ///
    /// # Errors
    /// Its last line on standard error, no JSON, or Ctrl-C.
    pub fn watch(&self, arguments: &[&str], mut line: impl FnMut(&str)) -> Result<Value> {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        let mut command = self.command(&all);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let errors = child.stderr.take().context("no standard error")?;
        let mut last = String::new();
        for text in BufReader::new(errors).lines() {
            last = text?;
            line(&last);
            if interrupted() {
                child.kill()?;
                child.wait()?;
                return Err(Interrupted.into());
            }
        }
        let ended = child.wait_with_output()?;
        if !ended.status.success() {
            bail!("{}: {last}", self.said(arguments));
        }
        Ok(serde_json::from_slice(&ended.stdout)?)
    }

    /// The command refused with this in its message.
    ///
    /// # Errors
    /// It went through, or failed otherwise.
    pub fn refused(&self, arguments: &[&str], because: &str) -> Result<()> {
        match self.run(arguments) {
            Ok(text) => bail!("{} was not refused: {text}", self.said(arguments)),
            Err(error) => {
                let text = format!("{error:#}");
                let found = text.to_lowercase().contains(&because.to_lowercase());
                if found { Ok(()) } else { Err(error) }
            }
        }
    }

    fn said(&self, arguments: &[&str]) -> String {
        format!("{}: metalmesh {}", self.name, arguments.join(" "))
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
