//! Rules of the kernel that somebody changed.

use std::time::Instant;

use base_runtime::Chain;
use tracing::{error, warn};

use super::FirewallAgent;

impl FirewallAgent {
    /// Compares the kernel's table with the rules if anybody changed rules, or if it was not read for
    /// long, and repairs it.
    pub(super) fn heal(&mut self) {
        let began = Instant::now();
        let is_due = self.audit.is_due(began);
        match self.kernel.generation() {
            Ok(generation) => {
                self.adopt_learned(generation);
                if self.generation == Some(generation) && !is_due {
                    self.failures.settle(self.is_pending);
                    return;
                }
            }
            Err(error) => error!(error = %Chain(&error), "cannot watch the kernel's rules"),
        }
        let is_drift = self.generation.is_some();
        if is_due {
            self.kernel.forget();
        }
        let applied = self.kernel.enforce(&self.in_force.rules);
        if is_due {
            let ended = Instant::now();
            self.audit.record(ended, ended - began);
        }
        match applied {
            Ok(applied) => {
                self.failures.settle(self.is_pending);
                let changes = applied.changes;
                if !changes.is_empty() {
                    // The table may have been removed with the addresses of names in it.
                    self.services
                        .follow_rules(&self.in_force.rules, &self.state);
                }
                if is_drift && !changes.is_empty() {
                    let first = changes.first().map(ToString::to_string);
                    warn!(
                        changes = changes.len(),
                        first, "somebody changed the rules; repaired"
                    );
                }
                // That of the comparison: a change since then is seen by the next tick.
                self.generation = Some(applied.generation);
            }
            Err(error) => {
                error!(error = %Chain(&error), "the kernel's rules differ and cannot be repaired");
                self.generation = None;
                self.failures.add();
            }
        }
    }

    /// Takes over the current generation if the table differs from the known one by learned addresses
    /// only: they are state, and no drift.
    fn adopt_learned(&mut self, current: u32) {
        let Some(known) = self.kernel.known_generation() else {
            return;
        };
        if self.services.made_all_since(known, current) {
            self.kernel.adopt(current);
            if self.generation == Some(known) {
                self.generation = Some(current);
            }
        }
    }
}
