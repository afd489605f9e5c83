//! Site policies through the command line: set, told before, refused when broken, kept over a
//! restart and in backups.

use crate::cli::Cli;
use crate::daemon::{Daemon, program};

const LIST: &str = "metalstack.api.v2.MachineService/List";

fn policy(rule: &str) -> String {
    format!(
        "package site\nimport rego.v1\nmethods := {{\"{LIST}\"}}\n\
         deny contains \"{rule}\" if input.caller.platform\n"
    )
}

#[test]
fn policies_are_set_told_refused_kept_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| {
        std::fs::write(path(name), text).unwrap();
        path(name)
    };
    cli.create_acme();
    let list = ["machine", "ls", "-p", "web"];
    cli.ok(&list);
    assert!(cli.ok(&["policy", "ls", "-o", "json"]).starts_with("[]"));

    let night = write("night.rego", &policy("closed"));
    let told = cli.ok(&["policy", "set", &night, "--dry-run"]);
    assert!(
        told.contains("admin-editor") && told.contains("no by night/closed"),
        "{told}"
    );
    cli.ok(&list);
    let set = cli.ok(&["policy", "set", &night]);
    assert!(set.contains("night"), "{set}");
    let refused = cli.refused(&list);
    assert!(
        refused.contains("MM-1105") && refused.contains("night/closed"),
        "{refused}"
    );
    assert!(refused.contains("metalmesh policy explain"), "{refused}");
    let explained = cli.ok(&["policy", "explain", LIST, "--as", "admin-editor"]);
    assert!(explained.contains("no by night/closed"), "{explained}");

    // A broken one is refused here and there, and the good one stays, over a restart too.
    let broken = write(
        "night.rego",
        &policy("closed").replace("if input", "if { input"),
    );
    let said = cli.refused(&["policy", "set", &broken]);
    assert!(said.contains("night.rego:"), "{said}");
    daemon.kill();
    let daemon = Daemon::start(dir.path());
    assert!(cli.refused(&list).contains("night/closed"));
    assert_eq!(cli.ok(&["policy", "show", "night"]), policy("closed"));
    let listed = cli.ok(&["get", "policy", "-o", "jsonpath={.name} {.generation}"]);
    assert_eq!(listed, "night 1\n");

    // Back in another cluster, out of a backup.
    let file = path("backup");
    cli.ok(&["cluster", "backup", &file]);
    cli.ok(&["policy", "rm", "night"]);
    cli.ok(&list);
    assert!(cli.refused(&["policy", "rm", "night"]).contains("night"));
    assert!(daemon.terminate().success());
    let restored = std::process::Command::new(program())
        .args(["restore", &file, "--data-dir", &path("new")])
        .output()
        .unwrap();
    assert!(restored.status.success(), "{restored:?}");
    std::fs::rename(path("data"), path("old")).unwrap();
    std::fs::rename(path("new"), path("data")).unwrap();
    let _daemon = Daemon::start(dir.path());
    assert!(cli.refused(&list).contains("night/closed"));
}
