//! Ports follow the API: into a tenant's place on both leaves, and out of it.

use super::hosts::{PORT, answer, listen};
use super::machine::Networking;
use super::site::{Rented, Site};
use super::wait::found;

const ROUTED: [u8; 4] = [1, 2, 3, 4];
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
            let own: Vec<String> = own.map(|own| word(own)).collect();
            let got = found(async || {
                let got = answer(namespace, target, PORT);
                (got.is_some() == !own.is_empty()).then_some(got)
            });
            let got = got.await;
            println!("{} to {target}: {got:?}, its tenant's: {own:?}", word(from));
            let is_right = got.is_some_and(|got| got.is_none_or(|got| own.contains(&got)));
            if !is_right {
                site.show().await;
                panic!("{} to {target}", word(from));
            }
        }
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
    for number in ROUTED {
        offered.push(site.deliver(number, Networking::Routed).await);
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
        let place = format!("Vrf{}", machine.system.vni);
        assert_eq!(places(&site, &machine), [place.clone(), place], "rented");
        println!(
            "{}: {} in VRF {} on both leaves",
            word(&machine),
            machine.system.address,
            machine.system.vni
        );
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
