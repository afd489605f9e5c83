//! Ansible itself, in the lab's admin namespace.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tests_lab::netns::Namespace;
use tests_lab::state::Record;

use super::recap;
use crate::ansible::python::PythonEnvironment;
use crate::ansible::tree::CollectionTree;

/// Ansible with the collection.
#[derive(Debug)]
pub(super) struct AnsibleTools {
    pub(super) environment: PythonEnvironment,
    pub(super) tree: CollectionTree,
}

/// Runs playbooks. Its files are those of `xtask/ansible/lab`.
#[derive(Debug)]
pub(super) struct Controller {
    tools: AnsibleTools,
    admin: Namespace,
    record: Record,
    files: PathBuf,
    /// Files of variables that every run gets.
    variables: Vec<PathBuf>,
    runs: u32,
}

impl Controller {
    /// `variables` is the file with what the inventory asks for.
    pub(super) fn new(
        root: &Path,
        record: &Record,
        admin: &Namespace,
        tools: AnsibleTools,
        variables: PathBuf,
    ) -> Self {
        Self {
            tools,
            admin: admin.clone(),
            record: record.clone(),
            files: root.join("xtask/ansible/lab"),
            variables: vec![variables],
            runs: 0,
        }
    }

    /// A file of the lab.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.files.join(name)
    }

    /// Every run from now on has the variables of this file too.
    pub(super) fn add_variables(&mut self, file: PathBuf) {
        self.variables.push(file);
    }

    /// Runs a playbook, of the collection or of the lab's files; what it printed, which is in a log of
    /// its own too.
    ///
    /// # Errors
    /// It failed on a host.
    pub(super) fn play(&mut self, playbook: &str, arguments: &[&str]) -> Result<String> {
        self.runs += 1;
        let short = playbook.trim_end_matches(".yml");
        let short = short.rsplit('.').next().unwrap_or(short);
        let log = format!("ansible-{:02}-{short}", self.runs);
        let log = self.record.log(&log)?;
        let program = self.tools.environment.bin().join("ansible-playbook");
        let mut command = self.admin.command(program);
        command
            .current_dir(&self.files)
            .env("ANSIBLE_CONFIG", self.file("ansible.cfg"))
            .env("ANSIBLE_COLLECTIONS_PATH", &self.tools.tree.base)
            .env("ANSIBLE_HOME", self.record.dir().join("ansible"))
            // Short, as sockets are in it. The default one is the user's, where a connection of another
            // lab to the same address may be.
            .env("ANSIBLE_SSH_CONTROL_PATH_DIR", self.record.dir().join("cp"))
            .env("ANSIBLE_NOCOLOR", "1")
            .env("LC_ALL", "C.UTF-8")
            .arg("--inventory")
            .arg(self.file("hosts.yml"));
        for file in &self.variables {
            command.arg("--extra-vars");
            command.arg(format!("@{}", file.display()));
        }
        command.args(arguments).arg(playbook);
        let file = fs::File::create(&log)?;
        let status = command
            .stdout(file.try_clone()?)
            .stderr(file)
            .status()
            .context("cannot run ansible-playbook")?;
        let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        if !status.success() {
            bail!("{playbook}: {} ({})", recap::reason(&text), log.display());
        }
        Ok(text)
    }
}
