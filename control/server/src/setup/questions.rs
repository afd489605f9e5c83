//! The questions of the first start.

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use proto_types::PartitionId;

use super::answers::{BackupAnswers, SetupAnswers};
use super::dialogue::Dialogue;
use super::plan::{API_PORT, CLUSTER, DATA_DIR, MESH_PORT, PEERS_PORT, TRUST_DOMAIN, with_port};

/// Default file of the first admin's token.
const TOKEN_FILE: &str = "/etc/metalmesh/admin.token";
/// Default directory of backups.
const BACKUP_DIR: &str = "/var/backups/metalmesh";
/// Default of the hours between two backups.
const BACKUP_HOURS: &str = "24";

/// Asks all questions. What `known` has, from flags, is the default of its question.
///
/// # Errors
/// The input ended before the last question.
pub(super) fn ask<R: BufRead, W: Write>(
    dialogue: &mut Dialogue<R, W>,
    known: SetupAnswers,
    hostname: &str,
) -> Result<SetupAnswers> {
    dialogue
        .say("An empty answer takes the value in brackets. Nothing is written before the end.")?;
    let answers = ask_identity(dialogue, known, hostname)?;
    let answers = ask_addresses(dialogue, answers)?;
    let partition = answers.partition.unwrap_or_default();
    let question = "First partition, to be created later";
    let partition = dialogue.ask(question, &partition, optional_partition)?;
    let token = answers.token_file.unwrap_or_else(|| TOKEN_FILE.into());
    let question = "New file for the first admin's token";
    let token = dialogue.ask(question, &token.to_string_lossy(), path)?;
    Ok(SetupAnswers {
        partition,
        token_file: Some(token),
        backup: ask_backup(dialogue, answers.backup)?,
        ..answers
    })
}

/// Asks for the node's name, place and identity.
fn ask_identity<R: BufRead, W: Write>(
    dialogue: &mut Dialogue<R, W>,
    known: SetupAnswers,
    hostname: &str,
) -> Result<SetupAnswers> {
    let cluster = known.cluster.unwrap_or_else(|| CLUSTER.to_owned());
    let cluster = dialogue.ask("Name of the site (the cluster)", &cluster, name)?;
    let node_id = known.node_id.unwrap_or(1).to_string();
    let node_id = dialogue.ask("Number of this node", &node_id, positive)?;
    let domain = known
        .trust_domain
        .unwrap_or_else(|| TRUST_DOMAIN.to_owned());
    let question = "Trust domain of all identities, never to be changed";
    let domain = dialogue.ask(question, &domain, trust_domain)?;
    let data_dir = known.data_dir.unwrap_or_else(|| DATA_DIR.into());
    let data_dir = dialogue.ask("Data directory", &data_dir.to_string_lossy(), path)?;
    let host = known.host.unwrap_or_else(|| hostname.to_owned());
    let question = "Name or address at which other hosts reach this one";
    let host = dialogue.ask(question, &host, host_name)?;
    Ok(SetupAnswers {
        cluster: Some(cluster),
        node_id: Some(node_id),
        trust_domain: Some(domain),
        data_dir: Some(data_dir),
        host: Some(host),
        ..known
    })
}

/// Asks for the addresses that the node listens on, and for the certificate of the API.
fn ask_addresses<R: BufRead, W: Write>(
    dialogue: &mut Dialogue<R, W>,
    known: SetupAnswers,
) -> Result<SetupAnswers> {
    let api = address_or(known.api_listen, "127.0.0.1", API_PORT);
    let api_listen = dialogue.ask("Address of the API (TCP)", &api, socket)?;
    let question = "Certificate chain of the API, a PEM file; none for plain HTTP";
    let certificate = shown(known.api_certificate.as_ref());
    let api_certificate = dialogue.ask(question, &certificate, optional_path)?;
    let api_key = match &api_certificate {
        Some(_) => {
            let question = "Private key of that certificate, a PEM file";
            Some(dialogue.ask(question, &shown(known.api_key.as_ref()), path)?)
        }
        None => None,
    };
    let mesh = address_or(known.mesh_listen, "0.0.0.0", MESH_PORT);
    let question = "Address of the mesh, for agents and machines (UDP)";
    let mesh_listen = dialogue.ask(question, &mesh, socket)?;
    let peers = address_or(known.peers_listen, "0.0.0.0", PEERS_PORT);
    let question = "Address for the other control nodes (UDP)";
    let peers_listen = dialogue.ask(question, &peers, socket)?;
    Ok(SetupAnswers {
        api_listen: Some(api_listen),
        api_certificate,
        api_key,
        mesh_listen: Some(mesh_listen),
        peers_listen: Some(peers_listen),
        ..known
    })
}

/// Offers a schedule of backups.
fn ask_backup<R: BufRead, W: Write>(
    dialogue: &mut Dialogue<R, W>,
    known: Option<BackupAnswers>,
) -> Result<Option<BackupAnswers>> {
    dialogue.say(
        "Backups are encrypted for a key whose private half is kept elsewhere: make it on another \
         machine with age-keygen, and answer with its public half.",
    )?;
    if !dialogue.confirm("Make backups by schedule", known.is_some())? {
        return Ok(None);
    }
    let known_dir = known
        .as_ref()
        .map(|backup| backup.directory.to_string_lossy().into_owned());
    let known_dir = known_dir.unwrap_or_else(|| BACKUP_DIR.to_owned());
    let directory = dialogue.ask(
        "Directory of the backups, best on another disk",
        &known_dir,
        path,
    )?;
    let known_key = known
        .as_ref()
        .and_then(|backup| backup.recipients.first().cloned());
    let recipient = dialogue.ask(
        "Public half of the key (age1...)",
        &known_key.unwrap_or_default(),
        recipient,
    )?;
    let hours = dialogue.ask("Hours between two backups", BACKUP_HOURS, positive)?;
    Ok(Some(BackupAnswers {
        directory,
        recipients: vec![recipient],
        every_minutes: Some(hours.saturating_mul(60)),
        keep: known.and_then(|backup| backup.keep),
    }))
}

fn address_or(known: Option<SocketAddr>, ip: &str, port: u16) -> String {
    known.map_or_else(|| with_port(ip, port), |known| known.to_string())
}

fn shown(path: Option<&PathBuf>) -> String {
    path.map_or_else(String::new, |path| path.to_string_lossy().into_owned())
}

fn name(answer: &str) -> Result<String, String> {
    let is_good = !answer.is_empty() && answer.len() <= 64 && !answer.chars().any(char::is_control);
    is_good
        .then(|| answer.to_owned())
        .ok_or_else(|| "must have 1 to 64 characters".to_owned())
}

fn positive(answer: &str) -> Result<u64, String> {
    let number = answer.parse().ok().filter(|number: &u64| *number > 0);
    number.ok_or_else(|| "must be a number from 1".to_owned())
}

fn path(answer: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(answer);
    match path.is_absolute() {
        true => Ok(path),
        false => Err("must be an absolute path, which begins with /".to_owned()),
    }
}

fn optional_path(answer: &str) -> Result<Option<PathBuf>, String> {
    match answer {
        "" | "none" => Ok(None),
        answer => path(answer).map(Some),
    }
}

fn host_name(answer: &str) -> Result<String, String> {
    let is_ip = answer.parse::<std::net::IpAddr>().is_ok();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if is_ip || (!answer.is_empty() && answer.len() <= 253 && answer.chars().all(is_name)) {
        return Ok(answer.to_owned());
    }
    Err("must be a host name or an IP address, without a port".to_owned())
}

fn socket(answer: &str) -> Result<SocketAddr, String> {
    let address = answer
        .parse()
        .ok()
        .filter(|address: &SocketAddr| address.port() > 0);
    address.ok_or_else(|| "must be IP:PORT, for example 0.0.0.0:4443".to_owned())
}

fn trust_domain(answer: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let is_good = !answer.is_empty() && answer.len() <= 255 && answer.chars().all(is_plain);
    is_good
        .then(|| answer.to_owned())
        .ok_or_else(|| "must be lower-case letters, digits, '-' and '.'".to_owned())
}

fn optional_partition(answer: &str) -> Result<Option<String>, String> {
    match answer {
        "" | "none" => Ok(None),
        answer => answer
            .parse::<PartitionId>()
            .map(|id| Some(id.to_string()))
            .map_err(|error| error.to_string()),
    }
}

fn recipient(answer: &str) -> Result<String, String> {
    match proto_backup::Recipients::parse([answer]) {
        Ok(_) if answer.starts_with("age1") => Ok(answer.to_owned()),
        Ok(_) => Err("must begin with age1".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::plan::NodePlan;

    const RECIPIENT: &str = "age14j4swmfecpyf25e2wh5lc86xnh4e68wjqec7lggufz205p049ugszegu4c";

    fn asked(typed: &str, known: SetupAnswers) -> (Result<SetupAnswers>, String) {
        let mut shown = Vec::new();
        let mut dialogue = Dialogue::new(typed.as_bytes(), &mut shown);
        let answers = ask(&mut dialogue, known, "control-1");
        (answers, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn defaults_alone_make_a_node() {
        let (answers, _) = asked(&"\n".repeat(12), SetupAnswers::default());
        let answers = answers.unwrap();
        assert_eq!(answers.backup, None);
        let plan = NodePlan::forming(answers, "").unwrap();
        assert_eq!(plan.peers_address, "control-1:4444");
    }

    #[test]
    fn answers_reach_the_plan_and_bad_ones_are_asked_again() {
        let typed = format!(
            "east\n2\nEast\neast.example\nrelative\n/srv/mesh\nbad host\n192.0.2.1\n192.0.2.1:443\n\
             /c.pem\n/k.pem\n\n\npart\n/run/token\nyes\n/backup\nage1\n{RECIPIENT}\n6\n"
        );
        let (answers, shown) = asked(&typed, SetupAnswers::default());
        let answers = answers.unwrap_or_else(|error| panic!("{error:#}\n{shown}"));
        for problem in ["absolute path", "host name", "lower-case"] {
            assert!(shown.contains(problem), "{shown}");
        }
        assert_eq!(answers.cluster.as_deref(), Some("east"));
        assert_eq!(answers.partition.as_deref(), Some("part"));
        let backup = answers.backup.clone().unwrap();
        assert_eq!(backup.every_minutes, Some(360));
        assert_eq!(backup.recipients, [RECIPIENT]);
        let plan = NodePlan::forming(answers, "").unwrap();
        assert_eq!(plan.data_dir, PathBuf::from("/srv/mesh"));
        assert_eq!(plan.mesh_addresses, ["192.0.2.1:4443"]);
        assert!(plan.tls.is_some());
    }

    #[test]
    fn an_input_that_ends_writes_nothing() {
        let (answers, _) = asked("east\n", SetupAnswers::default());
        assert!(
            answers
                .unwrap_err()
                .to_string()
                .contains("nothing was written")
        );
    }
}
