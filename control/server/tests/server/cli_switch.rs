//! The command line moves a rack's cables to another switch, and a broken switch's to its heir.

use serde_json::Value;

use crate::cli::Cli;
use crate::published_agent::{Agent, MACHINE};

/// Whether the machine hangs at a switch, and how the switch stands to being replaced.
fn shown(cli: &Cli, switch: &str) -> (bool, String) {
    let text = cli.ok(&["switch", "show", switch, "-o", "json"]);
    let switch: Value = serde_json::from_str(&text).unwrap();
    let mode = switch["replaceMode"].as_str().unwrap_or_default();
    let has = switch["machineConnections"].to_string().contains(MACHINE);
    (has, mode.to_owned())
}

#[tokio::test]
async fn cables_move_and_a_broken_switch_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.ok(&["partition", "create", "lab"]);
    let agent = Agent::of(&cli, &daemon.api, dir.path());
    for switch in ["leaf1", "leaf2", "leaf3"] {
        agent.switch(switch, switch).await;
    }
    agent.machine(["leaf1", "leaf2"]).await;
    assert!(shown(&cli, "leaf1").0 && shown(&cli, "leaf2").0);

    let refused = cli.refused(&["switch", "rm", "leaf1"]);
    assert!(refused.contains("leaf1"), "{refused}");
    let moved = cli.ok(&["switch", "migrate", "leaf1", "leaf3"]);
    assert!(moved.contains("leaf3"), "{moved}");
    assert!(!shown(&cli, "leaf1").0 && shown(&cli, "leaf3").0);
    let again = cli.refused(&["switch", "migrate", "leaf2", "leaf3"]);
    assert!(
        again.contains(MACHINE) && again.contains("cables go to"),
        "{again}"
    );
    cli.ok(&["switch", "rm", "leaf1"]);

    const REPLACE: &str = "SWITCH_REPLACE_MODE_REPLACE";
    cli.ok(&["switch", "replace", "leaf2"]);
    assert_eq!(shown(&cli, "leaf2").1, REPLACE);
    for command in [&["switch", "ls"][..], &["switch", "show", "leaf2"]] {
        let text = cli.ok(command);
        assert!(text.contains("to be replaced"), "{text}");
    }
    cli.ok(&["switch", "replace", "leaf2", "--cancel"]);
    assert_ne!(shown(&cli, "leaf2").1, REPLACE);
    let replaced = cli.ok(&["switch", "replace", "leaf2"]);
    assert!(replaced.contains("leaf2"), "{replaced}");
    cli.ok(&["switch", "port", "leaf3", "Ethernet0", "down"]);
    let refused = cli.refused(&["switch", "port", "leaf3", "Ethernet9", "down"]);
    assert!(refused.contains("leaf3/Ethernet9"), "{refused}");
    agent.switch("leaf2", "its-heir").await;
    let (has, mode) = shown(&cli, "leaf2");
    assert!(has && mode != REPLACE, "{mode}");
}
