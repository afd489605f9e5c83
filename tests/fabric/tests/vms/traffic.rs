//! The machines that stay: numbered packets within each tenant, and marked ones to everybody.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::crossing::{Crossed, Place, judge};
use super::daemons::DEADLINE;
use super::flow::{Probes, Targets};
use super::hosts::{PORT, answer, listen};
use super::machine::Networking;
use super::power::Power;
use super::site::Site;
use super::stages::{Offered, Rented};
use super::stream::{End, Stream};
use super::wait::found;

/// Names of the tenants in marks.
pub(crate) const NAMES: [char; 2] = ['A', 'B'];
/// Machines that stay: number, tenant and network.
pub(crate) const STAYING: [(u8, usize, Networking); 4] = [
    (1, 0, Networking::Routed),
    (2, 1, Networking::Routed),
    (3, 0, Networking::Routed),
    (4, 1, Networking::Bridged),
];
/// Streams: numbers of both machines, and the cable that the first sends over if it has a choice.
const STREAMS: [(u8, u8, Option<&str>); 7] = [
    (1, 3, Some("eth0")),
    (1, 3, Some("eth1")),
    (3, 1, Some("eth0")),
    (3, 1, Some("eth1")),
    (2, 4, Some("eth0")),
    (2, 4, Some("eth1")),
    (4, 2, None),
];
/// Most that a running tenant may lose when a part fails, and when it comes back, on an idle host.
/// The guests of a busy one stand still at times, which is not the switches' doing.
const LOSS_MAX: Duration = Duration::from_secs(1);
/// Longest time that traffic has to find another way.
const OUTAGE: Duration = Duration::from_secs(10);

/// The machines that stay, and their packets.
pub(crate) struct Traffic {
    staying: Vec<Rented>,
    streams: Vec<Stream>,
    _probes: Vec<Probes>,
    pub(crate) targets: Targets,
    /// Packets that crossed between tenants.
    pub(crate) crossed: Crossed,
    /// Losses that were too long.
    pub(crate) lost: Vec<String>,
}

impl Traffic {
    /// Checks who reaches whom, and starts all packets.
    pub(crate) async fn start(site: &Site, offered: [Offered; STAYING.len()]) -> Self {
        let [one, two, three, four] = offered;
        let of = STAYING.map(|(_, tenant, _)| tenant);
        // At once: most of the time somebody waits for somebody.
        let rented = tokio::join!(
            site.rent(one, of[0]),
            site.rent(two, of[1]),
            site.rent(three, of[2]),
            site.rent(four, of[3]),
        );
        let staying = vec![rented.0, rented.1, rented.2, rented.3];
        let mut addresses = [BTreeSet::new(), BTreeSet::new()];
        for rented in &staying {
            listen(rented.machine.namespace(), &word(rented));
            let (name, address) = (NAMES[rented.tenant], &rented.system.address);
            println!("{} of {name}: {address}", word(rented));
            addresses[rented.tenant].insert(address.clone());
        }
        assert_eq!(addresses[0], addresses[1], "both tenants have the same");
        let targets = Targets::default();
        for rented in &staying {
            targets.add(rented.machine.number, &rented.system.address);
        }
        let mut traffic = Self {
            staying,
            streams: Vec::new(),
            _probes: Vec::new(),
            targets,
            crossed: Crossed::new(),
            lost: Vec::new(),
        };
        traffic.cross(site).await;
        traffic.whole(site).await;
        let end = |number: u8| {
            let mut all = traffic.staying.iter();
            let rented = all.rfind(|rented| rented.machine.number == number);
            let rented = rented.unwrap();
            End {
                name: format!("m{number}"),
                namespace: rented.machine.namespace().into(),
                address: rented.system.address.clone(),
            }
        };
        for ((from, to, cable), number) in STREAMS.into_iter().zip(0..) {
            let stream = Stream::start(number, &end(from), &end(to), cable);
            traffic.streams.push(stream);
        }
        for rented in &traffic.staying {
            let (machine, name) = (&rented.machine, NAMES[rented.tenant]);
            let probes = Probes::start(machine.namespace(), machine.number, &traffic.targets);
            probes.belongs_to(name);
            machine.tap.take();
            traffic._probes.push(probes);
        }
        traffic
    }

    /// Checks that each machine reaches those of its tenant, and that nobody else answers.
    pub(crate) async fn cross(&self, site: &Site) {
        for from in &self.staying {
            for to in &self.staying {
                if from.machine.number == to.machine.number {
                    continue;
                }
                let target = &to.system.address;
                let is_own = |other: &&Rented| {
                    other.tenant == from.tenant && other.system.address == *target
                };
                let own: Vec<String> = self.staying.iter().filter(is_own).map(word).collect();
                let got = found(async || {
                    let got = answer(from.machine.namespace(), target, PORT);
                    (got.is_some() != own.is_empty()).then_some(got)
                });
                let got = got.await;
                let (name, tenant) = (word(from), NAMES[from.tenant]);
                println!("{name} of {tenant} to {target}: {got:?}, its tenant's: {own:?}");
                let is_right = got.is_some_and(|got| got.is_none_or(|got| own.contains(&got)));
                if !is_right {
                    site.show().await;
                    from.machine.show();
                    panic!("{name} to {target}");
                }
            }
        }
    }

    /// Waits until every routed machine has a way over both leaves to every other of its tenant.
    pub(crate) async fn whole(&self, site: &Site) {
        let is_whole = found(async || self.has_all_ways().then_some(()));
        if is_whole.await.is_none() {
            site.show().await;
            self.staying.iter().for_each(|rented| rented.machine.show());
            panic!("not every machine has a way over both leaves");
        }
    }

    fn has_all_ways(&self) -> bool {
        let routed = |rented: &&Rented| rented.machine.networking == Networking::Routed;
        self.staying.iter().filter(routed).all(|from| {
            let others = self.staying.iter();
            let mut others = others
                .filter(|to| to.tenant == from.tenant && to.machine.number != from.machine.number);
            others.all(|to| {
                let routes = routes(from.machine.namespace(), &to.system.address);
                routes.contains("eth0") && routes.contains("eth1")
            })
        })
    }

    /// The next packet of every stream.
    pub(crate) fn now(&self) -> Vec<u32> {
        self.streams.iter().map(Stream::now).collect()
    }

    /// Waits until every stream works again after a fault. `false` if some do not.
    pub(crate) fn works(&self, since: &[u32], limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            let mut streams = self.streams.iter().zip(since);
            if streams.all(|(stream, since)| stream.works(*since)) {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            // Not a loop without pause: it would take a processor from the machines.
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    /// Waits until every stream works, and prints what has been lost since. More than the promise
    /// is kept for the end if `is_bounded`.
    pub(crate) fn measure(&mut self, power: &Power, what: &str, since: &[u32], is_bounded: bool) {
        let stretch = power.stretch();
        let most = LOSS_MAX.mul_f64(stretch);
        let works = self.works(since, OUTAGE) || !is_bounded || self.works(since, DEADLINE);
        let mut row = Vec::new();
        for (stream, since) in self.streams.iter().zip(since) {
            // The last packets may be on their way.
            let loss = stream.loss(*since, stream.now().saturating_sub(20).max(*since));
            row.push(format!("{} {}", stream.name.trim_end(), loss.as_millis()));
            if is_bounded && loss > most {
                self.lost
                    .push(format!("{what}: {}: {} ms", stream.name, loss.as_millis()));
            }
        }
        println!(
            "lost, ms: {what}: {} (host's load {stretch})",
            row.join(", ")
        );
        if is_bounded && !works {
            self.lost.push(format!("{what}: not all traffic came back"));
        }
        self.look(what);
    }

    /// Judges the packets that came to the machines since the last look.
    pub(crate) fn look(&mut self, what: &str) {
        let mut own = 0;
        for rented in &self.staying {
            let (number, name) = (rented.machine.number, NAMES[rented.tenant]);
            let seen = rented.machine.tap.take();
            own += seen.get(&name).copied().unwrap_or(0);
            self.crossed.extend(judge(number, Place::Of(name), &seen));
        }
        println!(
            "{what}: {own} marked packets of own tenants, crossed: {:?}",
            self.crossed
        );
    }
}

fn word(rented: &Rented) -> String {
    format!("m{}", rented.machine.number)
}

fn routes(namespace: &str, target: &str) -> String {
    let mut ip = std::process::Command::new("ip");
    // Machines of a segment are known by the prefix of its gateway.
    let output = ip
        .args(["-n", namespace, "route", "show", "match", target])
        .output();
    String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
}
