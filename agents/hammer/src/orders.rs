//! Orders: the action for each, and the ledger of those carried out in this boot.
//!
//! The stream is level-triggered: after each reconnect control repeats the current order. An order
//! that was carried out is not carried out twice, so that a lost connection never wipes twice.
//! The ledger lives in memory: after a reset the machine registers with a new boot id, and control
//! decides anew.

use proto_mesh::MachineOrder;
use proto_mesh::machine_order::Order;

/// The level of a wipe that leaves the data.
const METADATA: &str = "metadata";

/// hammer's next action.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Wipe all disks and report.
    Wipe,
    /// Remove partition tables and signatures of all disks and report: the disks stay with their project.
    WipeMetadata,
    /// Repeat the wipe report: control has not received it.
    WipeAgainReported,
    /// Wait for the next order; the machine is on offer.
    Wait,
    /// Install and report.
    Install(Box<proto_mesh::Install>),
    /// Repeat the report of this installation.
    InstallAgainReported,
    /// Reboot.
    Reboot,
    /// Keep still for this reason, such as a disk that could not be wiped.
    Hold(String),
    /// An order of a kind that this version of hammer does not know; ignored.
    Nothing,
}

/// The highest binding of the machine to a claim that an order of this boot came from.
#[derive(Debug, Default)]
pub struct BindingFence {
    /// Era and epoch. `None` before the first order that tells them.
    highest: Option<(u64, u64)>,
}

impl BindingFence {
    /// `false` if the order is of an earlier binding than another one of this boot: it arrived too
    /// late. A control that tells no bindings has no era, and is obeyed.
    pub fn admits(&mut self, order: &MachineOrder) -> bool {
        let own = (order.era > 0).then_some((order.era, order.epoch));
        let is_late = own.is_some() && own < self.highest;
        self.highest = self.highest.max(own);
        !is_late
    }
}

/// The newest wipe and the newest installation carried out in this boot.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Term and generation of the order.
    wiped: Option<(u64, u64)>,
    /// Allocation and attempt.
    installed: Option<(String, u32)>,
}

impl Ledger {
    /// Maps an order to an action.
    #[must_use]
    pub fn decide(&self, order: &MachineOrder) -> Action {
        match &order.order {
            // A wipe has no id of its own. The fence (term, generation) names it: a later
            // generation means that control wants a further wipe.
            Some(Order::Wipe(_)) if self.wiped == Some((order.term, order.generation)) => {
                Action::WipeAgainReported
            }
            Some(Order::Wipe(wipe)) if wipe.level == METADATA => Action::WipeMetadata,
            // Also for a level that this version does not know: a full wipe is never too little.
            Some(Order::Wipe(_)) => Action::Wipe,
            Some(Order::Wait(_)) => Action::Wait,
            // An installation is named by allocation and attempt, not by the generation, which
            // also moves for reasons that must not reinstall a finished system.
            Some(Order::Install(install)) => {
                let known = self.installed.as_ref();
                let same = known.is_some_and(|(uuid, attempt)| {
                    *uuid == install.allocation_uuid && *attempt == install.attempt
                });
                if same {
                    Action::InstallAgainReported
                } else {
                    Action::Install(Box::new(install.clone()))
                }
            }
            Some(Order::Reboot(_)) => Action::Reboot,
            Some(Order::Hold(hold)) => Action::Hold(hold.reason.clone()),
            None => Action::Nothing,
        }
    }

    /// Notes a wipe that was carried out, successfully or not.
    pub fn wiped(&mut self, order: &MachineOrder) {
        self.wiped = Some((order.term, order.generation));
    }

    /// Notes an installation that was carried out, successfully or not.
    pub fn installed(&mut self, install: &proto_mesh::Install) {
        self.installed = Some((install.allocation_uuid.clone(), install.attempt));
    }
}

#[cfg(test)]
mod tests {
    use proto_mesh::{Install, machine_order};

    use super::*;

    fn order(generation: u64, order: Order) -> MachineOrder {
        MachineOrder {
            term: 1,
            generation,
            order: Some(order),
            ..MachineOrder::default()
        }
    }

    #[test]
    fn orders_of_an_earlier_binding_are_dropped() {
        let mut fence = BindingFence::default();
        for (what, era, epoch, is_taken) in [
            ("a control that tells none", 0, 0, true),
            ("never bound", 7, 0, true),
            ("bound", 7, 2, true),
            ("late", 7, 1, false),
            ("a control that tells none again", 0, 0, true),
            ("still bound", 7, 2, true),
            ("a restored control counts anew", 8, 1, true),
            ("of before the restore", 7, 3, false),
        ] {
            let order = MachineOrder {
                era,
                epoch,
                ..order(1, Order::Reboot(machine_order::Reboot {}))
            };
            assert_eq!(fence.admits(&order), is_taken, "{what}");
        }
    }

    fn install(attempt: u32) -> Install {
        Install {
            allocation_uuid: "a".into(),
            attempt,
            ..Install::default()
        }
    }

    #[test]
    fn nothing_is_done_twice() {
        let mut ledger = Ledger::default();
        let wipe = |g| order(g, Order::Wipe(machine_order::Wipe::default()));
        assert_eq!(ledger.decide(&wipe(1)), Action::Wipe);
        ledger.wiped(&wipe(1));
        assert_eq!(ledger.decide(&wipe(1)), Action::WipeAgainReported);
        assert_eq!(ledger.decide(&wipe(2)), Action::Wipe);

        let first = order(3, Order::Install(install(1)));
        assert!(matches!(ledger.decide(&first), Action::Install(_)));
        ledger.installed(&install(1));
        // The same attempt stays done when control's state moves on.
        assert_eq!(
            ledger.decide(&order(4, Order::Install(install(1)))),
            Action::InstallAgainReported
        );
        assert!(matches!(
            ledger.decide(&order(5, Order::Install(install(2)))),
            Action::Install(_)
        ));
    }

    #[test]
    fn only_the_level_metadata_leaves_data() {
        let wipe = |generation, level: &str| {
            let level = level.to_owned();
            order(generation, Order::Wipe(machine_order::Wipe { level }))
        };
        let mut ledger = Ledger::default();
        for (level, action) in [
            ("", Action::Wipe),
            ("metadata", Action::WipeMetadata),
            ("sanitize", Action::Wipe),
            ("of a later version", Action::Wipe),
        ] {
            assert_eq!(ledger.decide(&wipe(1, level)), action, "{level}");
        }
        // A full wipe that is ordered after it is carried out.
        ledger.wiped(&wipe(1, "metadata"));
        assert_eq!(ledger.decide(&wipe(2, "")), Action::Wipe);
    }

    #[test]
    fn the_rest_is_plain() {
        let ledger = Ledger::default();
        let hold = machine_order::Hold {
            reason: "disk".into(),
        };
        assert_eq!(
            ledger.decide(&order(1, Order::Hold(hold))),
            Action::Hold("disk".into())
        );
        assert_eq!(
            ledger.decide(&order(1, Order::Wait(machine_order::Wait {}))),
            Action::Wait
        );
        assert_eq!(
            ledger.decide(&order(1, Order::Reboot(machine_order::Reboot {}))),
            Action::Reboot
        );
        assert_eq!(ledger.decide(&MachineOrder::default()), Action::Nothing);
    }
}
