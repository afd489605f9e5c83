//! Applies tables, and remembers what was applied.

use super::error::NetlinkError;
use super::kernel::Kernel;
use super::reading::is_interrupted;
use super::results::Applied;
use crate::model::NftTable;
use crate::plan::{Change, Installed, plan, split};
use crate::rule::RuleSet;

/// Attempts to read or to change while somebody else changes rules.
const ATTEMPTS_MAX: usize = 20;
/// No generation: the kernel skips this number.
const UNKNOWN: u32 = 0;

impl Kernel {
    /// Reads our table, of one generation.
    ///
    /// # Errors
    /// A request failed, or others change rules without a pause.
    pub fn read(&self) -> Result<Installed, NetlinkError> {
        self.forget();
        self.refresh()?;
        Ok(self.last.borrow().clone())
    }

    /// Drops what is known of the table, so that the next change reads it as a whole again.
    pub fn forget(&self) {
        self.last.borrow_mut().generation = UNKNOWN;
    }

    /// Generation of the table as it is known here. `None` if it is not known.
    #[must_use]
    pub fn known_generation(&self) -> Option<u32> {
        Some(self.last.borrow().generation).filter(|generation| *generation != UNKNOWN)
    }

    /// Takes the generation `current` for that of the table as it is known here. Every change
    /// between both must have learned or forgotten elements with timeouts only, which nobody compares.
    pub fn adopt(&self, current: u32) {
        let mut last = self.last.borrow_mut();
        if last.generation != UNKNOWN {
            last.generation = current;
        }
    }

    /// Compiles rules and applies their table. A change of few rules costs little: see
    /// [`RuleCompiler`] and [`Kernel::apply`].
    ///
    /// # Errors
    /// Those of [`Kernel::apply`].
    pub fn enforce(&self, rules: &RuleSet) -> Result<Applied, NetlinkError> {
        let mut compiler = self.compiler.borrow_mut();
        if compiler.is_new() {
            self.refresh()?;
            compiler.adopt(&self.last.borrow().sets);
        }
        self.apply(compiler.compile(rules))
    }

    /// Drops every packet if the kernel has no table of ours. Rules that outlived an agent stay.
    ///
    /// # Errors
    /// Those of [`Kernel::read`] and [`Kernel::apply`].
    pub fn close(&self) -> Result<(), NetlinkError> {
        if self.read()?.exists {
            return Ok(());
        }
        self.enforce(&RuleSet::default()).map(drop)
    }

    /// Makes the kernel's table the desired one. All changes that decide about packets are one
    /// transaction; the removal of chains and sets that are unused afterwards is another one.
    ///
    /// The table is read as a whole unless no change but this value's own was made since it was
    /// read. What this value has changed is known then from the kernel's acknowledgement, and from
    /// the generation, which must be the one right after that of the plan. Chains and their rules
    /// are read back after each change of them.
    ///
    /// # Errors
    /// The kernel refused a transaction; then nothing of it was done.
    /// [`NetlinkError::NotApplied`] if the table still differs after many transactions.
    pub fn apply(&self, desired: &NftTable) -> Result<Applied, NetlinkError> {
        let mut made: Vec<Change> = Vec::new();
        let mut first = None;
        for _ in 0..ATTEMPTS_MAX {
            let generation = self.refresh()?;
            let rest = split(plan(&self.last.borrow(), desired), desired);
            let part = if rest.decisive.is_empty() {
                rest.cleanup
            } else {
                rest.decisive
            };
            first = part.first().map(ToString::to_string);
            if part.is_empty() {
                return Ok(Applied {
                    changes: made,
                    generation,
                });
            }
            if part.contains(&Change::RemoveTable) {
                // The counters of the new table go on.
                match self.counters() {
                    Err(error) if is_interrupted(&error) => continue,
                    read => read?,
                };
            }
            match self.commit(&part, generation) {
                Ok(()) => {}
                Err(NetlinkError::Stale) => continue,
                Err(error) => {
                    // The next change does not build on what the kernel contradicts.
                    self.forget();
                    return Err(error);
                }
            }
            self.remember(&part, generation)?;
            made.extend(part);
        }
        Err(first.map_or(NetlinkError::Stale, NetlinkError::NotApplied))
    }

    /// Reads the table unless it is known; returns its generation.
    fn refresh(&self) -> Result<u32, NetlinkError> {
        for _ in 0..ATTEMPTS_MAX {
            let generation = self.generation()?;
            if self.last.borrow().generation == generation {
                return Ok(generation);
            }
            let read = self.read_once();
            // Something that vanished while it was read is an error of that reading only.
            let is_current = self.generation()? == generation;
            match read {
                Ok(mut installed) if is_current => {
                    installed.generation = generation;
                    self.last.replace(installed);
                    return Ok(generation);
                }
                Err(error) if is_current && !is_interrupted(&error) => return Err(error),
                _ => {}
            }
        }
        Err(NetlinkError::Stale)
    }

    /// Brings what is known of the table up to date after our own transaction for a generation.
    fn remember(&self, changes: &[Change], generation: u32) -> Result<(), NetlinkError> {
        let mut carried = self.carried.borrow_mut();
        for change in changes {
            if let Change::RemoveCounter(name) = change {
                carried.remove(name);
            }
        }
        let mut last = self.last.borrow_mut();
        let is_whole = last.record(changes);
        // The generation of our own transaction. If it is not the current one, somebody else has
        // changed rules since, and the next look at the table reads it.
        last.generation = following(generation);
        if !is_whole {
            last.chains.clear();
            if let Err(error) = self.read_chains(&mut last.chains) {
                last.generation = UNKNOWN;
                return if is_interrupted(&error) {
                    Ok(())
                } else {
                    Err(error)
                };
            }
        }
        Ok(())
    }
}

/// The generation after one transaction by anybody.
pub(super) fn following(generation: u32) -> u32 {
    generation.checked_add(1).unwrap_or(UNKNOWN + 1)
}
