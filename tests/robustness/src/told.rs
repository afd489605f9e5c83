//! What watchers were told, and whether all of it fits: to each other, and to what the writers
//! were told.
//!
//! A watcher's history is a list of stretches. A stretch begins with a list of what was there and
//! goes on event by event, from whichever node; only a node that says that it forgot (`compacted`)
//! may end one and begin the next.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Action, Op, Value};

/// What one command did to one object: its kind, its id, and a register's new value.
pub type Change = (String, String, Option<Value>);

/// What a watcher was told in one go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// The revision of the list that it began with.
    pub listed_at: u64,
    /// The registers in that list.
    pub listed: BTreeMap<usize, Value>,
    /// Revision and changes of each event, in the order in which they came.
    pub events: Vec<(u64, BTreeSet<Change>)>,
}

impl Stretch {
    /// The last revision up to which all was told.
    fn last(&self) -> u64 {
        self.events.last().map_or(self.listed_at, |(at, _)| *at)
    }
}

/// How watches went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrue {
    /// Told again, or out of order.
    #[error("watcher {watcher} was told revision {revision} after {before}")]
    Order {
        /// Who.
        watcher: usize,
        /// What came.
        revision: u64,
        /// What had come before.
        before: u64,
    },
    /// Two watchers were told different things of one command.
    #[error("of revision {revision} watcher {watcher} was told {told:?}, another one {other:?}")]
    Torn {
        /// Which command.
        revision: u64,
        /// Who.
        watcher: usize,
        /// What it was told.
        told: BTreeSet<Change>,
        /// What somebody else was told.
        other: BTreeSet<Change>,
    },
    /// A command was left out.
    #[error("watcher {watcher} was not told revision {revision}, between {from} and {to}")]
    Gap {
        /// Who.
        watcher: usize,
        /// What is missing.
        revision: u64,
        /// Begin of the stretch.
        from: u64,
        /// Its end.
        to: u64,
    },
    /// A list showed something else than the events before it led to.
    #[error(
        "the list of watcher {watcher} at {revision} shows {listed} in register {key}, not {value}"
    )]
    Listed {
        /// Who.
        watcher: usize,
        /// When.
        revision: u64,
        /// Which register.
        key: usize,
        /// What it showed.
        listed: Value,
        /// What was there.
        value: Value,
    },
    /// One write took effect more than once.
    #[error("value {value} was written at revision {first} and again at {again}")]
    Twice {
        /// Which.
        value: Value,
        /// When.
        first: u64,
        /// And when again.
        again: u64,
    },
    /// Nobody was told of a write that was acknowledged.
    #[error("value {value} of register {key} was acknowledged, but no watcher was told")]
    Lost {
        /// Which register.
        key: usize,
        /// Which value.
        value: Value,
    },
    /// A write that began after another one's acknowledgement came before it.
    #[error("value {earlier} was acknowledged before {later} was asked for, but came after it")]
    Reordered {
        /// The first one.
        earlier: Value,
        /// The second one.
        later: Value,
    },
}

/// Checks what watchers were told, against each other and against the writers' history.
/// `registers` are the ids of the registers' objects. Watchers must have begun before the writers.
///
/// # Errors
/// The first thing that does not fit.
pub fn check_told(
    watchers: &[Vec<Stretch>],
    registers: &[String],
    ops: &[Op],
) -> Result<(), Untrue> {
    let all = united(watchers)?;
    for (watcher, stretches) in watchers.iter().enumerate() {
        for stretch in stretches {
            no_gap(watcher, stretch, &all)?;
            listed_right(watcher, stretch, registers, &all)?;
        }
    }
    let written = written(registers, &all)?;
    // Where every watcher had to list again, nobody was told of what lies between.
    let is_whole = watchers.iter().any(|stretches| stretches.len() == 1);
    real_time(&written, ops, is_whole)
}

/// Everything that anybody was told: in order, once, and the same to all.
fn united(watchers: &[Vec<Stretch>]) -> Result<BTreeMap<u64, BTreeSet<Change>>, Untrue> {
    let mut all: BTreeMap<u64, BTreeSet<Change>> = BTreeMap::new();
    for (watcher, stretches) in watchers.iter().enumerate() {
        let mut before = 0;
        for stretch in stretches {
            if stretch.listed_at < before {
                let revision = stretch.listed_at;
                return Err(Untrue::Order {
                    watcher,
                    revision,
                    before,
                });
            }
            before = stretch.listed_at;
            for (revision, told) in &stretch.events {
                let revision = *revision;
                if revision <= before {
                    return Err(Untrue::Order {
                        watcher,
                        revision,
                        before,
                    });
                }
                before = revision;
                let other = all.entry(revision).or_insert_with(|| told.clone());
                if other != told {
                    let (told, other) = (told.clone(), other.clone());
                    return Err(Untrue::Torn {
                        revision,
                        watcher,
                        told,
                        other,
                    });
                }
            }
        }
    }
    Ok(all)
}

fn no_gap(
    watcher: usize,
    stretch: &Stretch,
    all: &BTreeMap<u64, BTreeSet<Change>>,
) -> Result<(), Untrue> {
    let told: BTreeSet<u64> = stretch.events.iter().map(|(at, _)| *at).collect();
    let (from, to) = (stretch.listed_at, stretch.last());
    let between = all.range(from.saturating_add(1)..=to.max(from.saturating_add(1)));
    for revision in between.map(|(at, _)| *at).filter(|at| *at <= to) {
        if !told.contains(&revision) {
            return Err(Untrue::Gap {
                watcher,
                revision,
                from,
                to,
            });
        }
    }
    Ok(())
}

fn listed_right(
    watcher: usize,
    stretch: &Stretch,
    registers: &[String],
    all: &BTreeMap<u64, BTreeSet<Change>>,
) -> Result<(), Untrue> {
    for (key, listed) in &stretch.listed {
        let revision = stretch.listed_at;
        let before = all.range(..=revision).rev();
        let last = before
            .flat_map(|(_, changes)| changes)
            .find_map(|(_, id, value)| value.filter(|_| registers.get(*key) == Some(id)));
        if let Some(value) = last.filter(|value| value != listed) {
            let (key, listed) = (*key, *listed);
            return Err(Untrue::Listed {
                watcher,
                revision,
                key,
                listed,
                value,
            });
        }
    }
    Ok(())
}

/// At which revision each value was written, with its register.
fn written(
    registers: &[String],
    all: &BTreeMap<u64, BTreeSet<Change>>,
) -> Result<BTreeMap<Value, (usize, u64)>, Untrue> {
    let mut written = BTreeMap::new();
    for (again, changes) in all {
        for (_, id, value) in changes {
            let key = registers.iter().position(|register| register == id);
            let (Some(key), Some(value)) = (key, *value) else {
                continue;
            };
            if let Some((_, first)) = written.insert(value, (key, *again)) {
                let again = *again;
                return Err(Untrue::Twice {
                    value,
                    first,
                    again,
                });
            }
        }
    }
    Ok(written)
}

/// Acknowledged writes are there, in an order that agrees with when they were asked for.
fn real_time(
    written: &BTreeMap<Value, (usize, u64)>,
    ops: &[Op],
    is_whole: bool,
) -> Result<(), Untrue> {
    let mut done = Vec::new();
    for op in ops {
        let (Action::Write(value), Some(answered)) = (op.action, op.answered) else {
            continue;
        };
        let key = op.key;
        match written.get(&value) {
            Some((there, revision)) if *there == key => {
                done.push((op.invoked, answered, *revision, value));
            }
            None if !is_whole => {}
            _ => return Err(Untrue::Lost { key, value }),
        }
    }
    for (_, answered, at, earlier) in &done {
        let later = done
            .iter()
            .find(|(invoked, _, revision, _)| invoked > answered && revision < at);
        if let Some((.., later)) = later {
            let (earlier, later) = (*earlier, *later);
            return Err(Untrue::Reordered { earlier, later });
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
mod tests {
    use super::*;

    fn event(revision: u64, id: &str, value: Value) -> (u64, BTreeSet<Change>) {
        let change = ("project".to_owned(), id.to_owned(), Some(value));
        (revision, BTreeSet::from([change]))
    }

    fn good() -> Vec<Vec<Stretch>> {
        let events = vec![event(5, "a", 1), event(6, "b", 2), event(9, "a", 3)];
        let late = Stretch {
            listed_at: 6,
            listed: BTreeMap::from([(0, 1), (1, 2)]),
            events: vec![event(9, "a", 3)],
        };
        let whole = Stretch {
            listed_at: 4,
            listed: BTreeMap::from([(0, 0), (1, 0)]),
            events,
        };
        vec![vec![whole], vec![late]]
    }

    fn write(value: Value, key: usize, invoked: u64, answered: u64) -> Op {
        Op {
            client: 0,
            key,
            action: Action::Write(value),
            invoked,
            answered: Some(answered),
        }
    }

    fn judged(change: impl FnOnce(&mut Vec<Vec<Stretch>>, &mut Vec<Op>)) -> &'static str {
        let mut watchers = good();
        let mut ops = vec![write(1, 0, 0, 1), write(2, 1, 2, 3), write(3, 0, 4, 5)];
        change(&mut watchers, &mut ops);
        let registers = ["a".to_owned(), "b".to_owned()];
        match check_told(&watchers, &registers, &ops) {
            Ok(()) => "good",
            Err(Untrue::Order { .. }) => "order",
            Err(Untrue::Torn { .. }) => "torn",
            Err(Untrue::Gap { .. }) => "gap",
            Err(Untrue::Listed { .. }) => "listed",
            Err(Untrue::Twice { .. }) => "twice",
            Err(Untrue::Lost { .. }) => "lost",
            Err(Untrue::Reordered { .. }) => "reordered",
        }
    }

    #[test]
    fn each_lie_is_found() {
        assert_eq!(judged(|_, _| ()), "good");
        assert_eq!(judged(|w, _| w[0][0].events.swap(0, 1)), "order");
        let again = |w: &mut Vec<Vec<Stretch>>| {
            let last = w[0][0].events[2].clone();
            w[0][0].events.push(last);
        };
        assert_eq!(judged(|w, _| again(w)), "order");
        assert_eq!(judged(|w, _| w[1][0].events[0].1.clear()), "torn");
        assert_eq!(judged(|w, _| drop(w[0][0].events.remove(1))), "lost");
        let gap = |w: &mut Vec<Vec<Stretch>>| {
            w[1][0].listed_at = 5;
            w[1][0].listed.clear();
        };
        assert_eq!(judged(|w, _| gap(w)), "gap");
        assert_eq!(
            judged(|w, _| w[1][0].listed = BTreeMap::from([(0, 7)])),
            "listed"
        );
        let twice = |w: &mut Vec<Vec<Stretch>>| {
            for watcher in w {
                watcher[0].events.push(event(10, "b", 3));
            }
        };
        assert_eq!(judged(|w, _| twice(w)), "twice");
        assert_eq!(judged(|_, ops| ops.push(write(8, 0, 6, 7))), "lost");
        let early = |ops: &mut Vec<Op>| {
            (ops[2].invoked, ops[2].answered) = (0, Some(1));
            (ops[0].invoked, ops[0].answered) = (4, Some(5));
        };
        assert_eq!(judged(|_, ops| early(ops)), "reordered");
    }
}
