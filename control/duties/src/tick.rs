//! Time-driven changes: liveliness, deadlines of orders and phases, expiry of records.

use std::time::Duration;

use control_authz::{Permit, SystemActor};
use control_presence::{Fleet, Presence};
use control_state::{ClusterClock, Command, EventLog, Tables, Tick, apply, tick_may_change};
use control_store::{ProposeError, Store, StoreError};
use proto_types::Timestamp;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Interval between two ticks.
pub const ROUND: Duration = Duration::from_secs(2);
/// Maximum machines whose last contact one command carries, which bounds the size of a log entry. Of
/// more, those with the oldest known contact come first and the rest follows in the next rounds.
pub const HEARD_MAX: usize = 20_000;

/// A tick that may change the state, with a copy of the state on which it can be tried.
struct DueTick {
    tick: Tick,
    trial: Tables,
}

/// The tick at `now`. `None` means that it cannot change anything.
fn look(tables: &Tables, fleet: Fleet, now: Timestamp, node: u64) -> Option<DueTick> {
    let tick = Tick {
        node,
        listening_since: fleet.listening_since,
        unobserved: fleet.unobserved,
        heard: worth_telling(tables, fleet.heard),
    };
    // The copy shares the records but still costs time per machine, so it is made only if the cheap
    // check finds that the tick may change something. In most rounds it does not.
    tick_may_change(tables, &tick, now).then(|| DueTick {
        tick,
        trial: tables.clone(),
    })
}

/// The tick, if applying it to the copy changes something. The trial runs the code of the real
/// command, so its answer is exact.
fn tried(due: DueTick, now: Timestamp) -> Option<Tick> {
    let DueTick { tick, mut trial } = due;
    let outcome = apply(&mut trial, &Command::new(now, "reconcile", tick.clone()));
    (outcome.result.is_ok() && !outcome.changes.is_empty()).then_some(tick)
}

/// Last contacts that are newer than those in the state. If there are too many, those whose contact
/// in the state is oldest.
fn worth_telling(
    tables: &Tables,
    machines: std::collections::BTreeMap<proto_types::MachineId, Timestamp>,
) -> std::collections::BTreeMap<proto_types::MachineId, Timestamp> {
    let known =
        |id: &proto_types::MachineId| tables.get::<EventLog>(id).map(|log| log.last_event_time);
    let mut news: Vec<_> = machines
        .into_iter()
        .filter_map(|(id, at)| {
            known(&id)
                .filter(|known| *known < at)
                .map(|known| (known, id, at))
        })
        .collect();
    if news.len() > HEARD_MAX {
        tracing::warn!(
            machines = news.len(),
            "more machines were heard than one command carries"
        );
        news.sort_unstable_by_key(|(known, ..)| *known);
        news.truncate(HEARD_MAX);
    }
    news.into_iter().map(|(_, id, at)| (id, at)).collect()
}

/// Proposes ticks until stopped.
pub(crate) async fn run(store: Store, presence: Presence, stop: CancellationToken) {
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = rounds.tick() => {}
        }
        if store.is_leader()
            && let Err(error) = act(&store, presence.fleet()).await
        {
            tracing::warn!(error = %error, "a round of time did not come through");
        }
    }
}

async fn act(store: &Store, fleet: Fleet) -> Result<(), ProposeError<control_state::StateError>> {
    let (now, node) = (store.now(), store.node_id());
    let due = store
        .read_local(|tables| look(tables, fleet, now, node))
        .map_err(ProposeError::<_>::from)?;
    let Some(tick) = due.and_then(|due| tried(due, now)) else {
        return Ok(());
    };
    let permit = Permit::system(SystemActor::Reconcile);
    match store
        .propose(&permit, &Command::new(now, "reconcile", tick))
        .await
    {
        // Another node leads by now and proposes ticks by its own clock.
        Err(ProposeError::Store(StoreError::NotLeader { .. } | StoreError::ShutDown)) => {
            return Ok(());
        }
        outcome => outcome.map(drop),
    }?;
    warn_if_held(store);
    Ok(())
}

/// Warns if the state holds the leader's clock back after a jump.
fn warn_if_held(store: &Store) {
    let key = ClusterClock::ONE.to_owned();
    let clock = store.read_local(|tables| tables.get::<ClusterClock>(&key).cloned());
    let held = clock
        .ok()
        .flatten()
        .and_then(|clock| Some((clock.time, clock.held.clone()?)));
    if let Some((time, jump)) = held {
        tracing::warn!(
            cluster_time = %time,
            claimed = %jump.claimed,
            node = jump.node,
            "the leader's clock jumped: nothing is judged by it until it is set right or confirmed \
             by: metalmesh cluster accept-time"
        );
    }
}

#[cfg(test)]
mod tests {
    use control_state::{ClusterClock, CreateToken, TokenType};
    use proto_types::TokenId;

    use super::*;

    const DAY_MS: u64 = 24 * 3_600_000;

    fn plan(tables: &Tables, fleet: Fleet, now: Timestamp) -> Option<Tick> {
        look(tables, fleet, now, 1).and_then(|due| tried(due, now))
    }

    fn with_token(expires: u64) -> Tables {
        let mut tables = Tables::new();
        let create = CreateToken {
            id: TokenId::new(uuid::Uuid::from_u128(1)),
            user: "anna".into(),
            description: String::new(),
            labels: Default::default(),
            permissions: Vec::new(),
            expires: Timestamp::from_ms(expires),
            token_type: TokenType::Api,
            project_roles: Default::default(),
            tenant_roles: Default::default(),
            admin_role: None,
            infra_role: None,
            machine_roles: Default::default(),
            warrant: None,
        };
        let outcome = apply(
            &mut tables,
            &Command::new(Timestamp::from_ms(1000), "test", create),
        );
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        tables
    }

    #[test]
    fn nothing_to_do_writes_nothing() {
        let mut tables = with_token(DAY_MS);
        let now = Timestamp::from_ms(DAY_MS);
        let first = plan(&tables, Fleet::default(), now).expect("the clock starts");
        let outcome = apply(&mut tables, &Command::new(now, "test", first));
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        for later in [0, 2_000, ClusterClock::STEP_MS - 1] {
            let now = now.plus_ms(later);
            assert_eq!(plan(&tables, Fleet::default(), now), None, "{now}");
        }
    }

    #[test]
    fn what_had_its_day_is_cleared_away() {
        let tables = with_token(DAY_MS);
        let later = Timestamp::from_ms(30 * DAY_MS);
        assert!(plan(&tables, Fleet::default(), later).is_some());
    }

    #[test]
    fn only_news_of_known_machines_is_told() {
        let tables = Tables::new();
        let stranger = proto_types::MachineId::new(uuid::Uuid::from_u128(7));
        let machines = [(stranger, Timestamp::from_ms(5))].into();
        assert!(worth_telling(&tables, machines).is_empty());
    }
}
