//! Packets through the router with an empty table, one permit, and all of them.

use std::time::Duration;

use agents_firewall::compile::compile;
use agents_firewall::netlink::Kernel;
use anyhow::{Context as _, Result};

use crate::apply::clear;
use crate::place::Place;
use crate::{Bench, traffic, workload};

/// The rules that a round of packets meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    /// A table with a chain for forwarded packets, without a rule.
    Empty,
    /// The same, with one rule that reads the state of flows: the kernel tracks them.
    Tracked,
    /// The agent's table with one permit.
    One,
    /// The agent's table with all permits.
    All,
}

/// The figures of one round of one kind of rules.
#[derive(Clone, Copy, Debug)]
struct Readings {
    tcp: f64,
    udp: f64,
    latency: f64,
    flow: f64,
}

/// Measures every kind in turn, in an order that rotates.
pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let mut order = [Rules::Empty, Rules::Tracked, Rules::One, Rules::All];
    let time = Duration::from_millis(bench.args.traffic_ms);
    for round in 0..bench.args.rounds {
        bench.progress(&format!("packets, round {}", round + 1));
        let mut found = Vec::new();
        for rules in order {
            install(bench, rules)?;
            let place = &bench.place;
            found.push((
                rules,
                read(place, time).with_context(|| format!("{rules:?}"))?,
            ));
        }
        order.rotate_left(1);
        let of = |kind| {
            let own = found.iter().find(|(rules, _)| *rules == kind);
            own.map(|(_, readings)| *readings).context("not measured")
        };
        let (empty, tracked) = (of(Rules::Empty)?, of(Rules::Tracked)?);
        let (one, all) = (of(Rules::One)?, of(Rules::All)?);
        for (name, number) in [
            ("tcp_gbit_s", all.tcp),
            ("tcp_ratio", all.tcp / empty.tcp),
            ("udp_kpps", all.udp),
            ("udp_ratio", all.udp / empty.udp),
            ("udp_tracked_ratio", all.udp / tracked.udp),
            ("latency_p99_us", all.latency),
            ("latency_ratio", empty.latency / all.latency),
            ("flow_us", all.flow),
            ("flow_ratio", one.flow / all.flow),
        ] {
            bench.report.add(name, number);
        }
    }
    clear(bench)
}

fn read(place: &Place, time: Duration) -> Result<Readings> {
    Ok(Readings {
        tcp: traffic::tcp(place, time)?,
        udp: traffic::udp(place, time)?,
        latency: traffic::latency(place, time)?,
        flow: traffic::flows(place)?,
    })
}

fn install(bench: &Bench, rules: Rules) -> Result<()> {
    clear(bench)?;
    let permits = match rules {
        Rules::One => 1,
        Rules::All => bench.args.permits,
        Rules::Empty | Rules::Tracked => {
            let router = &bench.place.router;
            let chain = "{ type filter hook forward priority 0; policy accept; }";
            router.execute(&["nft", "add table inet empty"])?;
            router.execute(&["nft", &format!("add chain inet empty forward {chain}")])?;
            if rules == Rules::Tracked {
                let rule = "add rule inet empty forward ct state invalid drop";
                router.execute(&["nft", rule])?;
            }
            return Ok(());
        }
    };
    let table = compile(&workload::rules(&workload::text(permits, 0, 0)?)?);
    bench.place.router.inside(|| {
        Kernel::open()?.apply(&table)?;
        Ok(())
    })
}
