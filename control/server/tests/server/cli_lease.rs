//! The command line about owners, leases and node allocations.

use serde_json::Value;

use crate::cli::Cli;
use crate::published_agent::{Agent, MACHINE};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The arguments as a project's.
fn of<'a>(project: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["-p", project]].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_owned_leased_and_handed_back() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.create_acme();
    cli.ok(&["project", "create", "db", "--tenant", "acme"]);
    cli.ok(&["project", "create", "shop", "--tenant", "acme"]);
    cli.ok(&["partition", "create", "lab"]);
    let agent = Agent::of(&cli, &daemon.api, dir.path());
    for switch in ["leaf1", "leaf2"] {
        agent.switch(switch, switch).await;
    }
    agent.machine(["leaf1", "leaf2"]).await;
    let lease = ["machine", "lease"];

    let unseen = cli.refused(&of("web", &["machine", "lease", "show", MACHINE]));
    assert!(unseen.contains("MM-1001"), "{unseen}");
    cli.ok(&["machine", "owner", "set", MACHINE, "web"]);
    let capable = ["machine", "capability", MACHINE, "--resource-class", "gold"];
    let capable = of("web", &[&capable[..], &["--trait", "CUSTOM_FAST"]].concat());
    assert!(cli.ok(&capable).contains("gold"));

    let terms = ["--to", "db", "--for", "30d", "--comment", "for the audit"];
    let granted = cli.ok(&of(
        "web",
        &[&lease[..], &["grant", MACHINE], &terms].concat(),
    ));
    assert!(granted.contains("running"), "{granted}");
    let shown = json(&cli.ok(&of(
        "db",
        &["machine", "lease", "show", MACHINE, "-o", "json"],
    )));
    assert_eq!(shown["relation"], "lessee");
    assert_eq!(shown["lease"]["comment"], "for the audit");
    assert_eq!(shown["traits"][0], "CUSTOM_FAST");
    let machine = cli.ok(&["machine", "show", MACHINE]);
    for line in [
        "owner:",
        "lessee:",
        "lease until:",
        "class:        gold",
        "traits:       CUSTOM_FAST",
    ] {
        assert!(machine.contains(line), "{line}: {machine}");
    }
    let labels = json(&cli.ok(&["machine", "show", MACHINE, "-o", "json"]));
    let labels = &labels["meta"]["labels"]["labels"];
    assert_eq!(labels["metalmesh.dev/lessee"], shown["lease"]["lessee"]);

    // The lessee is told why it may not, and what the owner can do.
    let refused = cli.refused(&of(
        "db",
        &["machine", "lease", "extend", MACHINE, "--for", "60d"],
    ));
    assert!(
        refused.contains("MM-1232") && refused.contains("lease extend"),
        "{refused}"
    );
    let limit = [
        "machine",
        "lease",
        "extend",
        MACHINE,
        "--extendable-until",
        "2999-01-01",
    ];
    let refused = cli.refused(&of("web", &limit));
    assert!(refused.contains("within ten years"), "{refused}");
    cli.ok(&of(
        "web",
        &["machine", "lease", "extend", MACHINE, "--for", "60d"],
    ));
    let refused = cli.refused(&["machine", "owner", "clear", MACHINE]);
    assert!(refused.contains("MM-1230"), "{refused}");

    cli.ok(&of(
        "db",
        &["machine", "lease", "transfer", MACHINE, "--to", "shop"],
    ));
    cli.ok(&of(
        "web",
        &["machine", "lease", "consent", MACHINE, "--to", "shop"],
    ));
    assert!(
        cli.ok(&of("shop", &["machine", "lease", "ls"]))
            .contains("lessee")
    );
    assert!(
        !cli.ok(&of("db", &["machine", "lease", "ls"]))
            .contains(MACHINE)
    );
    assert!(cli.ok(&["get", "leases", "-A"]).contains(MACHINE));

    // The machine's hammer does not wait yet: none is free, and the reason says how many there are.
    let hold = [
        "node-allocation",
        "create",
        "--name",
        "n1",
        "--resource-class",
        "gold",
    ];
    let held = json(&cli.ok(&of("shop", &[&hold[..], &["-o", "json"]].concat())));
    assert_eq!(held["state"], "error");
    let reason = held["lastError"].as_str().unwrap();
    assert!(
        reason.contains("1 machines of class CUSTOM_GOLD"),
        "{reason}"
    );
    assert!(
        cli.ok(&of("shop", &["node-allocation", "show", "n1"]))
            .contains("error")
    );
    cli.ok(&of(
        "shop",
        &["node-allocation", "rm", held["id"].as_str().unwrap()],
    ));

    cli.ok(&of("shop", &["machine", "lease", "hand-back", MACHINE]));
    cli.ok(&of(
        "web",
        &["machine", "owner", "transfer", MACHINE, "--to", "db"],
    ));
    let all = cli.ok(&["machine", "lease", "ls", "-A"]);
    assert!(all.contains(MACHINE), "{all}");
    cli.ok(&["machine", "owner", "clear", MACHINE]);
    let shown = json(&cli.ok(&["machine", "lease", "show", MACHINE, "-A", "-o", "json"]));
    assert_eq!(shown["owner"], Value::Null);
}
