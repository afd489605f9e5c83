//! Who joins with what does not belong to them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::datacentre::DataCentre;
use crate::process::{Process, tail};
use crate::scenario::setup::Site;
use crate::services::{Agent, PARTITION};
use crate::state::write_private;
use crate::wait::wait_for;

const REFUSAL: Duration = Duration::from_secs(30);
/// The shortest ticket lasts a minute.
const EXPIRY: Duration = Duration::from_secs(100);

pub(super) fn run(lab: &DataCentre, _: &Site) -> Result<()> {
    let core = lab.agent("core").context("no core agent")?;
    let short_lived = ticket(lab, core, "brief", &["--minutes", "1"])?;

    let used = core.ticket_file().to_owned();
    let twin = home(lab, "twin")?;
    fs::copy(core.state_dir().join("key.pem"), twin.join("key.pem"))?;
    refused(lab, core, "twin", &used).context("a used ticket with its own key")?;

    let foreign = ticket(lab, core, "foreign", &[])?;
    home(lab, "thief")?;
    refused(lab, core, "thief", &foreign).context("somebody else's ticket")?;

    let wrong = lab.record.path("drill/wrong-ticket")?;
    let text = fs::read_to_string(ticket(lab, core, "wrong", &[])?)?;
    write_private(&wrong, spoil(&text).as_bytes())?;
    refused(lab, core, "wrong", &wrong).context("a ticket with another secret")?;

    wait_for("the short ticket's end", EXPIRY, || {
        refused(lab, core, "brief", &short_lived)
            .context("an expired ticket")
            .map(Some)
    })
}

pub(super) fn unknown_partition(lab: &DataCentre, site: &Site) -> Result<()> {
    let key = "ab".repeat(32);
    let admin = &lab.people.admin;
    let join = [
        "join",
        "create",
        "core",
        "--partition",
        "nowhere",
        "--id",
        "x",
        "--key-sha256",
        &key,
    ];
    admin.refused(&join, "nowhere")?;
    let create = [
        "machine",
        "create",
        "--name",
        "x",
        "--partition",
        "nowhere",
        "--size",
        "small",
        "--image",
        "debian-12.0",
        "--network",
        &site.network_a,
    ];
    lab.people.tenant_a.refused(&create, "nowhere")
}

fn home(lab: &DataCentre, name: &str) -> Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let dir = lab.record.path(&format!("drill/{name}"))?;
    fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(&dir)?;
    Ok(dir)
}

/// A fresh ticket for the key in the home of that name.
fn ticket(lab: &DataCentre, core: &Agent, name: &str, more: &[&str]) -> Result<PathBuf> {
    let key = core.key_in(&home(lab, name)?)?;
    let path = lab.record.path(&format!("drill/{name}-ticket"))?;
    let out = path.display().to_string();
    let mut arguments = vec![
        "join",
        "create",
        "core",
        "--partition",
        PARTITION,
        "--id",
        name,
        "--key-sha256",
        &key,
        "--out",
        &out,
    ];
    arguments.extend(more);
    lab.people.admin.run(&arguments)?;
    Ok(path)
}

/// An agent with that home is refused with that ticket.
fn refused(lab: &DataCentre, core: &Agent, name: &str, ticket: &Path) -> Result<()> {
    let process: Process = core.start_as(&lab.record, name, &home(lab, name)?, ticket)?;
    let log = process.log().to_owned();
    wait_for("the agent's end", REFUSAL, || {
        Ok((!process.alive()).then_some(()))
    })
    .or_else(|error| {
        process.kill()?;
        Err(error)
    })?;
    let said = tail(&log);
    ensure!(said.contains("refuse"), "it ended otherwise: {said}");
    lab.time.note(&format!("{name} is refused"));
    Ok(())
}

/// The same ticket with another secret.
fn spoil(ticket: &str) -> String {
    // The secret is inside of base64url of JSON: another letter somewhere in its middle is
    // another secret, or no ticket at all; both must be refused.
    let middle = ticket.len() / 2;
    ticket
        .char_indices()
        .map(|(at, c)| {
            if at == middle {
                if c == 'A' { 'B' } else { 'A' }
            } else {
                c
            }
        })
        .collect()
}
