//! Ports follow the API: into a tenant's place on both leaves, and out of it.

use super::hosts::{PORT, answer, listen};
use super::machine::Networking;
use super::site::Site;
use super::stages::Rented;
use super::wait::found;

/// The machines, of both tenants in turn.
const MACHINES: [(u8, Networking); 6] = [
    (1, Networking::Routed),
    (2, Networking::Routed),
    (3, Networking::Routed),
    (4, Networking::Routed),
    (5, Networking::Bridged),
    (6, Networking::Bridged),
];
/// Added to the VNI of a VRF for the segment of its bridged machines.
const SEGMENT_BASE: u32 = 1 << 23;
const PROVISIONING: &str = "mmb4000";

/// The place of a machine's port on both leaves.
fn places(site: &Site, rented: &Rented) -> [String; 2] {
    let port = &rented.machine.hardware.port;
    site.leaves.each_ref().map(|leaf| leaf.master(port))
}

/// Checks that each machine reaches those of its tenant, and that nobody else answers.
async fn cross(site: &Site, rented: &[Rented]) {
    for from in rented {
        for to in rented {
            if from.machine.number == to.machine.number {
                continue;
            }
            let namespace = from.machine.namespace();
            let target = &to.system.address;
            let own = rented
                .iter()
                .filter(|other| other.tenant == from.tenant && other.system.address == *target);
            let own: Vec<String> = own.map(word).collect();
            let got = found(async || {
                let got = answer(namespace, target, PORT);
                (got.is_some() != own.is_empty()).then_some(got)
            });
            let got = got.await;
            println!("{} to {target}: {got:?}, its tenant's: {own:?}", word(from));
            let is_right = got.is_some_and(|got| got.is_none_or(|got| own.contains(&got)));
            if !is_right {
                site.show().await;
                from.machine.show();
                to.machine.show();
                panic!("{} to {target}", word(from));
            }
        }
    }
}

/// Both gateways of a bridged machine answer.
async fn reach_gateways(site: &Site, rented: &Rented) {
    for gateway in ["169.254.1.1", "fe80::1%bond0"] {
        let answers = found(async || {
            let mut ping = std::process::Command::new("ip");
            let ping = ping.args(["netns", "exec", rented.machine.namespace()]);
            let ping = ping.args(["ping", "-q", "-c", "1", "-W", "2", gateway]);
            ping.output().unwrap().status.success().then_some(())
        });
        if answers.await.is_none() {
            site.show().await;
            panic!("{gateway} does not answer {}", word(rented));
        }
        println!("{gateway} answers {}", word(rented));
    }
}

fn word(rented: &Rented) -> String {
    format!("m{} of {}", rented.machine.number, rented.tenant)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_moves_ports() {
    if !super::is_guest() {
        return;
    }
    let site = Site::start().await;
    let mut offered = Vec::new();
    for (number, networking) in MACHINES {
        offered.push(site.deliver(number, networking).await);
    }
    println!("{} machines are on offer", offered.len());
    let mut rented = Vec::new();
    for (index, offered) in offered.into_iter().enumerate() {
        let port = offered.machine.hardware.port.clone();
        let is_there = found(async || {
            let places = site.leaves.each_ref().map(|leaf| leaf.master(&port));
            (places == [PROVISIONING; 2]).then_some(())
        });
        if is_there.await.is_none() {
            site.show().await;
            panic!("{port} is not in the provisioning segment");
        }
        let machine = site.rent(offered, index % 2).await;
        listen(machine.machine.namespace(), &word(&machine));
        let vni = machine.system.vni;
        let place = match machine.machine.networking {
            Networking::Bridged => format!("mmb{}", SEGMENT_BASE + vni),
            _ => format!("Vrf{vni}"),
        };
        assert_eq!(places(&site, &machine), [place.clone(), place], "rented");
        let address = &machine.system.address;
        println!("{}: {address} in VRF {vni} on both leaves", word(&machine));
        rented.push(machine);
    }
    let addresses = |tenant: usize| {
        let of_tenant = rented.iter().filter(|rented| rented.tenant == tenant);
        of_tenant
            .map(|rented| rented.system.address.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(addresses(0), addresses(1), "both tenants have the same");
    cross(&site, &rented).await;
    for rented in &rented {
        if rented.machine.networking == Networking::Bridged {
            reach_gateways(&site, rented).await;
        }
    }
    for rented in rented {
        let name = word(&rented);
        let released = site.release(rented).await;
        let port = &released.machine.hardware.port;
        let places = site.leaves.each_ref().map(|leaf| leaf.master(port));
        assert_eq!(places, [PROVISIONING; 2], "{name} was released");
        println!("{name}: released on both leaves");
    }
    site.times.print();
}
