//! All permits at once, beside `nft -f`.

use std::path::Path;

use agents_firewall::netlink::Kernel;
use agents_firewall::render::render;
use anyhow::{Context as _, Result, ensure};

use crate::program::{cost_here, cost_of};
use crate::{Bench, workload};

/// Measures every way in turn. The table is removed before each.
pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name);
    let text = workload::text(bench.args.permits, 0, 0)?;
    let rules = workload::rules(&text)?;
    std::fs::write(file("config.yaml"), &text)?;
    std::fs::write(file("rules.nft"), render(&rules))?;
    for round in 0..bench.args.rounds {
        bench.progress(&format!("all permits, round {}", round + 1));
        clear(bench)?;
        let (config, state) = (file("config.yaml"), file("state"));
        let program = path(&bench.args.firewall)?;
        let arguments = [
            program,
            "apply",
            path(&config)?,
            "--state-dir",
            path(&state)?,
        ];
        let ours = cost_of(bench.place.router.command(&arguments))?;
        bench.report.add("apply_ms", ours.wall_ms);
        bench.report.add("apply_cpu_ms", ours.cpu_ms);
        if round == 0 {
            std::fs::write(file("table.nft"), listed(bench)?)?;
        }
        clear(bench)?;
        let here = bench.place.router.inside(|| {
            let kernel = Kernel::open()?;
            let (cost, applied) = cost_here(|| Ok(kernel.enforce(&rules)?))?;
            ensure!(!applied.changes.is_empty(), "nothing was applied");
            Ok(cost)
        })?;
        bench.report.add("agent_apply_ms", here.wall_ms);
        bench.report.add("agent_apply_cpu_ms", here.cpu_ms);
        for (name, wall, cpu) in [
            ("table.nft", "nft_table_ms", "nft_table_cpu_ms"),
            ("rules.nft", "nft_rules_ms", "nft_rules_cpu_ms"),
        ] {
            clear(bench)?;
            let file = file(name);
            let nft = cost_of(bench.place.router.command(&["nft", "-f", path(&file)?]))?;
            bench.report.add(wall, nft.wall_ms);
            bench.report.add(cpu, nft.cpu_ms);
        }
    }
    clear(bench)
}

/// The table as nft lists it, without the rules about types of ICMP: nft does not take back what it
/// prints for them.
fn listed(bench: &Bench) -> Result<String> {
    let list = ["nft", "list", "table", "inet", "metalmesh-firewall"];
    let text = String::from_utf8(bench.place.router.execute(&list)?)?;
    let lines = text.lines().filter(|line| !line.contains("@th,0,8"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Removes every rule.
pub(crate) fn clear(bench: &Bench) -> Result<()> {
    bench.place.router.execute(&["nft", "flush", "ruleset"])?;
    Ok(())
}

/// A path as an argument.
pub(crate) fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path is no text")
}
