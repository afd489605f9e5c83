//! Three real nodes, real faults, and a history that must be linearizable at the end.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that tells what it saw"
)]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tests_lab::wait::wait_for;
use tests_robustness::{Site, Stretch, Told, Workload, check, check_told, next_program, skipped};

const CLIENTS: usize = 4;
const REGISTERS: usize = 3;
/// Who is told of everything; one at each node at first, and one more.
const WATCHERS: usize = 4;
/// Writes that must be acknowledged between two faults.
const PROGRESS: u64 = 15;
const PATIENCE: Duration = Duration::from_secs(60);

/// One cluster at a time: they are timed by the machine that they share.
static ONE: Mutex<()> = Mutex::new(());

/// What happens while clients work.
struct Story {
    site: Site,
    workload: Arc<Workload>,
}

impl Story {
    /// Tells it: clients begin, `happen` does, clients end, and the history is looked at.
    fn tell(happen: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        Self::tell_at(|| Site::form(3), happen)
    }

    fn tell_at(
        site: impl FnOnce() -> Result<Site>,
        happen: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let site = site()?;
        let workload = site.workload(REGISTERS)?;
        let watchers = site.start_watchers(&workload, WATCHERS);
        wait_for("watchers at their places", PATIENCE, || {
            Ok((workload.lists() >= WATCHERS).then_some(()))
        })?;
        let clients = site.start_clients(&workload, CLIENTS);
        let mut story = Self { site, workload };
        let happened = story.progress().and_then(|()| happen(&mut story));
        let calm = happened.and_then(|()| story.progress());
        story.workload.stop();
        clients.finish()?;
        calm?;
        story.site.read_everywhere(&story.workload)?;
        story.site.end(&story.workload)?;
        let told = watchers.finish()?;
        let history = story.workload.history();
        println!(
            "{} operations, {} acknowledged writes",
            history.len(),
            story.workload.acknowledged()
        );
        check(&history)?;
        judge(&told, &story.workload)
    }

    /// Waits until clients are served again.
    fn progress(&self) -> Result<()> {
        let goal = self.workload.acknowledged() + PROGRESS;
        wait_for("acknowledged writes", PATIENCE, || {
            Ok((self.workload.acknowledged() >= goal).then_some(()))
        })
    }
}

/// What watchers were told fits, and somebody went on at another node.
fn judge(told: &[Told], workload: &Workload) -> Result<()> {
    let events = |it: &Stretch| it.events.len();
    let watchers: Vec<_> = told.iter().map(|it| it.stretches.clone()).collect();
    let moves: usize = told.iter().map(|it| it.moves).sum();
    let lists: usize = watchers.iter().map(Vec::len).sum();
    let events: usize = watchers.iter().flatten().map(events).sum();
    println!("{events} events, {lists} lists, {moves} times on at another node");
    check_told(&watchers, workload.registers(), &workload.history())?;
    ensure!(moves + lists > WATCHERS, "no watcher ever left its node");
    Ok(())
}

#[test]
fn nodes_are_killed_and_come_back() {
    if skipped() {
        return;
    }
    Story::tell(|story| {
        for _ in 0..3 {
            let leader = story.site.leader()?;
            story.site.cluster.kill(leader)?;
            story.progress()?;
            story.site.start(leader)?;
            story.site.caught_up(leader)?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn nodes_get_the_next_level_one_after_the_other() {
    if skipped() {
        return;
    }
    let Some(next) = next_program() else {
        println!(
            "SKIPPED: metalmeshd-next is not built; cargo build -p control-server --features \
             next-level --bin metalmeshd-next"
        );
        return;
    };
    Story::tell(|story| {
        let before = story.site.status()?;
        let leader = usize::try_from(before.leader)? - 1;
        story.site.set_program(next);
        for node in (0..3).filter(|node| *node != leader).chain([leader]) {
            story.site.cluster.kill(node)?;
            story.progress()?;
            story.site.start(node)?;
            story.site.caught_up(node)?;
            story.progress()?;
        }
        wait_for("the next level", PATIENCE, || {
            let level = story.site.status()?.feature_level;
            Ok((level == before.feature_level + 1).then_some(()))
        })
    })
    .unwrap();
}

#[test]
fn all_nodes_are_killed_at_once() {
    if skipped() {
        return;
    }
    Story::tell(|story| {
        (0..3).try_for_each(|node| story.site.cluster.kill(node))?;
        (0..3).try_for_each(|node| story.site.start(node))?;
        story.progress()
    })
    .unwrap();
}

#[test]
fn a_leader_that_stood_still_serves_nothing_old() {
    if skipped() {
        return;
    }
    Story::tell(|story| {
        for _ in 0..2 {
            let leader = story.site.leader()?;
            story.site.cluster.pause(leader)?;
            story.progress()?;
            story.site.cluster.resume(leader)?;
            story.progress()?;
            story.site.caught_up(leader)?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_leader_that_is_cut_off_acknowledges_nothing() {
    if skipped() {
        return;
    }
    Story::tell(|story| {
        for _ in 0..2 {
            let leader = story.site.leader()?;
            story.site.cluster.cut(leader)?;
            story.progress()?;
            story.site.cluster.heal(leader)?;
            story.site.caught_up(leader)?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_full_disk_stops_one_node_and_loses_nothing() {
    if skipped() {
        return;
    }
    Story::tell_at(
        || Site::form_with_small_disk(3),
        |story| {
            let node = 2;
            let filler = story.site.cluster.fill_disk(node)?;
            story.progress()?;
            wait_for("the node's end", PATIENCE, || {
                story.progress()?;
                Ok((!story.site.cluster.nodes[node].process()?.alive()).then_some(()))
            })?;
            let log = story.site.cluster.log(node)?;
            ensure!(
                log.contains("No space left on device"),
                "it ended otherwise: {log}"
            );
            std::fs::remove_file(filler).context("the filler")?;
            story.site.start(node)?;
            story.site.caught_up(node)
        },
    )
    .unwrap();
}

#[test]
fn a_disk_that_cannot_sync_ends_its_node() {
    if skipped() {
        return;
    }
    Story::tell(|story| {
        let leader = story.site.leader()?;
        let strace = story.site.cluster.break_syncs(leader)?;
        wait_for("the node's end", PATIENCE, || {
            Ok((!story.site.cluster.nodes[leader].process()?.alive()).then_some(()))
        })?;
        strace.kill()?;
        let log = story.site.cluster.log(leader)?;
        ensure!(
            log.contains("Input/output error"),
            "it ended otherwise: {log}"
        );
        story.progress()?;
        story.site.start(leader)?;
        story.site.caught_up(leader)
    })
    .unwrap();
}

#[test]
fn a_node_is_killed_while_it_is_sent_a_snapshot() {
    if skipped() {
        return;
    }
    Story::tell_at(
        || Site::form_with_slow_snapshots(3),
        |story| {
            let leader = story.site.leader()?;
            let away = (leader + 1) % 3;
            story.site.cluster.kill(away)?;
            story.site.outgrown(story.site.last_log()?)?;
            // Who receives it goes twice, then who sends it.
            for _ in 0..2 {
                story.site.start(away)?;
                let bytes = story.site.receiving(away)?;
                story.site.cluster.kill(away)?;
                println!("killed with {bytes} bytes of a snapshot");
                story.progress()?;
            }
            story.site.start(away)?;
            story.site.receiving(away)?;
            let sender = story.site.leader()?;
            story.site.cluster.kill(sender)?;
            story.site.start(sender)?;
            story.progress()?;
            story.site.caught_up(away)
        },
    )
    .unwrap();
}
