//! The upgrade of a site while somebody writes.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, ensure};

use super::load::{LoadReport, Writer};
use super::place::SitePlace;
use super::runs::{self, SITE};

/// The role shows a plan without steps like this.
const NO_STEPS: &str = r#""steps": []"#;

/// From the previous packages to the new ones: control nodes in turn, then the agents.
pub(super) fn upgrade(site: &mut SitePlace) -> Result<()> {
    let previous = site.previous.clone().context("no previous packages")?;
    let version = site.debs.version.clone();
    ensure!(
        previous.version != version,
        "both folders have packages of version {version}"
    );
    all_have(site, &previous.version)?;
    site.repository.publish(&[&previous, &site.debs])?;
    let writer = Writer::new(site)?;
    let (report, done) = under_load(&writer, || {
        let target = format!("upgrade_version={version}");
        // The site makes no backups of its own.
        let accept = r#"{"upgrade_accept_obstacles": ["backup"]}"#;
        let arguments = ["--extra-vars", &target, "--extra-vars", accept];
        let output = site
            .controller
            .play("metalmesh.metalmesh.upgrade", &arguments)?;
        ensure!(
            !output.contains(NO_STEPS),
            "the plan has no steps: metalmeshd of {version} tells the same version and feature level as that \
             of {}",
            previous.version
        );
        let packages = format!("packages_version={version}");
        let arguments = ["--limit", "partition,switches", "--extra-vars", &packages];
        site.controller.play(SITE, &arguments)
    });
    done?;
    site.time().note(&format!(
        "{} writes, {} tries failed, longest pause {:.2} s",
        report.calls,
        report.tries_failed,
        report.longest_pause.as_secs_f64()
    ));
    ensure!(
        report.calls_failed == 0,
        "{} of {} calls failed although they were tried again",
        report.calls_failed,
        report.calls
    );
    let last = report.calls.saturating_sub(1).to_string();
    let written = writer.written()?;
    ensure!(
        written == last,
        "the last write was {last}, the project has {written}"
    );
    all_have(site, &version)?;
    runs::services_run(site)
}

/// Works while somebody writes, who stops afterwards.
fn under_load<T>(writer: &Writer, work: impl FnOnce() -> T) -> (LoadReport, T) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| writer.write(&stop));
        let done = work();
        stop.store(true, Ordering::SeqCst);
        let report = writing.join();
        let report = report.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (report, done)
    })
}

/// Every package of ours on every host has that version.
fn all_have(site: &SitePlace, version: &str) -> Result<()> {
    for host in &site.hosts {
        let packages = host.ssh("dpkg-query -W -f '${Package} ${Version}\\n' 'metalmesh-*'")?;
        let other: Vec<&str> = packages
            .lines()
            // A package that others only name has no version.
            .filter(|line| {
                let has = line.split_once(' ').map(|(_, has)| has.trim());
                has.is_some_and(|has| !has.is_empty() && has != version)
            })
            .collect();
        ensure!(
            other.is_empty(),
            "{} is to have {version} and has {}",
            host.place.name,
            other.join(", ")
        );
    }
    Ok(())
}
