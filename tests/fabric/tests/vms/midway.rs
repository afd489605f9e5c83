//! Ports move, also while a leaf loses its power in the middle of the move.

use std::pin::pin;

use super::crossing::{Crossed, Place, judge};
use super::flow::{Probes, Targets};
use super::power::Power;
use super::site::Site;
use super::stages::{Offered, Rented};
use super::tap::Tap;
use super::traffic::{NAMES, Traffic};
use super::wait::found;

/// The place of a port without tenant.
const PROVISIONING: &str = "mmb4000";

/// A loss of power at a change of the moving port, counted from the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Index of the leaf.
    pub(crate) leaf: usize,
    pub(crate) at: u32,
}

/// A machine that comes and goes.
pub(crate) struct Mover {
    number: u8,
    probes: Probes,
    tap: Tap,
    targets: Targets,
    /// Packets that crossed between tenants.
    pub(crate) crossed: Crossed,
}

impl Mover {
    pub(crate) fn new(offered: &Offered, targets: &Targets) -> Self {
        let machine = &offered.machine;
        Self {
            number: machine.number,
            probes: Probes::start(machine.namespace(), machine.number, targets),
            tap: machine.tap.clone(),
            targets: targets.clone(),
            crossed: Crossed::new(),
        }
    }

    /// Rents the machine for a tenant. Both leaves have its port in the tenant's place then.
    pub(crate) async fn rent(
        &mut self,
        site: &Site,
        power: &Power,
        offered: Offered,
        tenant: usize,
        cut: Option<Cut>,
    ) -> Rented {
        let name = NAMES[tenant];
        self.look(Place::Nobodys);
        self.probes.belongs_to(name.to_ascii_lowercase());
        let port = offered.machine.hardware.port.clone();
        let rented = survive(site, power, &port, cut, site.rent(offered, tenant)).await;
        self.look(Place::Between(name));
        self.probes.belongs_to(name);
        self.targets.add(self.number, &rented.system.address);
        self.wait_for_place(site, &port, |place| {
            !place.is_empty() && place != PROVISIONING
        })
        .await;
        rented
    }

    /// Gives the machine back, and waits until it is on offer again. Both leaves have its port in
    /// nobody's place.
    pub(crate) async fn release(
        &mut self,
        site: &Site,
        power: &Power,
        rented: Rented,
        cut: Option<Cut>,
    ) -> Offered {
        let name = NAMES[rented.tenant];
        self.look(Place::Of(name));
        self.probes.belongs_to(name.to_ascii_lowercase());
        let port = rented.machine.hardware.port.clone();
        let released = survive(site, power, &port, cut, site.release(rented)).await;
        self.look(Place::Between(name));
        self.probes.belongs_to('-');
        self.wait_for_place(site, &port, |place| place == PROVISIONING)
            .await;
        let offered = released.again().await;
        self.look(Place::Nobodys);
        offered
    }

    /// Waits until a port has the same place on both leaves, one that is wanted. It has it at once
    /// unless a leaf boots.
    async fn wait_for_place(&self, site: &Site, port: &str, is_wanted: impl Fn(&str) -> bool) {
        let look = || site.leaves.each_ref().map(|leaf| leaf.master(port));
        let is_there = found(async || {
            let [one, other] = look();
            (one == other && is_wanted(&one)).then_some(one)
        });
        let Some(place) = is_there.await else {
            site.show().await;
            panic!("{port} is in {:?}", look());
        };
        println!("m{}: {port} is in {place} on both leaves", self.number);
    }

    fn look(&mut self, place: Place) {
        let seen = self.tap.take();
        self.crossed.extend(judge(self.number, place, &seen));
    }
}

/// Does something that moves a port, while a leaf loses its power on the way, and gets it back.
async fn survive<T>(
    site: &Site,
    power: &Power,
    port: &str,
    cut: Option<Cut>,
    work: impl Future<Output = T>,
) -> T {
    let Some(Cut { leaf, at }) = cut else {
        return work.await;
    };
    let name = site.leaves[leaf].name();
    power.arm(&name, port, at);
    let mut work = pin!(work);
    let mut look = tokio::time::interval(std::time::Duration::from_millis(100));
    loop {
        tokio::select! {
            done = &mut work => {
                if power.disarm() {
                    println!("{name} lost its power when {port} had moved");
                    power.on(&name);
                } else {
                    println!("{port} moved with fewer than {at} changes on {name}: no cut");
                }
                return done;
            }
            _ = look.tick() => {}
        }
        if power.is_cut() {
            break;
        }
    }
    println!("{name} lost its power at change {at} of {port}");
    power.on(&name);
    work.await
}

/// Moves a machine to a tenant and back, with a loss of power on each way.
pub(crate) async fn cuts(
    site: &Site,
    power: &Power,
    traffic: &mut Traffic,
    offered: Offered,
    [coming, going]: [Option<Cut>; 2],
) {
    let mut mover = Mover::new(&offered, &traffic.targets);
    let number = mover.number;
    let since = traffic.now();
    let rented = mover.rent(site, power, offered, 0, coming).await;
    traffic.whole(site).await;
    traffic.measure(
        power,
        &format!("{coming:?} while m{number} comes"),
        &since,
        true,
    );
    let since = traffic.now();
    mover.release(site, power, rented, going).await;
    traffic.whole(site).await;
    traffic.measure(
        power,
        &format!("{going:?} while m{number} goes"),
        &since,
        true,
    );
    traffic.crossed.append(&mut mover.crossed);
}
