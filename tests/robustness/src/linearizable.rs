//! Is a history of registers linearizable?
//!
//! The search of Wing and Gong with Lowe's memory of configurations ("Testing for
//! linearizability", 2017), register by register: a history is linearizable exactly when each
//! register's part is (Herlihy and Wing, 1990, locality). Two facts keep it short: a read that
//! fits may be placed at once, for it changes nothing; and a write without an answer may be left
//! out unless its value is read next.

use std::collections::{BTreeMap, HashSet};

use crate::history::{Action, Op, Value};

/// Configurations that are looked at for one register before the search gives up.
const CONFIGURATIONS_MAX: usize = 500_000;

/// Why a history is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// No order of the operations explains the answers.
    #[error(
        "register {key} is not linearizable: after {placed} of {all} operations, with value \
         {value}, none of these can come next: {stuck:?}"
    )]
    Impossible {
        /// Which register.
        key: usize,
        /// The longest explanation's length.
        placed: usize,
        /// Operations on the register.
        all: usize,
        /// The register's value then.
        value: Value,
        /// What could not be placed.
        stuck: Vec<Op>,
    },
    /// The history is too wide to decide.
    #[error("register {key} was not decided within {CONFIGURATIONS_MAX} configurations")]
    Undecided {
        /// Which register.
        key: usize,
    },
}

/// Checks every register of a history.
///
/// # Errors
/// The first register that cannot be explained.
pub fn check(ops: &[Op]) -> Result<(), Violation> {
    let mut registers: BTreeMap<usize, Vec<Op>> = BTreeMap::new();
    for op in ops {
        registers.entry(op.key).or_default().push(*op);
    }
    registers
        .into_iter()
        .try_for_each(|(key, ops)| Search::new(key, ops).run())
}

/// Which operations are placed, a bit each, and what the register then holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Configuration {
    placed: Vec<u64>,
    value: Value,
}

impl Configuration {
    fn has(&self, at: usize) -> bool {
        self.placed[at / 64] & (1 << (at % 64)) != 0
    }

    fn place(&mut self, at: usize) {
        self.placed[at / 64] |= 1 << (at % 64);
    }

    fn count(&self) -> usize {
        self.placed.iter().map(|w| w.count_ones() as usize).sum()
    }
}

struct Search {
    key: usize,
    /// By the time they were invoked.
    ops: Vec<Op>,
}

impl Search {
    fn new(key: usize, mut ops: Vec<Op>) -> Self {
        let read: HashSet<Value> = ops
            .iter()
            .filter_map(|op| match op.action {
                Action::Read(value) => Some(value),
                Action::Write(_) => None,
            })
            .collect();
        ops.retain(|op| match op.action {
            Action::Write(value) => op.answered.is_some() || read.contains(&value),
            Action::Read(_) => op.answered.is_some(),
        });
        ops.sort_by_key(|op| op.invoked);
        Self { key, ops }
    }

    fn run(&self) -> Result<(), Violation> {
        let start = Configuration {
            placed: vec![0; self.ops.len().div_ceil(64)],
            value: 0,
        };
        let mut seen = HashSet::new();
        let mut best = start.clone();
        let mut stack = vec![start];
        while let Some(mut now) = stack.pop() {
            self.place_reads(&mut now);
            if self.is_whole(&now) {
                return Ok(());
            }
            if !seen.insert(now.clone()) {
                continue;
            }
            if seen.len() > CONFIGURATIONS_MAX {
                return Err(Violation::Undecided { key: self.key });
            }
            if now.count() > best.count() {
                best = now.clone();
            }
            for at in self.possible(&now) {
                stack.extend(self.after_write(&now, at));
            }
        }
        self.place_reads(&mut best);
        Err(Violation::Impossible {
            key: self.key,
            placed: best.count(),
            all: self.ops.len(),
            value: best.value,
            stuck: self.possible(&best).map(|at| self.ops[at]).collect(),
        })
    }

    /// What follows when that write comes next. One without an answer may as well never happen, so
    /// it only does where somebody reads it at once.
    fn after_write(&self, now: &Configuration, at: usize) -> Option<Configuration> {
        let Action::Write(value) = self.ops[at].action else {
            return None;
        };
        let is_read = || {
            self.possible(now)
                .any(|other| self.ops[other].action == Action::Read(value))
        };
        if self.ops[at].answered.is_none() && !is_read() {
            return None;
        }
        let mut next = now.clone();
        next.place(at);
        next.value = value;
        Some(next)
    }

    /// Places every read that fits and could come next, until there is none.
    fn place_reads(&self, now: &mut Configuration) {
        loop {
            let fits = |at: &usize| self.ops[*at].action == Action::Read(now.value);
            let reads: Vec<usize> = self.possible(now).filter(fits).collect();
            if reads.is_empty() {
                return;
            }
            reads.into_iter().for_each(|at| now.place(at));
        }
    }

    /// Operations that no other one must precede: invoked before the first answer among those
    /// that are not placed.
    fn possible<'a>(&'a self, now: &Configuration) -> impl Iterator<Item = usize> + use<'a> {
        let now = now.clone();
        let open = |at: &usize| !now.has(*at);
        let first_answer = (0..self.ops.len())
            .filter(open)
            .filter_map(|at| self.ops[at].answered)
            .min()
            .unwrap_or(u64::MAX);
        (0..self.ops.len())
            .take_while(move |at| self.ops[*at].invoked < first_answer)
            .filter(move |at| !now.has(*at))
    }

    /// Is everything placed that was answered?
    fn is_whole(&self, now: &Configuration) -> bool {
        (0..self.ops.len()).all(|at| now.has(at) || self.ops[at].answered.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(action: Action, invoked: u64, answered: impl Into<Option<u64>>) -> Op {
        Op {
            client: 0,
            key: 0,
            action,
            invoked,
            answered: answered.into(),
        }
    }

    use Action::{Read, Write};

    #[test]
    fn good_histories() {
        let cases: [&[Op]; 6] = [
            &[],
            &[op(Read(0), 0, 1), op(Write(1), 2, 3), op(Read(1), 4, 5)],
            // At the same time, either order will do.
            &[op(Write(1), 0, 5), op(Read(0), 1, 2), op(Read(1), 3, 4)],
            &[op(Write(1), 0, 9), op(Write(2), 1, 8), op(Read(1), 10, 11)],
            // Without an answer, it may happen late, or never.
            &[op(Write(1), 0, None), op(Read(0), 1, 2), op(Read(1), 3, 4)],
            &[op(Write(1), 0, None), op(Write(2), 1, 2), op(Read(2), 3, 4)],
        ];
        for ops in cases {
            assert_eq!(check(ops), Ok(()), "{ops:?}");
        }
    }

    #[test]
    fn bad_histories() {
        let cases: [&[Op]; 5] = [
            // A lost write.
            &[op(Write(1), 0, 1), op(Read(0), 2, 3)],
            // A value from nowhere.
            &[op(Read(7), 0, 1)],
            // Back in time.
            &[
                op(Write(1), 0, 1),
                op(Write(2), 2, None),
                op(Read(2), 3, 4),
                op(Read(1), 5, 6),
            ],
            // Two readers disagree about an order.
            &[
                op(Write(1), 0, 9),
                op(Write(2), 0, 9),
                op(Read(1), 10, 11),
                op(Read(2), 12, 13),
            ],
            // Read before it was asked for.
            &[op(Read(1), 0, 1), op(Write(1), 2, 3)],
        ];
        for ops in cases {
            assert!(
                matches!(check(ops), Err(Violation::Impossible { .. })),
                "{ops:?}"
            );
        }
    }

    #[test]
    fn registers_are_apart() {
        let mut other = op(Read(0), 2, 3);
        other.key = 1;
        assert_eq!(check(&[op(Write(1), 0, 1), other]), Ok(()));
    }

    /// Many at the same time, as a fault leaves them: decided, and quickly.
    #[test]
    fn a_wide_history() {
        let mut ops: Vec<Op> = (1..=40)
            .map(|value| op(Write(value), value, None))
            .collect();
        ops.extend((1..=40).map(|value| op(Read(value), 100 + 2 * value, 101 + 2 * value)));
        assert_eq!(check(&ops), Ok(()));
        ops.push(op(Read(3), 500, 501));
        assert!(check(&ops).is_err());
    }
}
