//! A rollout by the command line, which a duty of the leader carries out.

use std::path::Path;

use crate::cli::Cli;

/// Signs a program as a release of an agent. Returns its file and the public key.
fn sign(cli: &Cli, dir: &Path, name: &str, version: &str) -> (String, String) {
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (key, program, release) = (path("key"), path("program"), path(version));
    std::fs::write(&program, "program").unwrap();
    let public = cli.ok(&["release", "keygen", &key]);
    let public = public.trim().to_owned();
    cli.ok(&[
        "release",
        "sign",
        &program,
        version,
        "--key",
        &key,
        "--out",
        &release,
        "--architecture",
        "x86_64",
        "--name",
        name,
    ]);
    (release, public)
}

#[test]
fn a_rollout_that_has_reached_all_sets_the_sites_release() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    let none = cli.refused(&["firewall", "rollout", "status"]);
    assert!(none.contains("there is no rollout"), "{none}");
    let (release, key) = sign(&cli, dir.path(), "metalmesh-firewall", "1.3.0");
    let start = [
        "firewall",
        "rollout",
        "start",
        &release,
        "--url",
        "https://releases.example.com/metalmesh-firewall-1.3.0.release",
        "--key",
        &key,
        "--waves",
        "1,50%",
    ];
    let started = cli.ok(&start);
    assert!(started.contains("running"), "{started}");
    // Without a firewall there is nobody to wait for.
    let status = cli.ok(&[
        "firewall",
        "rollout",
        "status",
        "--wait",
        "--timeout",
        "60s",
    ]);
    assert!(status.contains("done"), "{status}");
    let site = cli.ok(&["firewall", "release", "show"]);
    assert!(site.contains("1.3.0"), "{site}");
    let refused = cli.refused(&["firewall", "rollout", "abort"]);
    assert!(refused.contains("MM-1806"), "{refused}");
    assert!(refused.contains("is complete"), "{refused}");
}

#[test]
fn the_agents_of_switches_have_a_rollout_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    let none = cli.refused(&["rollout", "core", "show"]);
    assert!(none.contains("metalmesh rollout core set"), "{none}");
    let (release, key) = sign(&cli, dir.path(), "metalmesh-core", "1.3.0");
    let url = "https://releases.example.com/metalmesh-core-1.3.0.release";
    let set = |kind| {
        [
            "rollout", kind, "set", &release, "--url", url, "--key", &key,
        ]
    };
    // A release names its program.
    let other = cli.refused(&set("bmc"));
    assert!(other.contains("is a release of metalmesh-core"), "{other}");
    let started = cli.ok(&set("core"));
    assert!(started.contains("running"), "{started}");
    // No agent has reported its program: there is nobody to wait for.
    let status = cli.ok(&["rollout", "core", "show", "--wait", "--timeout", "60s"]);
    assert!(status.contains("done"), "{status}");
    let refused = cli.refused(&["rollout", "core", "pause"]);
    assert!(refused.contains("is complete"), "{refused}");
    let cleared = cli.ok(&["rollout", "core", "clear"]);
    assert!(cleared.contains("1.3.0"), "{cleared}");
    let again = cli.ok(&["rollout", "core", "clear"]);
    assert!(!again.contains("1.3.0"), "{again}");
    let others = cli.refused(&["rollout", "pixie", "abort"]);
    assert!(others.contains("not found"), "{others}");
}
