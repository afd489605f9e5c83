//! Machines come and go under load: no packet crosses, and whoever stays loses none.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::future::join_all;

use super::crossing::{Crossed, Place, judge};
use super::flow::{Flow, Probes, Targets};
use super::machine::Networking;
use super::site::Site;
use super::stages::{Offered, Rented};
use super::wait::found;

/// Cycles of all machines together.
const CYCLES: usize = 200;
/// Machines that stay: number and tenant.
const STAYING: [(u8, usize); 4] = [(1, 0), (2, 1), (3, 0), (4, 1)];
/// Machines that come and go.
const CHANGING: [(u8, Networking); 6] = [
    (5, Networking::Routed),
    (6, Networking::Bridged),
    (7, Networking::Bridged),
    (8, Networking::Routed),
    (9, Networking::Bridged),
    (10, Networking::Bridged),
];
const NAMES: [char; 2] = ['A', 'B'];

/// A machine's packets, and the cycles that it has made.
struct Changing<'a> {
    site: &'a Site,
    staying: &'a [Rented],
    number: u8,
    targets: Targets,
    began: Instant,
    crossed: Crossed,
    /// Packets of own tenants that came.
    own: u64,
    /// Packets of machines without a tenant that came while it had none.
    nobodys: u64,
}

impl Changing<'_> {
    async fn run(&mut self, mut offered: Offered, cycles: usize) {
        let namespace = offered.machine.namespace().to_owned();
        let probes = Probes::start(&namespace, self.number, &self.targets);
        let tap = offered.machine.tap.clone();
        for cycle in 0..cycles {
            let tenant = (cycle + usize::from(self.number)) % 2;
            let name = NAMES[tenant];
            self.look(Place::Nobodys, &tap.take());
            probes.belongs_to(name.to_ascii_lowercase());
            let rented = self.site.rent(offered, tenant).await;
            self.look(Place::Between(name), &tap.take());
            probes.belongs_to(name);
            self.targets.add(self.number, &rented.system.address);
            let is_reached = found(async || tap.has(name).then_some(()));
            if is_reached.await.is_none() {
                self.site.show().await;
                for rented in self.staying.iter().filter(|of| of.tenant == tenant) {
                    rented.machine.show();
                }
                println!("targets: {:?}", self.targets);
                panic!("nothing reaches m{} of {name}", self.number);
            }
            self.look(Place::Of(name), &tap.take());
            probes.belongs_to(name.to_ascii_lowercase());
            let released = self.site.release(rented).await;
            self.look(Place::Between(name), &tap.take());
            probes.belongs_to('-');
            offered = released.again().await;
            if cycle % 5 == 4 {
                let (number, done) = (self.number, cycle + 1);
                println!("m{number}: {done} cycles after {:?}", self.began.elapsed());
                if number == CHANGING[0].0 {
                    super::usage::print();
                }
            }
        }
        self.look(Place::Nobodys, &tap.take());
    }

    fn look(&mut self, place: Place, seen: &BTreeMap<char, u64>) {
        self.crossed.extend(judge(self.number, place, seen));
        match place {
            Place::Of(tenant) => self.own += seen.get(&tenant).copied().unwrap_or(0),
            Place::Between(_) => {}
            Place::Nobodys => self.nobodys += seen.values().sum::<u64>(),
        }
    }
}

/// Flows between the machines that stay, of the same tenant, both ways.
fn flows(rented: &[Rented]) -> Vec<Flow> {
    let mut flows = Vec::new();
    for from in rented {
        for to in rented {
            if from.tenant == to.tenant && from.machine.number != to.machine.number {
                let name = format!("m{} to m{}", from.machine.number, to.machine.number);
                let (source, sink) = (from.machine.namespace(), to.machine.namespace());
                flows.push(Flow::start(name, source, sink, &to.system.address));
            }
        }
    }
    flows
}

/// Waits until the first packets of a flow arrive.
async fn settle(site: &Site, rented: &[Rented]) {
    for from in rented {
        for to in rented {
            if from.tenant == to.tenant && from.machine.number != to.machine.number {
                let reached = found(async || {
                    let namespace = from.machine.namespace();
                    let word = super::hosts::answer(namespace, &to.system.address, 7);
                    word.is_some().then_some(())
                });
                if reached.await.is_none() {
                    site.show().await;
                    panic!("m{} to m{}", from.machine.number, to.machine.number);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_packet_crosses_while_machines_come_and_go() {
    if !super::is_guest() {
        return;
    }
    let site = Site::start().await;
    let mut staying = Vec::new();
    for (number, tenant) in STAYING {
        let offered = site.deliver(number, Networking::Routed).await;
        staying.push(site.rent(offered, tenant).await);
    }
    let mut changing = Vec::new();
    for (number, networking) in CHANGING {
        changing.push((number, site.deliver(number, networking).await));
    }
    settle(&site, &staying).await;
    let targets = Targets::default();
    staying
        .iter()
        .for_each(|rented| targets.add(rented.machine.number, &rented.system.address));
    let probes: Vec<Probes> = staying
        .iter()
        .map(|rented| probe(rented, &targets))
        .collect();
    let flows = flows(&staying);
    let began = Instant::now();
    let share = CYCLES.div_ceil(CHANGING.len());
    let work = changing.into_iter().map(|(number, offered)| {
        let (site, staying, targets) = (&site, staying.as_slice(), targets.clone());
        async move {
            let mut changing = Changing {
                site,
                staying,
                number,
                targets,
                began,
                crossed: Vec::new(),
                own: 0,
                nobodys: 0,
            };
            changing.run(offered, share).await;
            changing
        }
    });
    let done = join_all(work).await;
    println!("{} cycles in {:?}", share * CHANGING.len(), began.elapsed());
    site.times.print();
    super::usage::print();
    let mut crossed: Crossed = Vec::new();
    for Changing {
        number,
        crossed: found,
        own,
        nobodys,
        ..
    } in done
    {
        println!("m{number}: {own} packets of its own tenants, {found:?} of others");
        println!("m{number}: {nobodys} packets without tenants on both ends");
        crossed.extend(found);
    }
    for rented in &staying {
        let (number, seen) = (rented.machine.number, rented.machine.tap.take());
        println!("m{number}: packets by tenant {seen:?}");
        crossed.extend(judge(number, Place::Of(NAMES[rented.tenant]), &seen));
    }
    drop(probes);
    let mut lost = Vec::new();
    for mut flow in flows {
        let (sent, gone) = flow.end();
        let name = &flow.name;
        println!("{name}: {sent} packets, {} lost", gone.len());
        for first in gone.iter().filter(|n| !gone.contains(&n.wrapping_sub(1))) {
            let at = flow.sent_at(*first);
            site.leaves.iter().for_each(|leaf| leaf.show_around(at));
        }
        lost.extend((!gone.is_empty()).then(|| format!("{name}: {gone:?}")));
    }
    assert!(crossed.is_empty(), "{crossed:#?}");
    assert!(lost.is_empty(), "{lost:#?}");
}

fn probe(rented: &Rented, targets: &Targets) -> Probes {
    let number = rented.machine.number;
    let probes = Probes::start(rented.machine.namespace(), number, targets);
    probes.belongs_to(NAMES[rented.tenant]);
    rented.machine.tap.take();
    probes
}
