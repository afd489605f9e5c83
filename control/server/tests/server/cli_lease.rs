//! The command line about owners, leases and node allocations.

use serde_json::Value;

use crate::cli::Cli;
use crate::published_agent::{Agent, MACHINE};

fn words(text: &str) -> Vec<&str> {
    let word = |word| if word == "MACHINE" { MACHINE } else { word };
    text.split(' ').map(word).collect()
}

fn ok(cli: &Cli, text: &str) -> String {
    cli.ok(&words(text))
}

fn json(cli: &Cli, text: &str) -> Value {
    let text = format!("{text} -o json");
    serde_json::from_str(&ok(cli, &text)).unwrap()
}

fn refused(cli: &Cli, text: &str, why: &str) {
    let error = cli.refused(&words(text));
    assert!(error.contains(why), "{text}: {error}");
}

/// An administrator gives the machine to project web, which leases it to project db.
fn grant(cli: &Cli) {
    refused(cli, "machine lease show MACHINE -p web", "MM-1001");
    ok(cli, "machine owner set MACHINE web");
    let capable = "machine capability MACHINE --resource-class gold --trait CUSTOM_FAST -p web";
    assert!(ok(cli, capable).contains("gold"));
    let terms = "machine lease grant MACHINE --to db --for 30d --comment audit -p web";
    let granted = ok(cli, terms);
    assert!(granted.contains("running"), "{granted}");
}

fn is_shown(cli: &Cli) {
    let shown = json(cli, "machine lease show MACHINE -p db");
    assert_eq!(shown["relation"], "lessee");
    assert_eq!(shown["lease"]["comment"], "audit");
    assert_eq!(shown["traits"][0], "CUSTOM_FAST");
    let machine = ok(cli, "machine show MACHINE");
    for line in ["owner:", "lessee:", "lease until:", "class:        gold"] {
        assert!(machine.contains(line), "{line}: {machine}");
    }
    let labels = &json(cli, "machine show MACHINE")["meta"]["labels"]["labels"];
    assert_eq!(
        labels["metalmesh.dev/lessee"], shown["lease"]["lessee"],
        "{labels}"
    );
    assert_eq!(labels["metalmesh.dev/traits"], "CUSTOM_FAST");
}

/// The lessee is told why it may not, and what the owner can do.
fn terms_change(cli: &Cli) {
    let longer = "machine lease extend MACHINE --for 60d";
    refused(cli, &format!("{longer} -p db"), "MM-1232");
    refused(
        cli,
        &format!("{longer} -p db"),
        "lease extend MACHINE --until",
    );
    let limit = "machine lease extend MACHINE --extendable-until 2999-01-01 -p web";
    refused(cli, limit, "within ten years");
    ok(cli, &format!("{longer} -p web"));
    refused(cli, "machine owner clear MACHINE", "MM-1230");
    ok(cli, "machine lease transfer MACHINE --to shop -p db");
    ok(cli, "machine lease consent MACHINE --to shop -p web");
    assert!(ok(cli, "machine lease ls -p shop").contains("lessee"));
    assert!(!ok(cli, "machine lease ls -p db").contains(MACHINE));
    assert!(ok(cli, "get leases -A").contains(MACHINE));
}

/// The machine's hammer does not wait yet: none is free, and the reason says how many there are.
fn nothing_is_free(cli: &Cli) {
    let held = json(
        cli,
        "node-allocation create --name n1 --resource-class gold -p shop",
    );
    assert_eq!(held["state"], "error");
    let reason = held["lastError"].as_str().unwrap();
    assert!(
        reason.contains("1 machines of class CUSTOM_GOLD"),
        "{reason}"
    );
    assert!(ok(cli, "node-allocation show n1 -p shop").contains("error"));
    let id = held["id"].as_str().unwrap();
    ok(cli, &format!("node-allocation rm {id} -p shop"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_owned_leased_and_handed_back() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.create_acme();
    for project in ["db", "shop"] {
        cli.ok(&["project", "create", project, "--tenant", "acme"]);
    }
    cli.ok(&["partition", "create", "lab"]);
    let agent = Agent::of(&cli, &daemon.api, dir.path());
    for switch in ["leaf1", "leaf2"] {
        agent.switch(switch, switch).await;
    }
    agent.machine(["leaf1", "leaf2"]).await;
    grant(&cli);
    is_shown(&cli);
    terms_change(&cli);
    nothing_is_free(&cli);
    ok(&cli, "machine lease hand-back MACHINE -p shop");
    ok(&cli, "machine owner transfer MACHINE --to db -p web");
    assert!(ok(&cli, "machine lease ls -A").contains(MACHINE));
    ok(&cli, "machine owner clear MACHINE");
    let shown = json(&cli, "machine lease show MACHINE -A");
    assert_eq!(shown["owner"], "");
}
