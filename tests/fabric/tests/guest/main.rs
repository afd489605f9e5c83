//! The guest itself: its kernel has what a fabric of switches is made of, and FRR starts.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test's output is its report"
)]

use std::process::Command;

fn run(line: &str) -> String {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_kernel_has_every_kind_of_device() {
    if !tests_fabric::is_guest() {
        println!("SKIPPED: runs in the guest of ./dev fabric");
        return;
    }
    for kind in [
        "vrf table 100",
        "bridge vlan_filtering 1",
        "vxlan id 100 dstport 4789 nolearning",
        "bond mode active-backup",
        "dummy",
        "veth peer name peer1",
    ] {
        run(&format!("ip link add test1 type {kind}"));
        println!("has {kind}");
        run("ip link del test1");
    }
    run("ip link add test1 type dummy");
    run("ip link add link test1 name test1.5 type vlan id 5");
    run("tc qdisc add dev test1 root netem delay 10ms loss 1%");
    run("ip link del test1");
    run("ping -c 1 -W 5 127.0.0.1");
}

#[test]
fn frr_and_tcpdump_are_there() {
    if !tests_fabric::is_guest() {
        println!("SKIPPED: runs in the guest of ./dev fabric");
        return;
    }
    for program in ["/usr/lib/frr/zebra", "/usr/lib/frr/bgpd"] {
        let version = run(&format!("{program} --version"));
        println!("{}", version.lines().next().unwrap());
    }
    run("tcpdump --version");
}
