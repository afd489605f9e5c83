//! Two firewalls of a tenant: its traffic leaves through the active one, goes on through the standby
//! when that loses its power or cannot apply its rules, and comes back. And one that replaces another.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use proto_public::metalmesh::admin::v1 as mesh;

use super::catalogue::add_firewall_networks;
use super::control::ADDRESS;
use super::firewall::{SERVER, exit};
use super::hosts::{answer, inside};
use super::machine::{Networking, PROBE};
use super::site::Site;
use super::stages::Rented;
use super::wait::found;

/// Port of the server outside that tells a caller's address.
const PORT: u16 = 9;
/// AS numbers in front of the paths of a standby.
const PREPENDED: usize = 6;

/// Role, place and observed place of each firewall, in the order of their machines.
type Standings<'a> = &'a [(&'a str, u32, Option<u32>)];

/// Listens outside, and tells everybody the address that it has there: that of its firewall.
fn tell_callers(namespace: &str) {
    let listener = inside(namespace, async || TcpListener::bind(("::", PORT)).unwrap());
    std::thread::spawn(move || {
        while let Ok((mut stream, caller)) = listener.accept() {
            let address = caller.ip().to_canonical().to_string();
            stream.write_all(address.as_bytes()).ok();
        }
    });
}

/// Writes the rules of the tenant's network: TCP to these ports.
async fn write_rules(site: &Site, ports: &[u16]) {
    let ports = ports.iter().map(|port| mesh::FirewallPorts {
        port: Some((*port).into()),
        ..Default::default()
    });
    let rule = mesh::FirewallRule {
        name: "outside".into(),
        ports: ports.collect(),
        ..Default::default()
    };
    let policies = mesh::FirewallPolicyPart {
        egress: vec![rule],
        ingress: Vec::new(),
    };
    let tenant = &site.tenants[0];
    let request = mesh::FirewallRulesServiceSetRequest {
        project: tenant.project.clone(),
        network: tenant.network.clone(),
        content: Some(mesh::FirewallRuleContent {
            cwnp: Some(policies),
            ..Default::default()
        }),
        ..Default::default()
    };
    let made = site.client().firewall_rules().set(request).await.unwrap();
    let revision = made.into_inner().rules.unwrap().revision;
    println!("revision {revision} of the rules");
}

/// The address outside of a firewall.
fn outside_address(firewall: &Rented) -> String {
    let mut networks = firewall.system.order.networks.iter();
    let external = networks.find(|network| network.r#type == "external");
    external.unwrap().ips[0].clone()
}

/// Waits until the traffic of a machine leaves through a firewall.
async fn leaves_through(site: &Site, from: &Rented, firewall: &Rented) {
    let (began, wanted) = (Instant::now(), outside_address(firewall));
    let mut last = None;
    let arrived = found(async || {
        last = answer(from.machine.namespace(), SERVER, PORT);
        (last.as_ref() == Some(&wanted)).then_some(())
    });
    let is_there = arrived.await.is_some();
    let number = firewall.machine.number;
    println!(
        "through m{number} ({wanted}) after {:?}: {last:?}",
        began.elapsed()
    );
    if !is_there {
        site.show().await;
        firewall.machine.show();
        println!("{}", firewall.machine.vtysh("show bgp l2vpn evpn"));
        println!("{:#?}", firewalls(site).await);
        panic!("nothing leaves through m{number}");
    }
}

async fn firewalls(site: &Site) -> Vec<mesh::FirewallStatus> {
    let request = mesh::FirewallRulesServiceListFirewallsRequest {
        project: site.tenants[0].project.clone(),
    };
    let listed = site.client().firewall_rules().list_firewalls(request).await;
    listed.unwrap().into_inner().firewalls
}

/// Waits until control shows the firewalls so, and returns them.
async fn stand(site: &Site, wanted: Standings<'_>) -> Vec<mesh::FirewallStatus> {
    let mut last = Vec::new();
    let shown = found(async || {
        last = firewalls(site).await;
        let seen = last.iter().map(|shown| {
            let observed = shown.routes.as_ref().and_then(|routes| routes.observed);
            (shown.role.as_str(), shown.place, observed)
        });
        seen.eq(wanted.iter().copied()).then_some(())
    });
    if shown.await.is_none() {
        site.show().await;
        panic!("{last:#?} instead of {wanted:?}");
    }
    println!("as {wanted:?}");
    last
}

/// Number of AS numbers that a firewall's FRR puts in front of its paths.
fn prepended(firewall: &Rented) -> usize {
    let running = firewall.machine.vtysh("show running-config bgpd");
    let set = running.split_once(" set as-path prepend ");
    let numbers = set.and_then(|(_, rest)| rest.lines().next());
    numbers.map_or(0, |numbers| numbers.split_whitespace().count())
}

async fn rent(site: &Site, number: u8, networking: Networking) -> Rented {
    let offered = site.deliver(number, networking).await;
    site.rent(offered, 0).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_firewalls_of_a_tenant() {
    if !super::is_guest() {
        return;
    }
    let site = Site::start().await;
    add_firewall_networks(site.client()).await;
    let server = rent(&site, 1, Networking::Routed).await;
    let outside = exit(&site);
    tell_callers(&outside.name);
    write_rules(&site, &[PORT]).await;
    let probed = TcpListener::bind(PROBE).unwrap();
    let mut first = rent(&site, 5, Networking::ProbingFirewall).await;
    let second = rent(&site, 6, Networking::ControlledFirewall).await;
    let first_is_active: Standings<'_> = &[("active", 0, Some(0)), ("standby", 1, Some(1))];
    for shown in stand(&site, first_is_active).await {
        assert!(shown.healthy, "{shown:#?}");
        assert!(!shown.agent_version.is_empty() && shown.heard_at.is_some());
        assert_eq!(shown.sets.len(), 1);
        assert_eq!(shown.sets[0].applied_revision, shown.sets[0].revision);
    }
    assert_eq!([&first, &second].map(prepended), [0, PREPENDED]);
    leaves_through(&site, &server, &first).await;

    println!("m5 loses its power");
    first.machine.lose_power();
    leaves_through(&site, &server, &second).await;
    println!("m5 boots");
    first.machine.power_on().await;
    leaves_through(&site, &server, &first).await;
    stand(&site, first_is_active).await;

    println!("m5 cannot keep new rules");
    drop(probed);
    write_rules(&site, &[PORT, PORT + 1]).await;
    leaves_through(&site, &server, &second).await;
    let second_is_active: Standings<'_> = &[("standby", 1, Some(1)), ("active", 0, Some(0))];
    let shown = stand(&site, second_is_active).await;
    assert!(!shown[0].healthy && shown[1].healthy);
    assert!(shown[0].reason.contains("probe"), "{}", shown[0].reason);
    let applied = shown.iter().map(|shown| shown.sets[0].applied_revision);
    assert_eq!(applied.collect::<Vec<_>>(), [1, 2]);

    println!("m5 takes the next ones");
    let _probed = TcpListener::bind(PROBE).unwrap();
    write_rules(&site, &[PORT, PORT + 2]).await;
    leaves_through(&site, &server, &first).await;
    stand(&site, first_is_active).await;
}

/// Runs the operator's program against the site's control, on a thread of its own.
fn metalmesh(site: &Site, arguments: &[&str]) -> std::thread::JoinHandle<Output> {
    let mut program = Command::new("/usr/bin/metalmesh");
    program
        .args(arguments)
        .args(["--api-url", &format!("http://{ADDRESS}")])
        .args(["--project", &site.tenants[0].project])
        .env("METALMESH_TOKEN_FILE", site.control.place("admin-token"))
        .env("METALMESH_CONFIG", "/dev/null")
        .stdin(Stdio::null());
    std::thread::spawn(move || program.output().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_firewall_of_a_tenant_is_rolled() {
    if !super::is_guest() {
        return;
    }
    let site = Site::start().await;
    add_firewall_networks(site.client()).await;
    let server = rent(&site, 1, Networking::Routed).await;
    let outside = exit(&site);
    tell_callers(&outside.name);
    write_rules(&site, &[PORT]).await;
    let old = rent(&site, 5, Networking::ControlledFirewall).await;
    stand(&site, &[("active", 0, Some(0))]).await;
    leaves_through(&site, &server, &old).await;

    // The only machine on offer.
    let offered = site.deliver(6, Networking::ControlledFirewall).await;
    let rolling = metalmesh(&site, &["firewall", "roll", "m5"]);
    let new = site.install(offered, 0).await;
    leaves_through(&site, &server, &new).await;
    let ended = found(async || rolling.is_finished().then_some(()));
    let is_ended = ended.await.is_some();
    if !is_ended {
        site.show().await;
        panic!("the roll does not end: {:#?}", firewalls(&site).await);
    }
    let output = rolling.join().unwrap();
    let said = [output.stderr, output.stdout].concat();
    println!(
        "$ metalmesh firewall roll m5\n{}",
        String::from_utf8_lossy(&said)
    );
    assert!(output.status.success());
    leaves_through(&site, &server, &new).await;
    let shown = firewalls(&site).await;
    let uuid = &new.machine.hardware.uuid;
    let shown = shown.iter().find(|shown| shown.firewall == *uuid).unwrap();
    assert_eq!(
        (shown.role.as_str(), shown.name.as_str()),
        ("active", "m5-2")
    );
    assert!(shown.took_over_at.is_some(), "{shown:#?}");
}
