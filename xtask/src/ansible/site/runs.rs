//! Runs of the playbook that installs a site.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tests_lab::state::write_private;
use tests_lab::wait::stretch_now;

use super::place::{SitePlace, token_file};
use super::recap::{self, Change};

pub(super) const SITE: &str = "metalmesh.metalmesh.site";
/// Longest first run, on an idle machine.
const FIRST_MAX: Duration = Duration::from_secs(600);
/// The host that is destroyed; not the first one, by which the others join.
const LOST: &str = "control-2";

/// From empty hosts to a site: as the guide has it, control first, then what its API keeps, then the rest.
pub(super) fn first(site: &mut SitePlace) -> Result<()> {
    let started = Instant::now();
    let controller = &mut site.controller;
    let prepared = controller.play("prepare.yml", &[])?;
    let control = controller.play(SITE, &["--limit", "control"])?;
    let first = site.control_hosts().next().context("no control host")?;
    let token = first.ssh("cat /etc/metalmesh/private/admin.token")?;
    write_private(&token_file(&site.record)?, token.as_bytes())?;
    let catalogue = site.controller.play("catalogue.yml", &[])?;
    let rest = site.controller.play(SITE, &[])?;
    tell_changes(site, &[prepared, control, catalogue, rest]);
    let took = started.elapsed();
    site.time().note(&format!("{} s", took.as_secs()));
    ensure!(
        took <= FIRST_MAX.mul_f64(stretch_now()),
        "the first run took {} s, longer than {} s",
        took.as_secs(),
        FIRST_MAX.as_secs()
    );
    services_run(site)
}

/// No host changes.
pub(super) fn again(site: &mut SitePlace) -> Result<()> {
    let output = site.controller.play("catalogue.yml", &["--diff"])?;
    let changed = recap::changed_by_host(&output);
    ensure!(
        changed.get("localhost") == Some(&0),
        "what the API keeps changed when run again: {changed:?}"
    );
    let output = site.controller.play(SITE, &["--diff"])?;
    no_change(site, &output)
}

/// Check mode names every change of the run that follows, with the same difference, and nothing else.
pub(super) fn check(site: &mut SitePlace) -> Result<()> {
    let changed = site.controller.file("changed.yml");
    site.controller.add_variables(changed);
    let predicted = site.controller.play(SITE, &["--check", "--diff"])?;
    let made = site.controller.play(SITE, &["--diff"])?;
    let (predicted, made) = (recap::changes(&predicted), recap::changes(&made));
    ensure!(!made.is_empty(), "the changed variables change nothing");
    let missing = made.difference(&predicted).map(said);
    let missing: Vec<String> = missing
        .map(|change| format!("not predicted: {change}"))
        .collect();
    let wrong = predicted.difference(&made).map(said);
    let wrong: Vec<String> = wrong.map(|change| format!("not made: {change}")).collect();
    if !missing.is_empty() || !wrong.is_empty() {
        bail!("{}", [missing, wrong].concat().join("; "));
    }
    site.time()
        .note(&format!("{} changes, each predicted", made.len()));
    let output = site.controller.play(SITE, &["--diff"])?;
    no_change(site, &output)
}

/// A host that lost everything is a control node again, and the cluster has as many as before.
pub(super) fn rebuild(site: &mut SitePlace) -> Result<()> {
    let record = site.record.clone();
    let mut hosts = site.hosts.iter_mut();
    let lost = hosts.find(|host| host.place.name == LOST);
    lost.context("the host is missing")?.rebuild(&record)?;
    site.controller.play("lost.yml", &[])?;
    site.controller.play("prepare.yml", &["--limit", LOST])?;
    site.controller.play(SITE, &["--limit", "control"])?;
    services_run(site)?;
    let output = site.controller.play(SITE, &["--diff"])?;
    no_change(site, &output)
}

fn said(change: &Change) -> String {
    format!("{} {}", change.task, change.subject)
}

/// Prints how much several runs together have changed.
fn tell_changes(site: &SitePlace, outputs: &[String]) {
    let mut all = BTreeMap::<String, u32>::new();
    for (host, changed) in outputs.iter().flat_map(|o| recap::changed_by_host(o)) {
        *all.entry(host).or_default() += changed;
    }
    for (host, changed) in all {
        site.time().note(&format!("{host}: {changed} changes"));
    }
}

/// Every host is in the summary of the run, with no change.
fn no_change(site: &SitePlace, output: &str) -> Result<()> {
    let changed = recap::changed_by_host(output);
    for host in &site.hosts {
        let name = host.place.name;
        let count = changed.get(name);
        let count = count.with_context(|| format!("{name} is not in the summary"))?;
        if *count > 0 {
            let changes = recap::changes(output);
            let changes: Vec<String> = changes.iter().map(said).collect();
            bail!("{name} changed when run again: {}", changes.join("; "));
        }
    }
    Ok(())
}

/// The service of each host runs, and has not been started again and again.
pub(super) fn services_run(site: &SitePlace) -> Result<()> {
    for host in &site.hosts {
        let units: &[&str] = match host.place.name {
            "mgmt-1" => &["metalmesh-pixie", "metalmesh-bmc"],
            name if name.starts_with("control-") => &["metalmeshd"],
            _ => &["metalmesh-core", "frr"],
        };
        for unit in units {
            host.ssh(&format!("systemctl is-active {unit}"))?;
            let restarts = host.ssh(&format!("systemctl show -P NRestarts {unit}"))?;
            ensure!(
                restarts.trim() == "0",
                "{unit} of {} was restarted {} times by systemd",
                host.place.name,
                restarts.trim()
            );
        }
    }
    Ok(())
}
