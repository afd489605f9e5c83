//! The operator's view: differences on a leaf that somebody edited, and the hop where a packet stops.

use std::process::Command;

use super::control::ADDRESS;
use super::daemons::ip;
use super::machine::Networking;
use super::site::Site;
use super::wait::found;

/// Runs the operator's program against the site's control. What it prints.
fn metalmesh(site: &Site, arguments: &[&str]) -> String {
    let mut program = Command::new("/usr/bin/metalmesh");
    let program = program
        .args(arguments)
        .args(["--api-url", &format!("http://{ADDRESS}")])
        .env("METALMESH_TOKEN_FILE", site.control.place("admin-token"))
        .env("METALMESH_CONFIG", "/dev/null");
    let output = program.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs the program until it prints every one of `parts`, and prints what it printed.
async fn shows(site: &Site, arguments: &[&str], parts: &[&str]) {
    let mut last = String::new();
    let shown = found(async || {
        last = metalmesh(site, arguments);
        let is_there = parts.iter().all(|part| last.contains(part));
        is_there.then_some(())
    });
    let shown = shown.await;
    println!("$ metalmesh {}\n{last}", arguments.join(" "));
    if shown.is_none() {
        site.show().await;
        panic!("does not show {parts:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_an_edit_and_where_a_packet_stops() {
    if !super::is_guest() {
        return;
    }
    let site = Site::start().await;
    let mut rented = Vec::new();
    for number in [1, 3] {
        let offered = site.deliver(number, Networking::Routed).await;
        rented.push(site.rent(offered, 0).await);
    }
    let [from, to] = rented.as_slice() else {
        panic!("two machines");
    };
    // Each on one leaf alone, so that the packet crosses the fabric.
    for (machine, cable) in [(from, "eth1"), (to, "eth0")] {
        ip(&format!(
            "-n {} link set {cable} down",
            machine.machine.namespace()
        ));
    }
    let uuid = &from.machine.hardware.uuid;
    let trace = [
        "network",
        "trace",
        "--from",
        uuid,
        "--to",
        &to.system.address,
    ];
    let whole = [
        "leaf11/swp1",
        "leaf11 (10.0.0.11) to leaf12 (10.0.0.12)",
        "leaf12/swp3",
    ];
    shows(&site, &trace, &whole).await;

    site.leaves[1].switch.ip("link set swp3 down");
    let edited = ["leaf12", "in VRF Vrf1, down", "healed"];
    shows(&site, &["switch", "diff"], &edited).await;

    ip(&format!("-n {} link set eth1 down", to.machine.namespace()));
    let stops = ["leaf12/swp3", "no carrier", "stops at"];
    shows(&site, &trace, &stops).await;
}
