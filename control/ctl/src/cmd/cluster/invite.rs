//! `metalmesh cluster invite` and `metalmesh cluster join`: how a control node joins.
//!
//! `invite` asks a running node for an invitation and prints the one line that joins the new host.
//! `join` without a key runs on the new host, and hands the line on its standard input to metalmeshd.

use std::path::PathBuf;
use std::process::Command as Process;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use proto_public::metalmesh::admin::v1::{
    ClusterServiceInviteRequest, ClusterServiceInviteResponse,
};
use serde_json::{Value, json};

use crate::app::App;
use crate::cmd::given;
use crate::files;
use crate::output::to_json;

#[derive(Debug, Args)]
pub(crate) struct ClusterInviteArgs {
    /// Address at which the other nodes will reach the new one: its peers.address.
    ///
    /// The invitation works from that host alone, once, for the first key that shows it.
    #[arg(value_name = "HOST:PORT", required_unless_present = "key_sha256")]
    address: Option<String>,
    /// Bind the invitation to this key instead: the SHA-256 that metalmeshd prints while it waits to
    /// join. The ticket is then useless to whoever reads it.
    #[arg(long, value_name = "HEX")]
    key_sha256: Option<String>,
    /// Validity of the invitation, in minutes: at most 60, with --key-sha256 at most 1440.
    #[arg(long, default_value_t = 15)]
    minutes: u32,
    /// Write it to this new file (mode 0600) instead of stdout: the invitation for
    /// `metalmeshd join < FILE`, or with --key-sha256 the ticket.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterJoinArgs {
    /// Create a ticket for this key instead of joining: the same as `cluster invite --key-sha256`.
    #[arg(long, value_name = "HEX")]
    key_sha256: Option<String>,
    /// Validity of the ticket, in minutes.
    #[arg(long, default_value_t = 15)]
    minutes: u32,
    /// Write the ticket to this new file (mode 0600) instead of stdout.
    #[arg(long, value_name = "FILE", requires = "key_sha256")]
    out: Option<PathBuf>,
    /// Configuration file of this host's node, which is written unless it exists.
    #[arg(
        long = "node-config",
        value_name = "FILE",
        conflicts_with = "key_sha256"
    )]
    node_config: Option<PathBuf>,
    /// Program of the node.
    #[arg(long, value_name = "FILE", default_value = "metalmeshd")]
    metalmeshd: PathBuf,
}

impl ClusterJoinArgs {
    /// `true` if the command joins this host, and needs no server.
    pub(crate) fn is_local(&self) -> bool {
        self.key_sha256.is_none()
    }

    /// The invitation that the command asks for with --key-sha256.
    pub(super) fn into_invite(self) -> ClusterInviteArgs {
        ClusterInviteArgs {
            address: None,
            key_sha256: self.key_sha256,
            minutes: self.minutes,
            out: self.out,
        }
    }
}

/// Joins this host: metalmeshd reads the invitation from the standard input of this program.
pub(crate) fn join_here(join: &ClusterJoinArgs) -> Result<()> {
    let mut process = Process::new(&join.metalmeshd);
    process.arg("join");
    if let Some(config) = &join.node_config {
        process.arg("--config").arg(config);
    }
    let status = process.status().with_context(|| {
        let program = join.metalmeshd.display();
        format!("cannot run {program}; name it with --metalmeshd, on the new node's own host")
    })?;
    ensure!(status.success(), "metalmeshd join failed");
    Ok(())
}

pub(super) async fn invite(app: &App, invite: ClusterInviteArgs) -> Result<()> {
    if let Some(path) = &invite.out {
        files::check_new(path)?;
    }
    let has_key = invite.key_sha256.is_some();
    let request = ClusterServiceInviteRequest {
        key_sha256: invite.key_sha256.unwrap_or_default(),
        minutes: invite.minutes,
        peer_address: invite.address.unwrap_or_default(),
    };
    let answer = app.client.clusters().invite(request).await?.into_inner();
    let node = given(answer.node.clone())?;
    if let Some(path) = invite.out {
        let secret = if has_key {
            &answer.secret
        } else {
            &answer.invitation
        };
        files::write_private(&path, &format!("{secret}\n"))?;
        return app.output.one(&node);
    }
    let whole = whole(&answer, to_json(&node)?, has_key);
    if has_key {
        return app.output.secret(&answer.secret, &whole);
    }
    app.output.secret(&pasted(&answer.invitation), &whole)?;
    noteln!(
        "paste this line on the new host, as root, within {} minutes; it works once, from {} alone. \
         Then: metalmesh cluster promote {} --wait",
        invite.minutes,
        node.peer_address,
        node.id
    );
    Ok(())
}

/// The answer as JSON or YAML.
fn whole(answer: &ClusterServiceInviteResponse, node: Value, has_key: bool) -> Value {
    let mut whole = json!({
        "node": node,
        "secret": answer.secret,
        "invitation": answer.invitation,
    });
    if !has_key {
        whole["command"] = pasted(&answer.invitation).into();
    }
    whole
}

/// The line for the new host. `printf` is a part of every shell, so that the secret is in the arguments
/// of no process, which every user of the host could read.
fn pasted(invitation: &str) -> String {
    format!("printf %s {invitation} | metalmeshd join")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cmd::CommandLine;

    #[test]
    fn an_invitation_needs_an_address_or_a_key() {
        for (words, is_good) in [
            ("invite", false),
            ("invite control-2:4444", true),
            ("invite --key-sha256 ab", true),
            ("invite control-2:4444 --key-sha256 ab --out ticket", true),
            ("join", true),
            ("join --node-config node.toml", true),
            ("join --key-sha256 ab --minutes 5 --out ticket", true),
            ("join --out ticket", false),
            ("join --key-sha256 ab --node-config node.toml", false),
        ] {
            let all = ["metalmesh", "cluster"].into_iter().chain(words.split(' '));
            let parsed = CommandLine::try_parse_from(all);
            assert_eq!(parsed.is_ok(), is_good, "{words}: {parsed:?}");
        }
    }

    #[test]
    fn the_pasted_line_gives_no_process_the_secret_as_an_argument() {
        let line = pasted("mmi1.abc");
        let (printed, process) = line.split_once(" | ").unwrap();
        assert!(printed.starts_with("printf ") && printed.contains("mmi1.abc"));
        assert_eq!(process, "metalmeshd join");
    }

    #[test]
    fn only_a_ticket_for_a_key_has_no_line() {
        let answer = ClusterServiceInviteResponse {
            secret: "mmt1.t".to_owned(),
            invitation: "mmi1.i".to_owned(),
            ..Default::default()
        };
        for (has_key, command) in [(true, None), (false, Some(pasted("mmi1.i")))] {
            let whole = whole(&answer, Value::Null, has_key);
            let found = whole["command"].as_str().map(str::to_owned);
            assert_eq!(found, command);
            assert_eq!(whole["secret"], "mmt1.t");
        }
    }
}
