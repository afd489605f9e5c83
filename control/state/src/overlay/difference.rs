//! The differences between a switch's desired state and its last report.

use std::collections::BTreeSet;

use proto_types::Timestamp;

use crate::catalog::entity::Partition;
use crate::desired::{PortIntent, port_intents};
use crate::overlay::{desired_place, is_place, observed_place, up_or_down};
use crate::switch::entity::{ObjectDrift, ObjectProblem, Switch};
use crate::tables::Tables;

/// One thing that is not as desired, or was not until lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The object in words: `port swp1`.
    pub object: String,
    /// The field of a port: `place` or `admin`. Empty if the agent describes the whole object.
    pub field: &'static str,
    /// Desired state, in words.
    pub wanted: String,
    /// Observed state, in words.
    pub seen: String,
    /// Time when the agent noticed it. `None` means unknown.
    pub since: Option<Timestamp>,
    /// Its progress.
    pub state: DifferenceState,
    /// The reason why it stays so. Empty if it is on its way.
    pub reason: String,
    /// Failed attempts in a row.
    pub attempts: u32,
}

/// The progress of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceState {
    /// The switch has not reported the change yet.
    Pending,
    /// The switch does not take the change and is asked again.
    Failing,
    /// Waits for another object, or the switch cannot have it.
    Blocked,
    /// Changed by hand and left so by policy.
    Held,
    /// Changed by hand and about to be healed.
    Drifted,
    /// Changed by hand and healed.
    Healed,
}

/// All differences of a switch: of ports by field first, then the objects that only the agent
/// knows, then what was healed lately.
pub fn differences(tables: &Tables, switch: &Switch) -> Vec<Difference> {
    let mut out = Vec::new();
    for intent in port_intents(tables, switch) {
        out.extend(of_port(switch, &intent));
    }
    out.extend(of_drain(tables, switch));
    let named: BTreeSet<String> = out.iter().map(|found| found.object.clone()).collect();
    let health = &switch.health;
    let (healed, open): (Vec<_>, Vec<_>) = health.drift.iter().partition(|drift| drift.is_healed);
    let unnamed = |object: &String| !named.contains(object);
    let open = open.into_iter().filter(|drift| unnamed(&drift.object));
    out.extend(open.map(|drift| whole(switch, drift)));
    let drifted: BTreeSet<&String> = health
        .drift
        .iter()
        .filter(|d| !d.is_healed)
        .map(|drift| &drift.object)
        .collect();
    let problems = health.problems.iter();
    let problems = problems.filter(|problem| unnamed(&problem.object));
    let problems = problems.filter(|problem| !drifted.contains(&problem.object));
    out.extend(problems.map(of_problem));
    out.extend(healed.into_iter().map(|drift| whole(switch, drift)));
    out
}

fn of_port(switch: &Switch, intent: &PortIntent) -> Vec<Difference> {
    let object = format!("port {}", intent.name);
    let port = switch.ports.get(&intent.name);
    let wanted = desired_place(intent.place, intent.vni);
    let Some(seen) = port.and_then(|port| port.observed.as_ref()) else {
        return vec![explained(
            switch,
            object,
            "place",
            wanted,
            "not reported".to_owned(),
        )];
    };
    let mut out = Vec::new();
    // Agents of the published stack report no place.
    let is_there = !switch.hears || is_place(intent.place, seen.place);
    if !is_there || seen.vni != intent.vni {
        let seen = observed_place(seen.place, seen.vni);
        out.push(explained(switch, object.clone(), "place", wanted, seen));
    }
    if seen.admin_up != intent.admin_up {
        let [wanted, seen] = [intent.admin_up, seen.admin_up].map(up_or_down);
        let (wanted, seen) = (wanted.to_owned(), seen.to_owned());
        out.push(explained(switch, object, "admin", wanted, seen));
    }
    out
}

/// A drain that the switch has not reported. Without EVPN only ports show it.
fn of_drain(tables: &Tables, switch: &Switch) -> Option<Difference> {
    let partition = tables.get::<Partition>(&switch.partition);
    let has_bgp = switch.hears && partition.is_some_and(|partition| partition.has_evpn());
    if !has_bgp || switch.drain.is_some() == switch.health.is_draining {
        return None;
    }
    let words = |is_draining: bool| if is_draining { "drained" } else { "in service" };
    let wanted = words(switch.drain.is_some()).to_owned();
    let seen = words(switch.health.is_draining).to_owned();
    let mut found = explained(switch, "BGP".to_owned(), "drain", wanted, seen);
    found.since = found
        .since
        .or_else(|| switch.drain.as_ref().map(|drain| drain.at));
    Some(found)
}

/// A difference of a field, with what the agent says of its object.
fn explained(
    switch: &Switch,
    object: String,
    field: &'static str,
    wanted: String,
    seen: String,
) -> Difference {
    let drift = switch.health.drift.iter().rev();
    let drift = drift.filter(|drift| !drift.is_healed && drift.object == object);
    let drift = drift.into_iter().next();
    let problem = problem_of(switch, &object);
    Difference {
        field,
        wanted,
        seen,
        since: drift.map(|drift| drift.noticed_at),
        state: state(drift, problem),
        reason: problem
            .map(|problem| problem.reason.clone())
            .unwrap_or_default(),
        attempts: problem.map_or(0, |problem| problem.attempts),
        object,
    }
}

fn problem_of<'s>(switch: &'s Switch, object: &str) -> Option<&'s ObjectProblem> {
    let mut problems = switch.health.problems.iter();
    problems.find(|problem| problem.object == object)
}

fn state(drift: Option<&ObjectDrift>, problem: Option<&ObjectProblem>) -> DifferenceState {
    match (drift, problem) {
        (Some(drift), _) if drift.is_healed => DifferenceState::Healed,
        (Some(drift), _) if drift.is_held => DifferenceState::Held,
        (_, Some(problem)) if problem.attempts > 0 => DifferenceState::Failing,
        (None, Some(_)) => DifferenceState::Blocked,
        (Some(_), _) => DifferenceState::Drifted,
        (None, None) => DifferenceState::Pending,
    }
}

/// A change by hand of a whole object.
fn whole(switch: &Switch, drift: &ObjectDrift) -> Difference {
    let problem = problem_of(switch, &drift.object).filter(|_| !drift.is_healed);
    Difference {
        object: drift.object.clone(),
        field: "",
        wanted: drift.desired.clone(),
        seen: drift.seen.clone(),
        since: Some(drift.noticed_at),
        state: state(Some(drift), problem),
        reason: problem
            .map(|problem| problem.reason.clone())
            .unwrap_or_default(),
        attempts: problem.map_or(0, |problem| problem.attempts),
    }
}

fn of_problem(problem: &ObjectProblem) -> Difference {
    Difference {
        object: problem.object.clone(),
        field: "",
        wanted: String::new(),
        seen: String::new(),
        since: None,
        state: state(None, Some(problem)),
        reason: problem.reason.clone(),
        attempts: problem.attempts,
    }
}
