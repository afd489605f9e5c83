//! Machines come and go under load: no packet crosses, and whoever stays loses none.

use std::collections::BTreeMap;
use std::time::Instant;

use super::flow::{Flow, Probes};
use super::machine::Networking;
use super::site::{Offered, Rented, Site};

/// Cycles of all machines together.
const CYCLES: usize = 200;
/// Machines that stay: number and tenant.
const STAYING: [(u8, usize); 4] = [(1, 0), (2, 1), (3, 0), (4, 1)];
/// Machines that come and go.
const CHANGING: [(u8, Networking); 3] = [
    (5, Networking::Routed),
    (6, Networking::Bridged),
    (7, Networking::Bridged),
];
const NAMES: [char; 2] = ['A', 'B'];

/// Packets that another tenant's machine saw.
type Crossed = Vec<String>;

/// The addresses of every machine of each tenant, present or to come, and of the leaves.
fn targets() -> Vec<String> {
    let machines = (0..14).map(|number| format!("10.0.0.{number}"));
    let leaves = ["10.0.0.254", "10.0.0.255", "169.254.1.1"];
    machines.chain(leaves.map(str::to_owned)).collect()
}

/// Judges the packets that came to a machine while it belonged to a tenant, or to nobody.
fn judge(number: u8, tenant: Option<char>, seen: &BTreeMap<char, u64>) -> Crossed {
    let strangers = seen.iter().filter(|(of, _)| Some(**of) != tenant);
    let say = |(of, count): (&char, &u64)| format!("m{number} of {tenant:?}: {count} of {of}");
    strangers.map(say).collect()
}

/// A machine's packets, and the cycles that it has made.
struct Changing<'a> {
    site: &'a Site,
    number: u8,
    crossed: Crossed,
    /// Packets of own tenants that came.
    own: u64,
}

impl Changing<'_> {
    async fn run(&mut self, mut offered: Offered, cycles: usize) {
        let namespace = offered.machine.namespace().to_owned();
        let probes = Probes::start(&namespace, self.number, targets());
        let tap = offered.machine.tap.clone();
        for cycle in 0..cycles {
            let tenant = (cycle + usize::from(self.number)) % 2;
            self.look(None, &tap.take());
            probes.belongs_to(NAMES[tenant]);
            let rented = self.site.rent(offered, tenant).await;
            let released = self.site.release(rented).await;
            self.look(Some(NAMES[tenant]), &tap.take());
            probes.belongs_to('-');
            offered = released.again().await;
            if cycle % 10 == 9 {
                println!("m{}: {} cycles", self.number, cycle + 1);
            }
        }
        self.look(None, &tap.take());
    }

    fn look(&mut self, tenant: Option<char>, seen: &BTreeMap<char, u64>) {
        self.crossed.extend(judge(self.number, tenant, seen));
        self.own += tenant.and_then(|of| seen.get(&of)).copied().unwrap_or(0);
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
                let reached = super::wait::found(async || {
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
    let probes: Vec<Probes> = staying.iter().map(probe).collect();
    let flows = flows(&staying);
    let began = Instant::now();
    let share = CYCLES.div_ceil(CHANGING.len());
    let work = changing.into_iter().map(|(number, offered)| {
        let site = &site;
        async move {
            let mut changing = Changing {
                site,
                number,
                crossed: Vec::new(),
                own: 0,
            };
            changing.run(offered, share).await;
            (changing.crossed, changing.own)
        }
    });
    let [one, two, three] = <[_; 3]>::try_from(work.collect::<Vec<_>>()).ok().unwrap();
    let done = tokio::join!(one, two, three);
    println!("{} cycles in {:?}", share * CHANGING.len(), began.elapsed());
    site.times.print();
    let mut crossed: Crossed = Vec::new();
    for (number, (found, own)) in [5, 6, 7].into_iter().zip([done.0, done.1, done.2]) {
        println!("m{number}: {own} packets of its own tenants, {found:?} of others");
        crossed.extend(found);
    }
    for rented in &staying {
        let (number, seen) = (rented.machine.number, rented.machine.tap.take());
        println!("m{number}: packets by tenant {seen:?}");
        crossed.extend(judge(number, Some(NAMES[rented.tenant]), &seen));
    }
    drop(probes);
    let mut lost = Vec::new();
    for flow in flows {
        let name = flow.name.clone();
        let (sent, gone) = flow.end();
        println!("{name}: {sent} packets, {} lost", gone.len());
        lost.extend((!gone.is_empty()).then(|| format!("{name}: {gone:?}")));
    }
    assert!(crossed.is_empty(), "{crossed:#?}");
    assert!(lost.is_empty(), "{lost:#?}");
}

fn probe(rented: &Rented) -> Probes {
    let number = rented.machine.number;
    let probes = Probes::start(rented.machine.namespace(), number, targets());
    probes.belongs_to(NAMES[rented.tenant]);
    rented.machine.tap.take();
    probes
}
