//! The first start on fresh hosts: unattended init of one node, and two more by the pasted line.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use proto_public::metalmesh::admin::v1::{ClusterServiceInviteRequest, NodeRole};
use serde_json::Value;

use crate::cli::metalmesh;
use crate::daemon::program;
use crate::nodes::{Cluster, Node, free_tcp, free_udp};

/// A host before its first start: its answers, and the addresses in them.
pub(crate) struct FreshHost {
    pub(crate) dir: PathBuf,
    api: String,
    mesh: String,
    peers: String,
}

impl FreshHost {
    pub(crate) fn new(dir: PathBuf) -> Self {
        fs::create_dir_all(&dir).unwrap();
        let host = Self {
            api: format!("127.0.0.1:{}", free_tcp()),
            mesh: format!("127.0.0.1:{}", free_udp()),
            peers: format!("127.0.0.1:{}", free_udp()),
            dir,
        };
        let answers = format!(
            "data_dir = {:?}\napi_listen = {:?}\nmesh_listen = {:?}\npeers_listen = {:?}\n",
            host.dir.join("data"),
            host.api,
            host.mesh,
            host.peers
        );
        fs::write(host.answers(), answers).unwrap();
        host
    }

    fn answers(&self) -> PathBuf {
        self.dir.join("answers.toml")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.join("node.toml")
    }

    fn token(&self) -> PathBuf {
        self.dir.join("admin.token")
    }

    /// `metalmeshd init` with the answers and more flags.
    pub(crate) fn init(&self, flags: &[&str]) -> Output {
        let mut command = Command::new(program());
        command.args(["init", "-o", "json", "--answers"]);
        command
            .arg(self.answers())
            .arg("--config")
            .arg(self.config());
        command.arg("--token-file").arg(self.token()).args(flags);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Pastes a line into a shell of this host.
    fn paste(&self, line: &str, flags: &str) -> Output {
        let programs = Path::new(program()).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let config = self.config();
        let line = format!("{line} -o json --config {} {flags}", config.display());
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).env("PATH", path);
        command.stdin(Stdio::null()).output().unwrap()
    }

    fn with_answers(&self) -> String {
        format!("--answers {}", self.answers().display())
    }

    /// The node of this host, which has its configuration.
    fn node(&self) -> Node {
        Node::configured(self.dir.clone(), &self.api, &self.mesh)
    }

    pub(crate) fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }
}

/// The report of a program that succeeded.
pub(crate) fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The error of a program that failed.
pub(crate) fn failure(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A cluster of one node, set up from answers.
fn formed(host: &FreshHost) -> Cluster {
    let made = report(&host.init(&[]));
    assert_eq!(made["node"]["id"], 1);
    let token = fs::read_to_string(host.token()).unwrap();
    let mut first = host.node();
    first.start();
    first.wait_said("ready ");
    Cluster::of(first, token.trim().to_owned())
}

/// The line that `metalmesh cluster invite` prints; where the program is not built, that of the API.
async fn invited(cluster: &Cluster, host: &FreshHost) -> String {
    if let Some(program) = metalmesh() {
        let first = &cluster.nodes[0];
        let mut command = Command::new(program);
        command.args(["cluster", "invite", &host.peers, "--api-url", &first.api]);
        let token = first.dir.join("admin.token");
        command.env("METALMESH_TOKEN_FILE", token);
        command.env("METALMESH_CONFIG", host.dir.join("no-context.yaml"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(
            said.contains("as root") && said.contains(&host.peers),
            "{said}"
        );
        let line = String::from_utf8(output.stdout).unwrap();
        assert_eq!(line.lines().count(), 1, "{line}");
        return line.trim().to_owned();
    }
    let request = ClusterServiceInviteRequest {
        peer_address: host.peers.clone(),
        ..Default::default()
    };
    let answer = cluster.client(0).clusters().invite(request).await.unwrap();
    let invitation = answer.into_inner().invitation;
    format!("printf %s {invitation} | metalmeshd join")
}

/// The part of a line that nobody else may see.
fn secret(line: &str) -> &str {
    line.split(' ')
        .find(|word| word.starts_with("mmi1."))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_fresh_hosts_become_a_cluster_by_pasted_lines() {
    let dir = tempfile::tempdir().unwrap();
    let first = FreshHost::new(dir.path().join("1"));
    let mut cluster = formed(&first);
    assert_eq!(FreshHost::mode(&first.config()), 0o600);
    assert_eq!(FreshHost::mode(&first.token()), 0o600);
    let written = fs::read_to_string(first.config()).unwrap();
    assert!(written.contains("# UDP address of the mesh"), "{written}");
    for number in 2..=3 {
        let host = FreshHost::new(dir.path().join(number.to_string()));
        let line = invited(&cluster, &host).await;
        let output = host.paste(&line, &host.with_answers());
        let joined = report(&output);
        assert_eq!(joined["node"]["id"], number, "{joined}");
        assert_eq!(joined["config"]["written"], true);
        let next = joined["next"].to_string();
        assert!(
            next.contains(&format!("cluster promote {number} --wait")),
            "{next}"
        );
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(
            !said.contains(&secret(&line)[5..]),
            "the secret is shown: {said}"
        );
        assert!(!host.dir.join("data/node.ticket").exists());
        // The same line again, as after a connection that broke: the host knows that it has joined.
        let again = report(&host.paste(&line, ""));
        assert_eq!(again["node"]["id"], number);
        assert!(
            again["done"].to_string().contains("has joined already"),
            "{again}"
        );
        let mut node = host.node();
        node.start();
        node.wait_said("ready ");
        cluster.nodes.push(node);
        cluster.promote(number).await;
    }
    let status = cluster.may_fail(2, 1).await;
    assert_eq!(status.nodes.len(), 3, "{status:?}");
    let id = cluster.write(2, "web").await.unwrap();
    for reader in 0..3 {
        cluster.reads(reader, &id).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_for_one_host_once_and_a_failed_join_is_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let first = FreshHost::new(dir.path().join("1"));
    let cluster = formed(&first);
    let host = FreshHost::new(dir.path().join("2"));
    let withdrawn = invited(&cluster, &host).await;
    cluster.remove(0, 2, false).await.unwrap();
    let error = failure(&host.paste(&withdrawn, &host.with_answers()));
    assert!(error.contains("was withdrawn"), "{error}");
    assert!(error.contains("metalmesh cluster invite"), "{error}");
    assert!(!host.dir.join("data/node.ticket").exists());
    // The configuration of the first attempt is there, and is used by the next one.
    let before = fs::read_to_string(host.config()).unwrap();
    let line = invited(&cluster, &host).await;
    let joined = report(&host.paste(&line, ""));
    assert_eq!(
        (&joined["node"]["id"], &joined["config"]),
        (&3.into(), &Value::Null)
    );
    assert_eq!(fs::read_to_string(host.config()).unwrap(), before);
    assert_eq!(cluster.node(0, 3).await.role(), NodeRole::Learner);

    // Somebody who saw the line.
    let thief = FreshHost::new(dir.path().join("thief"));
    let error = failure(&thief.paste(&line, &thief.with_answers()));
    assert!(error.contains("used it already"), "{error}");
    // Somebody who has the line before its host does, elsewhere.
    let mut elsewhere = FreshHost::new(dir.path().join("elsewhere"));
    elsewhere.peers = "192.0.2.7:4444".to_owned();
    let line = invited(&cluster, &elsewhere).await;
    let error = failure(&elsewhere.paste(&line, &elsewhere.with_answers()));
    assert!(error.contains("came from 127.0.0.1"), "{error}");
    let refused = cluster.status(0).await;
    let open = refused.nodes.iter().filter(|node| node.joined_at.is_none());
    assert!(
        open.count() > 0,
        "the line is still its host's: {refused:?}"
    );
    // A host that was invited by another address than its configuration has.
    let moved = FreshHost::new(dir.path().join("4"));
    let other = invited(&cluster, &thief).await;
    let config = fs::read_to_string(host.config()).unwrap();
    fs::write(moved.config(), config.replace("/2/data", "/4/data")).unwrap();
    let error = failure(&moved.paste(&other, ""));
    assert!(
        error.contains("peers.address") && error.contains(&thief.peers),
        "{error}"
    );
}

#[test]
fn nothing_is_written_before_the_checks_pass() {
    let dir = tempfile::tempdir().unwrap();
    let host = FreshHost::new(dir.path().join("1"));
    let tried = report(&host.init(&["--dry-run"]));
    assert_eq!(tried["config"]["written"], false);
    assert!(
        tried["config"]["content"]
            .as_str()
            .unwrap()
            .contains("data_dir")
    );
    assert!(!host.config().exists() && !host.dir.join("data").exists());

    let taken = std::net::TcpListener::bind(&host.api).unwrap();
    let output = host.init(&[]);
    let error = failure(&output);
    assert!(
        error.contains("api.listen") && error.contains("in use"),
        "{error}"
    );
    assert!(error.contains("--accept addresses"), "{error}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed = found["checks"].as_array().unwrap().iter();
    let failed: Vec<_> = failed.filter(|check| check["grade"] == "fail").collect();
    assert_eq!(failed.len(), 1, "{found}");
    assert_eq!(failed[0]["object"], "api.listen");
    assert!(!host.config().exists() && !host.token().exists());
    drop(taken);

    report(&host.init(&[]));
    let error = failure(&host.init(&[]));
    assert!(
        error.contains("exists already") && error.contains("--force"),
        "{error}"
    );
    fs::remove_file(host.token()).unwrap();
    let error = failure(&host.init(&["--force"]));
    assert!(error.contains("in use already"), "{error}");
}

#[test]
fn a_configuration_that_exists_is_used_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let host = FreshHost::new(dir.path().join("1"));
    let own = format!(
        "# mine\ndata_dir = {:?}\n[api]\nlisten = {:?}\n[mesh]\nlisten = {:?}\n",
        host.dir.join("data"),
        host.api,
        host.mesh
    );
    fs::write(host.config(), &own).unwrap();
    let init = || {
        let mut command = Command::new(program());
        command.args(["init", "--config"]).arg(host.config());
        command.arg("--token-file").arg(host.token());
        command.stdin(Stdio::null()).output().unwrap()
    };
    let made = init();
    assert!(made.status.success(), "{made:?}");
    let said = String::from_utf8(made.stdout).unwrap();
    for part in [
        "checks of this host:",
        "admin token: ",
        "next:",
        "node 1 of",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(fs::read_to_string(host.config()).unwrap(), own);
    let error = failure(&init());
    assert!(error.contains("name a new file"), "{error}");
}
