//! Leaves boot while control is away, and come back as they were.

use std::time::Instant;

use super::leaf::Leaf;
use super::power::Power;
use super::rack::Spine;
use super::site::Site;
use super::traffic::Traffic;
use super::wait::found;

/// Machines' ports of a leaf.
const PORTS: std::ops::RangeInclusive<u8> = 1..=6;

/// The places of all ports, and FRR's configuration in the order of its text. The numbers of entries
/// of prefix lists follow the order in which they came. `None` while the leaf does not answer.
fn state(leaf: &Leaf) -> Option<(Vec<String>, Vec<String>)> {
    let places = PORTS.map(|port| leaf.master(&format!("swp{port}")));
    let config = leaf.console.vtysh("show running-config bgpd")?;
    let line = |line: &str| match line.split_once(" seq ") {
        Some((list, entry)) => match entry.split_once(' ') {
            Some((_, rule)) => format!("{list} {rule}"),
            None => line.to_owned(),
        },
        None => line.to_owned(),
    };
    let mut lines: Vec<String> = config.lines().map(line).collect();
    lines.sort();
    Some((places.collect(), lines))
}

/// How a leaf stops.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// Its power is cut, and given later.
    PowerCut,
    /// It is reset.
    Reset,
}

/// Each leaf once: while one boots, the other carries everything.
pub(crate) async fn without_control(site: &mut Site, power: &Power, traffic: &mut Traffic) {
    let before = [0, 1].map(|leaf| state(&site.leaves[leaf]).unwrap());
    site.control.kill();
    println!("control is away");
    let idle = traffic.now();
    traffic.measure(power, "nothing fails", &idle, true);
    for (leaf, stop) in [(1, Stop::PowerCut), (0, Stop::Reset)] {
        let name = site.leaves[leaf].name();
        let since = traffic.now();
        match stop {
            Stop::PowerCut => power.off(&name),
            Stop::Reset => power.reset(&name),
        }
        let began = Instant::now();
        traffic.measure(power, &format!("{name} stops by {stop:?}"), &since, true);
        if let Stop::PowerCut = stop {
            power.on(&name);
        }
        let since = traffic.now();
        let given = Instant::now();
        let leaf_before = &before[leaf];
        let of = &site.leaves[leaf];
        let is_back = found(async || (state(of)? == *leaf_before).then_some(()));
        if is_back.await.is_none() {
            println!("before: {leaf_before:#?}\nafter: {:#?}", state(of));
            of.show();
            panic!("{name} is not as it was");
        }
        println!("{name} is as it was {:?} after its start", given.elapsed());
        let uptime = of.uptime_s().unwrap();
        assert!(uptime < began.elapsed().as_secs_f64(), "{name} has booted");
        traffic.whole(site).await;
        assert!(Spine::new().has_sessions().await, "the spine's sessions");
        println!(
            "{name} carries traffic {:?} after its start",
            given.elapsed()
        );
        traffic.measure(power, &format!("{name} comes back"), &since, true);
    }
    traffic.cross(site).await;
    site.control.begin().await;
    println!("control is back");
}
