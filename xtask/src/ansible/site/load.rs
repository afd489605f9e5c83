//! Somebody who writes all the time, and tries again as clients do.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tests_lab::cli::{Person, text};
use tests_lab::netns::Namespace;

use super::place::{SitePlace, token_file};

/// How long one call is tried again; longer is a failed call.
const TRIED_MAX: Duration = Duration::from_secs(30);
/// Between two tries of a call.
const AGAIN: Duration = Duration::from_millis(100);
/// TCP port of the API.
const API_PORT: u16 = 4443;

/// Counts of the calls, and their longest pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LoadReport {
    pub(super) calls: u32,
    /// Tries that failed before their call went through.
    pub(super) tries_failed: u32,
    /// Calls that did not go through in time.
    pub(super) calls_failed: u32,
    /// From the end of one call that went through to that of the next.
    pub(super) longest_pause: Duration,
}

/// An administrator with a context for each control node.
#[derive(Debug)]
pub(super) struct Writer {
    person: Person,
    contexts: Vec<String>,
    project: String,
}

impl Writer {
    /// Makes the contexts, and a project that is written to.
    ///
    /// # Errors
    /// A call is refused.
    pub(super) fn new(site: &SitePlace) -> Result<Self> {
        let person = person(site, &site.topology.admin)?;
        let addresses: Vec<Ipv4Addr> = site
            .control_hosts()
            .map(|host| host.place.address)
            .collect();
        let token = token_file(&site.record)?;
        let ca = site.record.path("control/api.pem")?;
        let mut contexts = Vec::new();
        for (number, address) in addresses.iter().enumerate() {
            let name = format!("control-{}", number + 1);
            person.run(&format!(
                "context add {name} --api-url https://{address}:{API_PORT} --token-file {} --ca-file {} \
                 --activate",
                token.display(),
                ca.display()
            ))?;
            contexts.push(name);
        }
        let tenant = person.json("tenant create load")?;
        let login = text(&tenant, "/login")?;
        let project = person.json(&format!("project create load --tenant {login}"))?;
        Ok(Self {
            project: text(&project, "/uuid")?.to_owned(),
            person,
            contexts,
        })
    }

    /// Writes until it is told to stop.
    pub(super) fn write(&self, stop: &AtomicBool) -> LoadReport {
        let mut report = LoadReport::default();
        let mut last = Instant::now();
        let mut context = self.contexts.iter().cycle();
        let mut current = context.next();
        while !stop.load(Ordering::SeqCst) {
            let begin = Instant::now();
            let number = report.calls;
            report.calls += 1;
            loop {
                if current.is_some_and(|name| self.call(name, number).is_ok()) {
                    report.longest_pause = report.longest_pause.max(last.elapsed());
                    last = Instant::now();
                    break;
                }
                report.tries_failed += 1;
                if begin.elapsed() > TRIED_MAX {
                    report.calls_failed += 1;
                    break;
                }
                // Another node may answer.
                current = context.next();
                std::thread::sleep(AGAIN);
            }
        }
        report
    }

    fn call(&self, context: &str, number: u32) -> Result<()> {
        let project = &self.project;
        let line = format!("--context {context} project update {project} --description {number}");
        self.person.run(&line).map(drop)
    }

    /// The description that was written last is there.
    ///
    /// # Errors
    /// The project cannot be shown.
    pub(super) fn written(&self) -> Result<String> {
        let shown = self
            .person
            .json(&format!("project show {}", self.project))?;
        text(&shown, "/description")
            .map(ToOwned::to_owned)
            .context("the project has no description")
    }
}

fn person(site: &SitePlace, admin: &Namespace) -> Result<Person> {
    let programs = &site.artefacts.programs;
    let program = programs.get(&tests_lab::Program::Cli);
    Ok(Person {
        name: "writer",
        namespace: admin.clone(),
        program: program.context("the command line is missing")?.clone(),
        config: site.record.path("writer/config.yaml")?,
    })
}
