//! The tutorial, carried out as it is written.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::control::{api_url, certificate};
use crate::datacentre::DataCentre;
use crate::process::Process;
use crate::scenario::events::newest;
use crate::scenario::setup::Site;
use crate::state::write_private;
use crate::wait::wait_for;

const TEXT: &str = include_str!("../../../../../docs/tutorial/first-machine.md");
/// Somebody who logs in with a browser.
const BROWSER: &str = include_str!("../../../../../control/server/tests/server/browser.py");
const PASSWORD: &str = "as long as a password should be\n";
/// Of the reader and of the colleague.
const USERS: [&str; 2] = ["ada", "ben"];
/// Stands in the output behind each block.
const MARK: &str = "-- end of block";
const ALL_OF_IT: Duration = Duration::from_secs(1500);
const BACK: Duration = Duration::from_secs(240);

/// Commands of the tutorial, and words of what they print.
#[derive(Debug, Default, PartialEq, Eq)]
struct Block {
    script: String,
    prints: Vec<String>,
}

pub(super) fn run(lab: &DataCentre, site: &Site) -> Result<()> {
    let home = lab.record.path("drill/tutorial/home")?;
    fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(&home)?;
    let password = home.with_file_name("password");
    write_private(&password, PASSWORD.as_bytes())?;
    for user in USERS {
        lab.people.admin.run(&format!(
            "user create {user} --password-file {}",
            password.display()
        ))?;
    }
    let blocks = blocks(TEXT);
    ensure!(blocks.len() > 3, "the tutorial has no commands");
    let process = start(lab, &home, &password, &blocks)?;
    let mut is_open = false;
    wait_for("the end of the tutorial", ALL_OF_IT, || {
        lab.watch()?;
        if !is_open {
            is_open = open_network(lab, site)?;
        }
        Ok((!process.alive()).then_some(()))
    })?;
    check(&blocks, process.log())?;
    wait_for("the machine back in the pool", BACK, || {
        let machines = lab.watch()?;
        let back = machines.iter().all(|it| newest(it) == "waiting");
        Ok(back.then_some(()))
    })
}

/// Runs the blocks one after the other in one shell, which ends with the first that fails.
fn start(lab: &DataCentre, home: &Path, password: &Path, blocks: &[Block]) -> Result<Process> {
    let programs = programs(lab, home, password)?;
    let script = home.with_file_name("script");
    let parts = blocks
        .iter()
        .map(|it| format!("{}echo '{MARK}'\n", it.script));
    fs::write(&script, parts.collect::<String>())?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = lab.people.tenant_a.namespace.command("bash");
    command
        .args(["-eu", "-o", "pipefail"])
        .arg(&script)
        .current_dir(home)
        .env("HOME", home)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("BROWSER", "xdg-open")
        .env("API", api_url())
        .env("CA", certificate(&lab.record)?)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("METALMESH_CONFIG");
    Process::spawn(&lab.record, "tutorial", command)
}

/// Where the reader's programs are: the command line, and a browser with somebody in front of it.
fn programs(lab: &DataCentre, home: &Path, password: &Path) -> Result<PathBuf> {
    let dir = home.with_file_name("bin");
    fs::create_dir_all(&dir)?;
    std::os::unix::fs::symlink(&lab.people.admin.program, dir.join("metalmesh"))?;
    fs::write(dir.join("browser.py"), BROWSER)?;
    let browser = dir.join("xdg-open");
    let [reader, colleague] = USERS;
    let text = format!(
        "#!/bin/sh\nwho={reader}\n[ -z \"${{METALMESH_CONFIG:-}}\" ] || who={colleague}\n\
         exec python3 {}/browser.py \"$1\" \"$who\" \"$CA\" <{}\n",
        dir.display(),
        password.display()
    );
    fs::write(&browser, text)?;
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o700))?;
    Ok(dir)
}

/// Gives the reader's network its way out of the data centre, once it is there.
fn open_network(lab: &DataCentre, site: &Site) -> Result<bool> {
    let networks = lab.people.admin.json("network ls --all")?;
    let text = |it: &Value, field: &str| it.get(field).and_then(Value::as_str).map(str::to_owned);
    let is_readers = |it: &&Value| {
        text(it, "name").as_deref() == Some("private")
            && text(it, "id") != Some(site.network_a.clone())
    };
    let all = networks.as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(network) = all.iter().find(is_readers) else {
        return Ok(false);
    };
    let vrf = network.get("vrf").and_then(Value::as_u64);
    let vni = u32::try_from(vrf.context("the network has no VRF")?)?;
    let prefix = network.pointer("/prefixes/0").and_then(Value::as_str);
    lab.topology
        .open_segment(vni, prefix.context("the network has no prefix")?)?;
    Ok(true)
}

/// Every block ran to its end and printed what the tutorial says.
fn check(blocks: &[Block], log: &Path) -> Result<()> {
    let log = fs::read_to_string(log)?;
    let printed: Vec<&str> = log.split(MARK).collect();
    ensure!(
        printed.len() == blocks.len() + 1,
        "block {} of {} failed: {}",
        printed.len(),
        blocks.len(),
        printed.last().map_or("", |it| it.trim())
    );
    for (at, (block, printed)) in blocks.iter().zip(&printed).enumerate() {
        for words in &block.prints {
            ensure!(
                printed.contains(words.as_str()),
                "block {} does not print {words:?}: {printed}",
                at + 1
            );
        }
    }
    Ok(())
}

/// Blocks of `sh`, each with the lines of the block of `text` behind it.
fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut language: Option<&str> = None;
    for line in markdown.lines() {
        match (language, line.strip_prefix("```")) {
            (None, Some(begun)) => {
                language = Some(begun);
                if begun == "sh" {
                    blocks.push(Block::default());
                }
            }
            (Some(_), Some(_)) => language = None,
            (Some("sh"), None) => {
                if let Some(block) = blocks.last_mut() {
                    block.script += &format!("{line}\n");
                }
            }
            (Some("text"), None) => {
                if let Some(block) = blocks.last_mut() {
                    block.prints.push(line.to_owned());
                }
            }
            _ => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_what_they_print() {
        let text = "# A\n```sh\nls\npwd\n```\nso:\n\n```text\nhome\n```\n```toml\na = 1\n```\n\
                    ```sh\ntrue\n```\n";
        let block = |script: &str, prints: &[&str]| Block {
            script: script.to_owned(),
            prints: prints.iter().map(|it| (*it).to_owned()).collect(),
        };
        assert_eq!(
            blocks(text),
            [block("ls\npwd\n", &["home"]), block("true\n", &[])]
        );
    }
}
