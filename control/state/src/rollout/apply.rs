//! Transitions of rollouts.

use std::collections::{BTreeMap, BTreeSet};

use proto_errors::{Error, ErrorCode};
use proto_types::DigestAlgorithm;

use crate::cluster::apply::clock::{TickTime, tick_time};
use crate::cluster::read::restored;
use crate::firewall::entity::FirewallRelease;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::rollout::command::{
    AbortRollout, ClearRelease, PauseRollout, ResumeRollout, StartRollout, StepRollout,
};
use crate::rollout::decision::advance;
use crate::rollout::entity::{
    AgentRelease, Rollout, RolloutGate, RolloutKind, RolloutState, SiteRelease, WaveSize,
};
use crate::rollout::read::{AgentSight, judged_agents, release_of_site, rollout, site_release};
use crate::tables::{Tables, Tx};

/// Most waves; a plan with more is refused.
const WAVES_MAX: usize = 32;
/// Longest time of a gate, milliseconds: thirty days. A longer one is refused.
const GATE_MAX_MS: u64 = 30 * 24 * 3_600_000;
/// Longest version, bytes: the limit of releases. A longer one is refused.
const VERSION_LEN_MAX: usize = 64;
/// Longest URL, bytes: the limit of the agent. A longer one is refused.
const URL_LEN_MAX: usize = 2048;
/// Begin of every URL.
const SCHEME: &str = "https://";

pub(crate) fn start(tx: &mut Tx<'_>, op: &StartRollout) -> ApplyResult {
    check_release(&op.release)?;
    check_plan(op)?;
    check_version(tx.tables(), op)?;
    check_none_under_way(tx.tables(), op.kind)?;
    Ok(Reply::Rollout(tx.save(Rollout {
        kind: op.kind,
        release: op.release.clone(),
        waves: op.waves.clone(),
        gate: op.gate,
        state: RolloutState::Running,
        wave: 0,
        wave_since: tx.now,
        settled_since: None,
        members: None,
        told: BTreeSet::new(),
        failed: BTreeMap::new(),
        started_by: tx.actor.to_owned(),
        started_at: tx.now,
    })))
}

/// Refuses while a rollout to agents of a kind is under way.
fn check_none_under_way(tables: &Tables, kind: RolloutKind) -> CheckResult {
    let known = rollout(tables, kind).filter(|known| known.state != RolloutState::Done);
    let Some(known) = known else {
        return Ok(());
    };
    let (kind, version) = (kind.as_str(), &known.release.version);
    let what = format!("a rollout of {version} to {kind} agents is under way");
    let hint = format!("wait for it, or end it: `metalmesh rollout {kind} abort`");
    Err(Error::new(ErrorCode::WrongRolloutState, what).hint(hint))
}

/// The rollout as the leader sees it. `None` means that a step then changes nothing: also while the
/// cluster's time is held, and in a restored state that nobody reconciled, as no agent is judged then.
fn stepped(tables: &Tables, kind: RolloutKind, sight: &AgentSight) -> Option<Rollout> {
    let known = rollout(tables, kind)?;
    let TickTime::Believed(now) = tick_time(tables, sight.now) else {
        return None;
    };
    if known.state != RolloutState::Running || restored(tables).is_some() {
        return None;
    }
    let next = advance(known, judged_agents(tables, known, sight), now);
    (next != **known).then_some(next)
}

/// The agents whose rollout a step would change. `None` means that there are none.
pub fn due_rollout(tables: &Tables, sight: &AgentSight) -> Option<RolloutKind> {
    let mut kinds = tables.all::<Rollout>().map(|rollout| rollout.kind);
    kinds.find(|kind| stepped(tables, *kind, sight).is_some())
}

pub(crate) fn step(tx: &mut Tx<'_>, op: &StepRollout) -> ApplyResult {
    let silent = op.silent.iter().cloned();
    let sight = AgentSight {
        now: tx.now,
        silent: silent.map(|agent| (op.kind, agent)).collect(),
    };
    let Some(next) = stepped(tx.tables(), op.kind, &sight) else {
        return Ok(Reply::None);
    };
    if next.state == RolloutState::Done {
        match next.kind {
            RolloutKind::Firewall => drop(tx.save(site_release(&next))),
            kind @ (RolloutKind::Core | RolloutKind::Bmc | RolloutKind::Pixie) => {
                drop(tx.save(SiteRelease {
                    kind,
                    release: next.release.clone(),
                    set_by: next.started_by.clone(),
                    set_at: tx.now,
                }));
            }
        }
    }
    Ok(Reply::Rollout(tx.save(next)))
}

/// Stops a rollout that runs, until it is resumed.
pub(crate) fn pause(tx: &mut Tx<'_>, op: &PauseRollout) -> ApplyResult {
    let known = required(tx.tables(), op.kind)?;
    match known.state {
        RolloutState::Running => {}
        // The first cause stays.
        RolloutState::Stopped { .. } => return Ok(Reply::Rollout(known.into())),
        RolloutState::Done => return Err(complete(op.kind)),
    }
    let reason = format!("{} has paused it", tx.actor);
    Ok(Reply::Rollout(tx.save(Rollout {
        state: RolloutState::Stopped { reason },
        settled_since: None,
        ..known
    })))
}

pub(crate) fn resume(tx: &mut Tx<'_>, op: &ResumeRollout) -> ApplyResult {
    let known = required(tx.tables(), op.kind)?;
    if known.state == RolloutState::Done {
        return Err(complete(op.kind));
    }
    let failures_max = op.failures_max.unwrap_or(known.gate.failures_max);
    // The agents get the whole time of the gate once more.
    Ok(Reply::Rollout(tx.save(Rollout {
        state: RolloutState::Running,
        wave_since: tx.now,
        settled_since: None,
        failed: BTreeMap::new(),
        gate: RolloutGate {
            failures_max,
            ..known.gate
        },
        ..known
    })))
}

pub(crate) fn abort(tx: &mut Tx<'_>, op: &AbortRollout) -> ApplyResult {
    let known = required(tx.tables(), op.kind)?;
    if known.state == RolloutState::Done {
        return Err(complete(op.kind));
    }
    tx.delete::<Rollout>(&op.kind.as_str().to_owned());
    Ok(Reply::Rollout(known.into()))
}

/// Ends the site's release. Agents keep the program that they run.
pub(crate) fn clear(tx: &mut Tx<'_>, op: &ClearRelease) -> ApplyResult {
    check_none_under_way(tx.tables(), op.kind)?;
    let Some(old) = release_of_site(tx.tables(), op.kind) else {
        return Ok(Reply::None);
    };
    match op.kind {
        RolloutKind::Firewall => {
            tx.delete::<FirewallRelease>(&FirewallRelease::SITE.to_owned());
        }
        RolloutKind::Core | RolloutKind::Bmc | RolloutKind::Pixie => {
            tx.delete::<SiteRelease>(&op.kind.as_str().to_owned());
        }
    }
    Ok(Reply::SiteRelease(old.into()))
}

fn complete(kind: RolloutKind) -> Error {
    let what = format!("the rollout to {} agents is complete", kind.as_str());
    let hint = match kind {
        RolloutKind::Firewall => {
            "name another release: `metalmesh firewall release set`, or start another rollout"
        }
        RolloutKind::Core | RolloutKind::Bmc | RolloutKind::Pixie => "start another rollout",
    };
    Error::new(ErrorCode::WrongRolloutState, what).hint(hint)
}

fn required(tables: &Tables, kind: RolloutKind) -> Result<Rollout, Error> {
    let known = rollout(tables, kind).map(|known| Rollout::clone(known));
    known.ok_or_else(|| Error::not_found("rollout", kind.as_str()))
}

/// Checks the form. The API has parsed the version and the URL.
fn check_release(release: &AgentRelease) -> CheckResult {
    if !(1..=VERSION_LEN_MAX).contains(&release.version.len()) {
        let rule = format!("must have 1 to {VERSION_LEN_MAX} bytes");
        return Err(Error::invalid("release.version", rule));
    }
    if !release.url.starts_with(SCHEME) || release.url.len() > URL_LEN_MAX {
        let rule = format!("must begin with {SCHEME}, and have at most {URL_LEN_MAX} bytes");
        return Err(Error::invalid("release.url", rule));
    }
    if release.head_digest.algorithm() != DigestAlgorithm::Sha256 {
        return Err(Error::invalid("release.head_digest", "must be a SHA-256"));
    }
    Ok(())
}

/// Refuses a version that is the site's in another release: agents report their version, so that the
/// two could not be told apart.
fn check_version(tables: &Tables, op: &StartRollout) -> CheckResult {
    let site = release_of_site(tables, op.kind);
    let is_taken = site.is_some_and(|site| {
        site.release.version == op.release.version
            && site.release.head_digest != op.release.head_digest
    });
    if is_taken {
        let rule = "is that of another release, which agents run; give each build a version";
        return Err(Error::invalid("release.version", rule));
    }
    Ok(())
}

fn check_plan(op: &StartRollout) -> CheckResult {
    if op.waves.len() > WAVES_MAX {
        let rule = format!("must have at most {WAVES_MAX} waves");
        return Err(Error::invalid("waves", rule));
    }
    let is_sized = |size: &WaveSize| match size {
        WaveSize::Agents(agents) => *agents > 0,
        WaveSize::Percent(percent) => (1..=100).contains(percent),
    };
    if !op.waves.iter().all(is_sized) {
        let rule = "must be numbers from 1, or percentages from 1% to 100%";
        return Err(Error::invalid("waves", rule));
    }
    for (field, ms) in [
        ("healthy_for", op.gate.healthy_for_ms),
        ("patience", op.gate.patience_ms),
    ] {
        if ms > GATE_MAX_MS {
            return Err(Error::invalid(field, "must be at most 30 days"));
        }
    }
    if op.gate.patience_ms == 0 {
        return Err(Error::invalid("patience", "must not be 0"));
    }
    Ok(())
}
