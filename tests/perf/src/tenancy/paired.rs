//! Both systems with as many nodes, called in turn.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::facade::Facade;
use super::paired_row::{PairedRound, PairedRow};
use super::work::{NodeWork, PairedStep, steps};
use super::{Bench, Part};
use crate::api::ironic::{Ironic, Parts};
use crate::api::rest::RestApi;
use crate::callers::{self, Measured};

/// A system that serves Ironic's API.
struct Side {
    name: &'static str,
    is_ours: bool,
    rest: RestApi,
    /// Its processes; their children count as well.
    pids: Vec<u32>,
}

/// Starts both with so many nodes, and measures every row that is wanted.
pub(super) async fn measure(bench: &mut Bench, nodes: u32) -> Result<()> {
    let dir = bench.dir.join(nodes.to_string());
    std::fs::create_dir(&dir)?;
    bench.progress(&format!("ours: {nodes} nodes"));
    let facade = Facade::start(&bench.args.metalmeshd, &dir.join("ours"), nodes).await;
    let facade = facade.context("metalmeshd")?;
    bench.progress(&format!("Ironic: {nodes} nodes"));
    let ironic = ironic(bench, &dir.join("ironic"), nodes).await;
    let ironic = ironic.context("Ironic")?;
    let mut sides = [
        Side {
            name: "ours",
            is_ours: true,
            rest: facade.rest().clone(),
            pids: vec![facade.pid()],
        },
        Side {
            name: "Ironic",
            is_ours: false,
            rest: ironic.rest().clone(),
            pids: ironic.pids().to_vec(),
        },
    ];
    for side in &sides {
        let available = side.rest.count_available().await.context(side.name)?;
        ensure!(
            available == nodes as usize,
            "{} has {available} nodes, not {nodes}",
            side.name
        );
    }
    for step in steps(nodes) {
        if bench.wants(part(step.work)) {
            let row = row(bench, &mut sides, step, nodes).await?;
            bench.report.paired.push(row);
        }
    }
    Ok(())
}

async fn ironic(bench: &Bench, dir: &Path, nodes: u32) -> Result<Ironic> {
    let parts = Parts {
        venv: bench.args.ironic.clone(),
        mariadb: bench.args.mariadb.clone(),
    };
    Ironic::start(&parts, dir, nodes).await
}

/// The part of the bench that has the row of a work.
const fn part(work: NodeWork) -> Part {
    match work {
        NodeWork::List => Part::List,
        NodeWork::Create => Part::Create,
        NodeWork::Allocate => Part::Allocate,
    }
}

/// All rounds of a row.
async fn row(
    bench: &Bench,
    sides: &mut [Side; 2],
    step: PairedStep,
    nodes: u32,
) -> Result<PairedRow> {
    let mut row = PairedRow::new(step, nodes);
    bench.progress(&row.title());
    for side in sides.iter() {
        // The first calls of a kind cost more: each side makes some that do not count.
        let warm_up = PairedStep {
            calls: step.clients,
            ..step
        };
        calls(side, warm_up).await?;
    }
    for _ in 0..bench.args.rounds {
        // The side that is first in one round is last in the next.
        sides.rotate_left(1);
        for side in sides.iter() {
            let measured = calls(side, step).await?;
            let round = PairedRound::of(measured);
            bench.progress(&format!(
                "  {:<6} {:>8.1}/s  p50 {:.2} ms  CPU {:.2} ms{}",
                side.name,
                round.per_s,
                round.p50_ms,
                round.cpu_ms,
                match round.failed {
                    0 => String::new(),
                    failed => format!("  {failed} failed"),
                }
            ));
            let rounds = match side.is_ours {
                true => &mut row.ours,
                false => &mut row.ironic,
            };
            rounds.push(round);
        }
    }
    Ok(row)
}

/// The calls of a step at one side; its nodes are free again afterwards.
async fn calls(side: &Side, step: PairedStep) -> Result<Measured> {
    let PairedStep {
        work,
        clients,
        calls,
    } = step;
    let what = || format!("{}: {}", side.name, work.title());
    let measured = callers::run(&side.rest, &side.pids, work, clients, calls).await;
    let measured = measured.with_context(what)?;
    // A refusal of ours is no outcome of load, as it may be of Ironic.
    let failed = if side.is_ours { measured.failed } else { 0 };
    ensure!(failed == 0, "{}: {failed} of {calls} failed", what());
    if work == NodeWork::Allocate {
        side.rest.release_all().await.with_context(what)?;
    }
    Ok(measured)
}
