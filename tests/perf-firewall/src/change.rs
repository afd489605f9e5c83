//! One rule changed among all, beside `nft -f` of the same change.

use agents_firewall::admit::ObjectAdmission;
use agents_firewall::config::Config;
use agents_firewall::netlink::Kernel;
use anyhow::{Context as _, Result, ensure};

use crate::apply::{clear, path};
use crate::program::{cost_here, cost_of};
use crate::{Bench, workload};

/// Measures changes by the agent's own functions, in one process as in the agent.
pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    clear(bench)?;
    let permits = bench.args.permits;
    let changed = permits / 2;
    bench.progress(&format!("{} changes of one rule", bench.args.changes));
    // The rules before and after; each change is a change of one rule, back and forth.
    let [first, second] = [1, 2].map(|version| -> Result<_> {
        let text = workload::text(permits, changed, version)?;
        workload::rules(&text)
    });
    let versions = [first?, second?];
    let changes = bench.args.changes;
    let costs = bench.place.router.inside(|| {
        let kernel = Kernel::open()?;
        kernel.enforce(&versions[1])?;
        let mut costs = Vec::new();
        for version in versions.iter().cycle().take(usize::try_from(changes)?) {
            let (cost, applied) = cost_here(|| Ok(kernel.enforce(version)?))?;
            ensure!(!applied.changes.is_empty(), "nothing was changed");
            costs.push(cost);
        }
        Ok(costs)
    })?;
    for cost in costs {
        bench.report.add("change_p50_ms", cost.wall_ms);
        bench.report.add("change_cpu_ms", cost.cpu_ms);
    }
    objects(bench)?;
    beside_nft(bench)
}

/// The same from the objects of a source on, as in the agent: those that changed are checked, and
/// turned into rules, again.
fn objects(bench: &mut Bench) -> Result<()> {
    let permits = bench.args.permits;
    let configs = [1, 2].map(|version| -> Result<Config> {
        let text = workload::text(permits, permits / 2, version)?;
        Ok(Config::parse(&text)?)
    });
    let [first, second] = configs;
    let configs = [first?, second?];
    let changes = bench.args.rounds * 2;
    let costs = bench.place.router.inside(|| {
        let kernel = Kernel::open()?;
        let mut admission = ObjectAdmission::remembering();
        kernel.enforce(&admission.admit(&configs[1]).rules)?;
        let mut costs = Vec::new();
        for config in configs.iter().cycle().take(usize::try_from(changes)?) {
            let (cost, _) = cost_here(|| Ok(kernel.enforce(&admission.admit(config).rules)?))?;
            costs.push(cost);
        }
        Ok(costs)
    })?;
    for cost in costs {
        bench.report.add("objects_ms", cost.wall_ms);
        bench.report.add("objects_cpu_ms", cost.cpu_ms);
    }
    Ok(())
}

/// The same change as nft makes it: an entry leaves, another comes.
fn beside_nft(bench: &mut Bench) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let list = ["nft", "list", "maps", "inet"];
    let maps = String::from_utf8(bench.place.router.execute(&list)?)?;
    let line = maps.lines().find(|line| line.contains(".4s0d32p16"));
    let map = line.and_then(|line| line.split_whitespace().nth(1));
    let map = map.context("the table has no map of the permits")?;
    let table = "inet metalmesh-firewall";
    for verb in ["add", "delete"] {
        let entry = format!("{verb} element {table} {map} {{ 192.0.2.1 . tcp . 99 : dropped }}\n");
        std::fs::write(folder.path().join(verb), entry)?;
    }
    for verb in ["add", "delete"].repeat(usize::try_from(bench.args.rounds)?) {
        let file = folder.path().join(verb);
        let nft = cost_of(bench.place.router.command(&["nft", "-f", path(&file)?]))?;
        bench.report.add("nft_change_ms", nft.wall_ms);
    }
    Ok(())
}
