//! The command line against a real node.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::daemon::{Daemon, program};

/// The command line, built beside the daemon when the whole workspace is.
pub(crate) fn metalmesh() -> Option<PathBuf> {
    let path = Path::new(program()).with_file_name("metalmesh");
    if !path.exists() {
        println!(
            "SKIPPED: {} is not built; cargo build -p control-ctl",
            path.display()
        );
        return None;
    }
    Some(path)
}

pub(crate) struct Cli {
    pub(crate) program: PathBuf,
    pub(crate) config: PathBuf,
}

impl Cli {
    /// The command line of a fresh node in `dir`; none where it is not built.
    pub(crate) fn fresh(dir: &Path) -> Option<(Self, Daemon)> {
        let program = metalmesh()?;
        let daemon = Daemon::start(dir);
        let config = daemon.config().to_owned();
        Some((Self { program, config }, daemon))
    }

    /// A tenant, and its project `web`.
    pub(crate) fn create_acme(&self) {
        self.ok(&["tenant", "create", "acme"]);
        self.ok(&["project", "create", "web", "--tenant", "acme"]);
    }

    /// The program with arguments, not yet running.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("METALMESH_CONFIG", &self.config)
            .env_remove("METALMESH_API_URL")
            .env_remove("METAL_APIV2_URL");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?} should fail");
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn what_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    for command in [
        &["switch", "migrate", "leaf1", "leaf2"][..],
        &["switch", "replace", "leaf1"],
        &["switch", "replace", "leaf1", "--cancel"],
        &["switch", "rm", "leaf1"],
        &["switch", "drain", "leaf1"],
        &["switch", "machines", "leaf1"],
        &["switch", "ls", "--partition", "leaf1"],
        &["switch", "diff", "--partition", "leaf1"],
    ] {
        let error = cli.refused(command);
        assert!(error.contains("leaf1"), "{command:?}: {error}");
    }
    let task = "00000000-0000-4000-8000-000000000001";
    assert!(cli.refused(&["task", "rm", task]).contains(task));
    assert!(cli.ok(&["task", "ls"]).starts_with("ID"));
    let error = cli.refused(&["vpn", "ls"]);
    assert!(error.contains("[vpn]"), "{error}");
}

#[test]
fn an_admin_and_a_tenant() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.create_acme();
    cli.ok(&["tenant", "create", "rival"]);
    cli.ok(&["partition", "create", "lab", "--dns", "10.0.0.53"]);
    cli.ok(&[
        "size",
        "create",
        "small",
        "--constraint",
        "cores=1-4",
        "--constraint",
        "memory=1Gi-4Gi",
    ]);
    let digest = format!("sha256:{}", "ab".repeat(32));
    let image = [
        "image",
        "create",
        "debian-12.0.1",
        "--url",
        "http://x.example/i",
        "--digest",
    ];
    cli.ok(&[&image[..], &[&digest]].concat());
    cli.ok(&[
        "network",
        "create",
        "--type",
        "super",
        "--id",
        "super",
        "--partition",
        "lab",
        "--prefix",
        "10.0.0.0/16",
        "--child-length-v4",
        "24",
    ]);
    cli.ok(&[
        "token",
        "create",
        "--user",
        "acme",
        "--project-role",
        "web=owner",
        "--add-context",
        "acme",
    ]);
    cli.ok(&[
        "token",
        "create",
        "--user",
        "rival",
        "--project-role",
        "*=owner",
        "--add-context",
        "rival",
    ]);
    let acme = ["--context", "acme"];
    let as_acme = |more: &[&str]| cli.ok(&[&acme[..], more].concat());
    as_acme(&["network", "create", "--name", "net", "--partition", "lab"]);
    let tree = as_acme(&["network", "ls", "--base"]);
    assert!(
        tree.contains("super") && tree.contains("10.0.0.0/16"),
        "{tree}"
    );
    assert!(as_acme(&["image", "ls"]).contains("debian-12.0.1"));
    assert!(as_acme(&["machine", "ls"]).starts_with("ID"));
    assert!(as_acme(&["whoami"]).contains("acme"));
    let json: serde_json::Value =
        serde_json::from_str(&as_acme(&["network", "ls", "-o", "json"])).unwrap();
    assert_eq!(json[0]["name"], "net");
    assert!(as_acme(&["network", "ls", "-o", "yaml"]).contains("name: net"));
    let refused = cli.refused(&["--context", "acme", "partition", "create", "mine"]);
    assert!(
        refused.contains("MM-1102") && refused.contains("hint:"),
        "{refused}"
    );
    let refused = cli.refused(&["--context", "rival", "machine", "ls", "-p", "web"]);
    assert!(!refused.contains("10.0.0"), "{refused}");
    let shown = cli.ok(&["context", "ls", "-o", "json"]);
    assert!(!shown.contains("eyJ"), "no token may show up: {shown}");
}

#[test]
fn tickets_and_tokens_go_into_private_files() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.ok(&["partition", "create", "lab"]);
    let key = "cd".repeat(32);
    let path = dir.path().join("ticket");
    let out = path.to_str().unwrap();
    let create = [
        "join",
        "create",
        "core",
        "--partition",
        "lab",
        "--id",
        "leaf1",
        "--key-sha256",
    ];
    let create = [&create[..], &[&key, "--out", out]].concat();
    let shown = cli.ok(&create);
    assert!(!shown.contains("mmt1."));
    let ticket = std::fs::read_to_string(&path).unwrap();
    assert!(ticket.starts_with("mmt1."));
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // A file that is there is not overwritten.
    assert!(cli.refused(&create).contains("cannot create"));
    assert!(cli.ok(&["join", "ls"]).contains("open"));
    assert!(cli.ok(&["completion", "bash"]).contains("metalmesh"));
    assert!(cli.ok(&["health"]).contains("healthy"));
    drop(daemon);
    let refused = cli.refused(&["tenant", "ls"]);
    assert!(refused.contains("cannot be reached"), "{refused}");
}

#[test]
fn a_component_belongs_to_a_project_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.create_acme();
    let of_web = ["--project", "web"];
    let create = ["component", "create", "shoot-1", "--kind", "gardener"];
    let secret = cli.ok(&[&create[..], &of_web].concat());
    assert!(secret.contains("eyJ"));
    let listed = cli.ok(&[&["component", "ls"][..], &of_web].concat());
    assert!(listed.contains("shoot-1"), "{listed}");
    cli.ok(&[&["identity", "ls"][..], &of_web].concat());
    let id = ["component", "ls", "-o", "jsonpath={.id}"];
    let id = cli.ok(&[&id[..], &of_web].concat());
    cli.ok(&[&["component", "revoke", id.trim()][..], &of_web].concat());
    let refused = cli.refused(&["component", "ls", "--project", "wob"]);
    assert!(refused.contains("no project \"wob\""), "{refused}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    assert!(
        cli.ok(&["--dry-run", "tenant", "create", "acme"])
            .contains("acme")
    );
    assert!(!cli.ok(&["tenant", "ls"]).contains("acme"));
    cli.ok(&["tenant", "create", "acme"]);
    let refused = cli.refused(&["tenant", "create", "acme", "--dry-run"]);
    assert!(refused.contains("MM-1002"), "{refused}");
    cli.ok(&["tenant", "rm", "acme", "--dry-run"]);
    assert!(cli.ok(&["tenant", "ls"]).contains("acme"));
    let out = dir.path().join("token");
    let token = [
        "token",
        "create",
        "--dry-run",
        "--out",
        out.to_str().unwrap(),
    ];
    let said = cli.ok(&token);
    assert!(!out.exists() && !said.contains("eyJ"), "{said}");
    let refused = cli.refused(&["context", "set-project", "web", "--dry-run"]);
    assert!(refused.contains("--dry-run"), "{refused}");
}

#[test]
fn members_of_tenants_and_what_is_used_where() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.ok(&["tenant", "create", "acme"]);
    cli.ok(&["tenant", "create", "ann"]);
    cli.ok(&["tenant", "set-member", "acme", "ann"]);
    let shown = cli.ok(&["tenant", "show", "acme"]);
    assert!(shown.contains("ann") && shown.contains("viewer"), "{shown}");
    cli.ok(&["tenant", "set-member", "acme", "ann", "--role", "owner"]);
    let shown = cli.ok(&["tenant", "show", "acme"]);
    let ann = shown.lines().find(|line| line.starts_with("ann")).unwrap();
    assert!(ann.contains("owner"), "{shown}");
    let ann = [
        "token",
        "create",
        "--user",
        "ann",
        "--tenant-role",
        "acme=viewer",
    ];
    cli.ok(&[&ann[..], &["--add-context", "ann"]].concat());
    cli.ok(&["--context", "ann", "tenant", "leave", "acme"]);
    assert!(!cli.ok(&["tenant", "show", "acme"]).contains("ann"));
    cli.ok(&["tenant", "rm", "acme"]);
    assert!(!cli.ok(&["tenant", "ls"]).contains("acme"));

    let digest = format!("sha256:{}", "ab".repeat(32));
    let image = [
        "image",
        "create",
        "debian-12.0.1",
        "--url",
        "http://x.example/i",
    ];
    cli.ok(&[&image[..], &["--digest", &digest]].concat());
    assert!(cli.ok(&["image", "usage"]).contains("debian-12.0.1"));
    assert!(
        cli.ok(&["image", "usage", "debian-12.0.1", "-o", "json"])
            .contains("debian-12.0.1")
    );
    cli.ok(&["switch", "machines"]);
    assert!(cli.ok(&["task", "queues", "-o", "json"]).starts_with('['));
    assert_eq!(cli.ok(&["machine", "bmc", "-o", "json"]).trim(), "[]");
    let id = "00000000-0000-4000-8000-000000000001";
    let password = [
        "machine",
        "console-password",
        id,
        "--reason",
        "a broken boot",
    ];
    let refused = cli.refused(&password);
    assert!(refused.contains("MM-1001"), "{refused}");
}
