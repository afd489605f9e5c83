//! The text of the configuration file.

use toml::Value;

use super::plan::{NodePart, NodePlan};

/// The configuration file of a planned node, with comments.
pub(super) fn render(plan: &NodePlan) -> String {
    let parts = [head(plan), api(plan), mesh(plan), peers(plan), backup(plan)];
    parts.join("\n")
}

/// A text as TOML.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// Texts as a TOML list.
fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

fn head(plan: &NodePlan) -> String {
    let data_dir = quoted(&plan.data_dir.to_string_lossy());
    let part = match &plan.part {
        NodePart::Forms { cluster, node_id } => format!(
            "# Name of the cluster and number of this node in it. A data directory stays with both.\n\
             cluster = {}\nnode_id = {node_id}\n",
            quoted(cluster)
        ),
        NodePart::Joins => {
            "# The node got its number and the name of its cluster when it joined.\n".to_owned()
        }
    };
    format!(
        "# Configuration of this control node, written at its first start. All fields, with their\n\
         # defaults: metalmeshd.example.toml. After a change: metalmeshd check --config FILE\n\n\
         # The state is kept here: Raft log, state, snapshots, keys. Belongs to this node alone.\n\
         data_dir = {data_dir}\n\n{part}"
    )
}

fn api(plan: &NodePlan) -> String {
    let tls = match &plan.tls {
        Some(files) => format!(
            "# Certificate chain and key, PEM.\ntls_certificate = {}\ntls_key = {}\n",
            quoted(&files.certificate.to_string_lossy()),
            quoted(&files.key.to_string_lossy())
        ),
        None => {
            "# Certificate chain and key, PEM. Without them the API speaks plain HTTP: keep it \
                 on loopback\n# or behind a proxy that ends TLS.\n\
                 #: tls_certificate = \"/etc/metalmesh/api.crt\"\n\
                 #: tls_key = \"/etc/metalmesh/api.key\"\n"
                .to_owned()
        }
    };
    let listen = quoted(&plan.api_listen.to_string());
    format!(
        "[api]\n# TCP address of the public API: Connect, gRPC and gRPC-Web.\n\
         listen = {listen}\n{tls}"
    )
}

fn mesh(plan: &NodePlan) -> String {
    let listen = quoted(&plan.mesh_listen.to_string());
    let addresses = match plan.mesh_addresses.as_slice() {
        [] => String::new(),
        addresses => format!(
            "# Agents and machines reach it here, host:port; goes into their tickets.\n\
             addresses = {}\n",
            list(addresses)
        ),
    };
    format!(
        "[mesh]\n# UDP address of the mesh, where agents and machines dial in (QUIC, mutual TLS).\n\
         listen = {listen}\n{addresses}\
         # Name of all identities, spiffe://<trust_domain>/...; never to be changed.\n\
         trust_domain = {}\n",
        quoted(&plan.trust_domain)
    )
}

fn peers(plan: &NodePlan) -> String {
    let listen = quoted(&plan.peers_listen.to_string());
    let address = match plan.peers_address.as_str() {
        "" => String::new(),
        address => format!(
            "# They reach it here, host:port.\naddress = {}\n",
            quoted(address)
        ),
    };
    let join = match plan.part {
        NodePart::Forms { .. } => "",
        NodePart::Joins => {
            "# An empty data directory joins a cluster instead of forming one. Ignored afterwards.\n\
             join = true\n"
        }
    };
    format!(
        "# The other control nodes.\n[peers]\n\
         # UDP address for them (QUIC, mutual TLS with certificates of their own).\n\
         listen = {listen}\n{address}{join}"
    )
}

fn backup(plan: &NodePlan) -> String {
    let Some(backup) = &plan.backup else {
        return "# Backups that the node that leads makes by itself, encrypted with age. None are \
                made without a\n# directory or a bucket; the guide is \
                docs/how-to/backup-and-restore.md.\n\
                #: [backup]\n#: every_minutes = 1440\n#: keep = 14\n\
                #: recipients = [\"age1...\"]\n#: directory = \"/var/backups/metalmesh\"\n"
            .to_owned();
    };
    let number = |name: &str, value: Option<u64>| {
        value.map_or_else(String::new, |value| format!("{name} = {value}\n"))
    };
    format!(
        "# Backups that the node that leads makes by itself: whole state, one moment. Give each node\n\
         # this section. The private half of the key does not belong on this machine.\n[backup]\n\
         {}{}recipients = {}\ndirectory = {}\n",
        number("every_minutes", backup.every_minutes),
        number("keep", backup.keep.map(u64::from)),
        list(&backup.recipients),
        quoted(&backup.directory.to_string_lossy())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Overrides};
    use crate::setup::answers::SetupAnswers;

    const RECIPIENT: &str = "age14j4swmfecpyf25e2wh5lc86xnh4e68wjqec7lggufz205p049ugszegu4c";

    fn read(plan: &NodePlan) -> Config {
        let text = render(plan);
        Config::from_text(&text, &Overrides::default()).unwrap_or_else(|e| panic!("{e:#}\n{text}"))
    }

    #[test]
    fn what_is_written_is_what_was_answered() {
        let text = format!(
            "cluster = 'my \"site\"'\nnode_id = 7\ndata_dir = '/srv/it''s'\n\
             api_listen = '10.0.0.1:443'\napi_certificate = '/c'\napi_key = '/k'\n\
             mesh_addresses = ['a.example:1', 'b.example:2']\ntrust_domain = 'east.example'\n\
             [backup]\ndirectory = '/b'\nrecipients = ['{RECIPIENT}']\nkeep = 3\n"
        );
        // TOML has no escape in a literal string.
        let text = text.replace("'/srv/it''s'", "\"/srv/it's\"");
        let answers: SetupAnswers = toml::from_str(&text).unwrap();
        let plan = NodePlan::forming(answers, "control-1").unwrap();
        let config = read(&plan);
        assert_eq!(config.cluster.as_deref(), Some("my \"site\""));
        assert_eq!(config.node_id, Some(7));
        assert_eq!(config.data_dir, Some(plan.data_dir.clone()));
        assert_eq!(config.api_listen, plan.api_listen);
        assert_eq!(config.tls, plan.tls);
        assert_eq!(config.mesh_addresses, plan.mesh_addresses);
        assert_eq!(config.trust_domain, "east.example");
        let peers = config.peers.unwrap();
        assert_eq!((peers.listen, peers.join), (plan.peers_listen, false));
        assert_eq!(peers.address, "control-1:4444");
        let schedule = config.backup.unwrap();
        assert_eq!(
            (schedule.keep, schedule.recipients),
            (3, vec![RECIPIENT.to_owned()])
        );
    }

    #[test]
    fn suggestions_in_comments_are_good_too() {
        let plan = NodePlan::forming(SetupAnswers::default(), "control-1").unwrap();
        let text = render(&plan)
            .replace("#: ", "")
            .replace("age1...", RECIPIENT);
        let config = Config::from_text(&text, &Overrides::default()).unwrap();
        assert!(config.tls.is_some() && config.backup.is_some());
        let joining = NodePlan {
            part: NodePart::Joins,
            ..plan
        };
        let config = read(&joining);
        assert!(config.peers.unwrap().join);
        assert_eq!((config.cluster, config.node_id), (None, None));
        assert!(config.tls.is_none() && config.backup.is_none());
    }
}
