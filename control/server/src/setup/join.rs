//! `metalmeshd join`: another node of a cluster, by an invitation.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use control_store::{DirectoryOwner, claimed};
use proto_identity::invitation::NodeInvitation;
use tokio_util::sync::CancellationToken;

use super::answers::SetupAnswers;
use super::invited;
use super::place;
use super::plan::NodePlan;
use super::report::{ConfigText, SetupReport};
use super::source::CONFIG_FILE;
use super::steps::{StepFacts, after_join};
use super::{SetupConfig, check_host, give_away, hostname, template, write};
use crate::args::JoinArgs;
use crate::config::{Config, PeerSettings};
use crate::guarded_dir::GuardedDir;
use crate::join::ticket_path;
use crate::{files, node};

/// Joins this host and prints the report.
pub(crate) async fn join(args: &JoinArgs, stop: CancellationToken) -> Result<()> {
    let invitation = invited::read()?;
    let mut report = SetupReport::new(args.setup.output, args.setup.dry_run);
    let done = carry_out(args, &invitation, &mut report, &stop).await;
    report.print(done.as_ref().err());
    done
}

async fn carry_out(
    args: &JoinArgs,
    invitation: &NodeInvitation,
    report: &mut SetupReport,
    stop: &CancellationToken,
) -> Result<()> {
    report.step(format!(
        "invitation: cluster {:?} ({}) at {}, authority sha256 {}",
        invitation.cluster,
        invitation.cluster_id,
        invitation.ticket.control.join(", "),
        invitation.ticket.roots.join(", ")
    ));
    let setup = prepare(args, invitation)?;
    let peers = checked_peers(&setup, invitation)?;
    let dir = setup
        .config
        .data_dir
        .as_deref()
        .context("data_dir: is missing")?;
    let owner = place::file_owner(args.setup.service_user.as_deref())?;
    if let Some(known) = joined_before(dir, invitation)? {
        // An earlier attempt may have ended before it gave the files away. A node that runs has them.
        if !args.setup.dry_run
            && let Some(guarded) = GuardedDir::take(dir, owner)?
        {
            give_away(guarded, &setup.config, owner)?;
        }
        report.step("this host has joined already".to_owned());
        finish(&setup, &known, report);
        return Ok(());
    }
    check_host(&setup, &args.setup, owner, report).await?;
    if args.setup.dry_run {
        if let Some(new) = &setup.new {
            report.would_write(new);
        }
        return Ok(());
    }
    let mode = write(&setup, &args.setup, owner)?;
    if let (Some(new), Some(mode)) = (&setup.new, mode) {
        report.wrote(new, mode);
    }
    let guarded = GuardedDir::take(dir, owner)?
        .with_context(|| format!("data_dir: {} is in use by another process", dir.display()))?;
    let joined = match place_ticket(dir, peers, invitation) {
        Ok(()) => {
            report.step(format!("joining as {} ...", peers.address));
            node::join(&setup.config, stop).await
        }
        Err(error) => Err(error),
    };
    let given = give_away(guarded, &setup.config, owner);
    let known = joined.context(
        "this host has not joined; correct the cause and run the same command again, with a new \
         invitation if this one is used up or has ended",
    )?;
    given?;
    finish(&setup, &known, report);
    Ok(())
}

fn finish(setup: &SetupConfig, known: &DirectoryOwner, report: &mut SetupReport) {
    report.node(known);
    let facts = StepFacts {
        config: &setup.config,
        path: setup.path.as_deref(),
        token_file: None,
        partition: None,
    };
    report.next(after_join(facts, known.node));
}

/// The configuration: the file that exists, or one from the invitation and the answers.
fn prepare(args: &JoinArgs, invitation: &NodeInvitation) -> Result<SetupConfig> {
    let path = args
        .config
        .clone()
        .unwrap_or_else(|| PathBuf::from(CONFIG_FILE));
    if path.exists() && !args.setup.force {
        ensure!(
            args.setup.answers.is_none(),
            "{}: exists already, and --answers would replace it; use it without --answers, or \
             replace it by --force",
            path.display()
        );
        let config = Config::resolve(Some(&path), false, &args.overrides)?;
        return Ok(SetupConfig {
            config,
            path: Some(path),
            new: None,
        });
    }
    let answers = args.setup.answers.as_deref().map(SetupAnswers::read);
    let answers = answers.transpose()?.unwrap_or_default();
    let mut answers = answers.overridden(&args.overrides);
    answers.peers_listen = args.peers_listen.or(answers.peers_listen);
    let plan = NodePlan::joining(answers, invitation, &hostname())?;
    let text = template::render(&plan);
    let config = Config::from_text(&text, &args.overrides)?;
    Ok(SetupConfig {
        config,
        path: Some(path.clone()),
        new: Some(ConfigText { path, text }),
    })
}

/// Checks that the configuration is one of a node that joins the cluster of the invitation.
fn checked_peers<'a>(
    setup: &'a SetupConfig,
    invitation: &NodeInvitation,
) -> Result<&'a PeerSettings> {
    let file = setup
        .path
        .as_deref()
        .unwrap_or_else(|| Path::new(CONFIG_FILE))
        .display();
    let peers = setup.config.peers.as_ref().filter(|peers| peers.join);
    let Some(peers) = peers else {
        bail!(
            "peers.join: is not true in {file}; set it together with peers.listen and \
             peers.address, or have the file replaced by one for this invitation: --force"
        );
    };
    let invited = &invitation.peer_address;
    ensure!(
        invited.is_empty() || peers.address == *invited,
        "peers.address: is {:?} in {file}, but the invitation is for {invited:?}; correct it, or \
         have an invitation made for it: metalmesh cluster invite {}",
        peers.address,
        peers.address
    );
    let (own, theirs) = (&setup.config.trust_domain, &invitation.trust_domain);
    ensure!(
        own == theirs,
        "mesh.trust_domain: is {own:?} in {file}, but the cluster's is {theirs:?}; correct it"
    );
    Ok(peers)
}

/// The node that this data directory belongs to, if an earlier attempt got that far.
fn joined_before(dir: &Path, invitation: &NodeInvitation) -> Result<Option<DirectoryOwner>> {
    let known = claimed(dir).context("cannot read the data directory")?;
    if let Some(known) = &known {
        ensure!(
            known.cluster_id == invitation.cluster_id,
            "data_dir: {} belongs to node {} of cluster {:?} ({}), the invitation is for cluster \
             {:?} ({}); move the directory away, or name another one",
            dir.display(),
            known.node,
            known.cluster,
            known.cluster_id,
            invitation.cluster,
            invitation.cluster_id
        );
    }
    Ok(known)
}

/// Writes the ticket to its place. One of an earlier attempt is replaced.
fn place_ticket(dir: &Path, peers: &PeerSettings, invitation: &NodeInvitation) -> Result<()> {
    node::make_data_dir(dir)?;
    let path = ticket_path(peers, dir);
    if path.exists() {
        std::fs::remove_file(&path)
            .with_context(|| format!("cannot replace the ticket {}", path.display()))?;
    }
    files::write_private(&path, &format!("{}\n", invitation.ticket.encode()))
}

#[cfg(test)]
mod tests {
    use proto_identity::ticket::{JoinTicket, SECRET_LEN};
    use uuid::Uuid;

    use super::*;
    use crate::config::Overrides;

    fn invitation() -> NodeInvitation {
        NodeInvitation {
            ticket: JoinTicket {
                id: "node-2".into(),
                secret: [7; SECRET_LEN],
                roots: vec!["ab".repeat(32)],
                control: vec!["10.0.0.1:4443".into()],
                tpm: false,
            },
            cluster: "east".into(),
            cluster_id: Uuid::from_u128(5),
            trust_domain: "metalmesh.local".into(),
            peer_address: "10.0.0.2:4444".into(),
        }
    }

    #[test]
    fn a_configuration_that_does_not_fit_the_invitation_is_named() {
        let good = "data_dir = '/x'\n[peers]\nlisten = '10.0.0.2:4444'\njoin = true\n";
        let refused = |text: &str| {
            let setup = SetupConfig {
                config: Config::from_text(text, &Overrides::default()).unwrap(),
                path: Some(PathBuf::from("/own.toml")),
                new: None,
            };
            let checked = checked_peers(&setup, &invitation()).map(|peers| peers.listen);
            checked
                .err()
                .map_or_else(String::new, |error| error.to_string())
        };
        assert_eq!(refused(good), "");
        for (text, field) in [
            ("data_dir = '/x'\n".to_owned(), "peers.join"),
            (good.replace("true", "false"), "peers.join"),
            (good.replace("10.0.0.2", "10.0.0.3"), "peers.address"),
            (
                format!("{good}[mesh]\ntrust_domain = 'a.b'\n"),
                "mesh.trust_domain",
            ),
        ] {
            let said = refused(&text);
            assert!(
                said.starts_with(field) && said.contains("/own.toml"),
                "{text}: {said}"
            );
        }
    }

    #[test]
    fn a_ticket_of_an_earlier_attempt_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let text = format!("data_dir = {data:?}\n[peers]\nlisten = '10.0.0.2:4444'\njoin = true\n");
        let config = Config::from_text(&text, &Overrides::default()).unwrap();
        let peers = config.peers.as_ref().unwrap();
        for _attempt in 0..2 {
            place_ticket(&data, peers, &invitation()).unwrap();
        }
        let written = std::fs::read_to_string(ticket_path(peers, &data)).unwrap();
        assert_eq!(JoinTicket::parse(&written).unwrap(), invitation().ticket);
        assert_eq!(joined_before(&data, &invitation()).unwrap(), None);
    }
}
