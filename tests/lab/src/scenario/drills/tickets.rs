//! Who joins with what does not belong to them.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::datacentre::DataCentre;
use crate::process::tail;
use crate::scenario::setup::{IMAGE, SIZE, Site};
use crate::services::{Agent, PARTITION};
use crate::state::write_private;
use crate::wait::wait_for;

const ANSWER: Duration = Duration::from_secs(30);
/// The shortest ticket lasts a minute.
const BRIEF: Duration = Duration::from_secs(62);
const EXPIRY: Duration = Duration::from_secs(100);
/// For two minutes the same key may redeem again: the first answer may have been lost.
const USED: Duration = Duration::from_secs(160);
const SESSION: &str = "session.json";

pub(super) fn run(lab: &DataCentre, _: &Site) -> Result<()> {
    let core = lab.agent("core").context("no core agent")?;
    let made = Instant::now();
    let brief = ticket(lab, core, "brief", "--minutes 1")?;

    home(lab, "thief")?;
    let foreign = ticket(lab, core, "foreign", "")?;
    refused(lab, core, "thief", &foreign).context("somebody else's ticket")?;

    let wrong = lab.record.path("drill/wrong-ticket-spoiled")?;
    let text = fs::read_to_string(ticket(lab, core, "wrong", "")?)?;
    write_private(&wrong, spoil(&text)?.as_bytes())?;
    refused(lab, core, "wrong", &wrong).context("a ticket with another secret")?;

    wait_for("the brief ticket's end", EXPIRY, || {
        Ok((made.elapsed() > BRIEF).then_some(()))
    })?;
    refused(lab, core, "brief", &brief).context("an expired ticket")?;

    let twin = home(lab, "twin")?;
    fs::copy(core.state_dir().join("key.pem"), twin.join("key.pem"))?;
    wait_for("the used ticket's refusal", USED, || {
        refused(lab, core, "twin", core.ticket_file())
            .context("a used ticket")
            .map(Some)
    })
}

pub(super) fn unknown_partition(lab: &DataCentre, site: &Site) -> Result<()> {
    let key = "ab".repeat(32);
    lab.people.admin.refused(
        &format!("join create core --partition nowhere --id x --key-sha256 {key}"),
        "nowhere",
    )?;
    lab.people.tenant_a.refused(
        &format!(
            "machine create --name x --partition nowhere --size {SIZE} --image {IMAGE} --network {}",
            site.network_a
        ),
        "nowhere",
    )
}

fn home(lab: &DataCentre, name: &str) -> Result<PathBuf> {
    let dir = lab.record.path(&format!("drill/{name}"))?;
    fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(&dir)?;
    Ok(dir)
}

/// A fresh ticket for the key in the home of that name.
fn ticket(lab: &DataCentre, core: &Agent, name: &str, more: &str) -> Result<PathBuf> {
    let key = core.key_in(&home(lab, name)?)?;
    let path = lab.record.path(&format!("drill/{name}-ticket"))?;
    lab.people.admin.run(&format!(
        "join create core --partition {PARTITION} --id {name} --key-sha256 {key} {more} --out {}",
        path.display()
    ))?;
    Ok(path)
}

/// An agent with that home is refused with that ticket.
fn refused(lab: &DataCentre, core: &Agent, name: &str, ticket: &Path) -> Result<()> {
    let home = home(lab, name)?;
    let process = core.start_as(&lab.record, name, &home, ticket)?;
    let joined = wait_for("an answer to the ticket", ANSWER, || {
        let joined = home.join(SESSION).exists();
        Ok((joined || !process.alive()).then_some(joined))
    })?;
    if joined {
        process.kill()?;
        fs::remove_file(home.join(SESSION))?;
        bail!("{name} has joined");
    }
    let said = tail(process.log());
    ensure!(said.contains("refuse"), "it ended otherwise: {said}");
    // From the code on: the remedy contains colons too.
    let because = said.find("MM-").map_or(&*said, |code| &said[code..]);
    lab.time.note(&format!("{name} is refused: {because}"));
    Ok(())
}

/// The same ticket with another secret.
fn spoil(ticket: &str) -> Result<String> {
    let (prefix, body) = ticket.trim().split_once('.').context("not a ticket")?;
    let mut content: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body)?)?;
    content["secret"] = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()).into();
    Ok(format!(
        "{prefix}.{}",
        URL_SAFE_NO_PAD.encode(content.to_string())
    ))
}
