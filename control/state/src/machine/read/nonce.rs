//! Proof by a nonce that a machine is the one behind its BMC.
//!
//! Any host in the provisioning segment can claim a machine's UUID and address, but only the
//! machine itself can read what its BMC holds. Control knows the nonce's SHA-256 from the BMC
//! agent, as the result of the newest order for it: good once, for [`NONCE_LIFE_MS`].

use proto_errors::{Error, ErrorCode};
use proto_types::{Digest, MachineId, Timestamp};

use crate::catalog::entity::Partition;
use crate::machine::entity::{BmcAction, BmcOrder, Machine, OrderState};
use crate::machine::read::machine_orders;
use crate::tables::Tables;

/// Life of a nonce, milliseconds; a later join is refused. An hour, because a machine that reads it
/// in its firmware's tables needs another boot for that.
pub const NONCE_LIFE_MS: u64 = 3_600_000;
/// Time after the BMC got a nonce in which a machine that shows another one, or none, is told to
/// ask again, milliseconds. Afterwards it is refused.
pub const NONCE_SETTLE_MS: u64 = 120_000;

/// The nonce that a machine must return to join.
#[derive(Debug, Clone, Copy)]
pub struct Nonce<'a> {
    /// The machine.
    pub machine: MachineId,
    /// `true` if its partition demands a nonce.
    pub is_demanded: bool,
    /// The newest order for a nonce; older ones do not count. `None` means that there was none.
    pub order: Option<&'a BmcOrder>,
}

impl<'a> Nonce<'a> {
    /// The nonce of a machine, by the tables.
    pub fn of(tables: &'a Tables, machine: MachineId) -> Self {
        let found = tables.get::<Machine>(&machine);
        let partition = found.and_then(|machine| machine.partition.as_ref());
        let partition = partition.and_then(|id| tables.get::<Partition>(id));
        let is_demanded = partition.is_some_and(|partition| partition.requires_bmc_nonce());
        let order = machine_orders(tables, machine)
            .filter(|order| order.action == BmcAction::SetNonce)
            .last();
        Self {
            machine,
            is_demanded,
            order: order.map(AsRef::as_ref),
        }
    }

    /// `true` if the machine needs a new nonce to join until then.
    pub fn is_wanted(self, until: Timestamp) -> bool {
        // An open order serves: one for each boot request would let a stranger fill the BMC's
        // queue.
        let serves = self.order.is_some_and(|order| {
            let is_good = order.nonce.is_some() && !is_over(order, until);
            order.state == OrderState::Open || is_good
        });
        self.is_demanded && !serves
    }

    /// Judges what a machine shows, given as SHA-256.
    ///
    /// # Errors
    /// `NonceAwaited` if the machine may read the right one later by itself; otherwise
    /// `NonceRefused`.
    pub fn judge(self, shown: Option<&Digest>, now: Timestamp) -> Result<(), Error> {
        if !self.is_demanded {
            return Ok(());
        }
        let Some(order) = self.order else {
            return Err(self.awaited("was not given a nonce yet"));
        };
        // Only the newest order counts. Falling back to an older nonce would accept what the BMC
        // holds no longer.
        match order.state {
            OrderState::Open => return Err(self.awaited("is being given a nonce")),
            OrderState::Done => {}
            OrderState::Failed | OrderState::Expired | OrderState::Cancelled => {
                return Err(self.refused("BMC could not be given a nonce: its events say why"));
            }
        }
        let Some(nonce) = &order.nonce else {
            return Err(self.refused("nonce was used already; it gets another with its next boot"));
        };
        // Before the comparison: an old nonce that was read by somebody is worth nothing.
        if is_over(order, now) {
            return Err(self.refused("nonce has ended; it gets another with its next boot"));
        }
        match shown {
            Some(shown) if shown.same_as(nonce) => Ok(()),
            // The machine may have read the BMC before the agent wrote: not refused yet, or a race
            // would cost it another boot.
            _ if now.since_ms(since(order)) < NONCE_SETTLE_MS => {
                Err(self.awaited("has a new nonce that the machine does not show yet"))
            }
            Some(_) => Err(self.refused("nonce is not the one that was shown")),
            None => Err(self.refused("nonce was not shown")),
        }
    }

    fn awaited(self, what: &str) -> Error {
        let message = format!("the BMC of machine \"{}\" {what}", self.machine);
        Error::new(ErrorCode::NonceAwaited, message).object("machine", self.machine)
    }

    /// The refusal of a join. The caller may be a stranger: it is told nothing about the BMC.
    fn refused(self, what: &str) -> Error {
        let message = format!("machine \"{}\": its {what}", self.machine);
        Error::new(ErrorCode::NonceRefused, message).object("machine", self.machine)
    }
}

/// Time from which a nonce counts.
fn since(order: &BmcOrder) -> Timestamp {
    order.finished_at.unwrap_or(order.created_at)
}

/// `true` if the life of a nonce is over.
fn is_over(order: &BmcOrder, at: Timestamp) -> bool {
    at.since_ms(since(order)) >= NONCE_LIFE_MS
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::machine::entity::OrderPurpose;

    const NOW: Timestamp = Timestamp::from_ms(10_000_000);

    fn sha(byte: u8) -> Digest {
        Digest::sha256([byte; 32])
    }

    /// An order that ended so long ago, with this nonce.
    fn order(state: OrderState, ago_ms: u64, nonce: Option<u8>) -> BmcOrder {
        let at = Timestamp::from_ms(NOW.ms() - ago_ms);
        BmcOrder {
            id: Uuid::nil().into(),
            machine: MachineId::new(Uuid::from_u128(1)),
            partition: "lab".parse().unwrap(),
            action: BmcAction::SetNonce,
            purpose: OrderPurpose::Join,
            sequence: 1,
            state,
            created_at: at,
            deadline: at,
            finished_at: (state != OrderState::Open).then_some(at),
            error: None,
            trace: None,
            taken_by: None,
            nonce: nonce.map(sha),
            epoch: 0,
        }
    }

    #[test]
    fn who_joins_and_who_waits() {
        use ErrorCode::{NonceAwaited, NonceRefused};
        use OrderState::{Cancelled, Done, Expired, Failed, Open};
        let done = |ago_ms| Some(order(Done, ago_ms, Some(1)));
        let ended = |state| Some(order(state, 1, None));
        let (settled, over) = (NONCE_SETTLE_MS, NONCE_LIFE_MS);
        for (case, order, shown, expected) in [
            ("the right one", done(1), Some(1), Ok(())),
            ("later", done(over - 1), Some(1), Ok(())),
            ("too late", done(over), Some(1), Err(NonceRefused)),
            ("another", done(settled), Some(2), Err(NonceRefused)),
            ("another as yet", done(1), Some(2), Err(NonceAwaited)),
            ("none", done(settled), None, Err(NonceRefused)),
            ("none as yet", done(settled - 1), None, Err(NonceAwaited)),
            (
                "used",
                Some(order(Done, 1, None)),
                Some(1),
                Err(NonceRefused),
            ),
            ("never ordered", None, None, Err(NonceAwaited)),
            ("being set", ended(Open), Some(1), Err(NonceAwaited)),
            ("failed", ended(Failed), Some(1), Err(NonceRefused)),
            ("not answered", ended(Expired), None, Err(NonceRefused)),
            ("cancelled", ended(Cancelled), None, Err(NonceRefused)),
        ] {
            let nonce = Nonce {
                machine: MachineId::new(Uuid::from_u128(1)),
                is_demanded: true,
                order: order.as_ref(),
            };
            let judged = nonce.judge(shown.map(sha).as_ref(), NOW);
            assert_eq!(judged.map_err(|e| e.code), expected, "{case}");
            let free = Nonce {
                is_demanded: false,
                ..nonce
            };
            free.judge(None, NOW).unwrap();
        }
    }

    #[test]
    fn a_new_one_is_wanted_when_the_old_one_does_not_last() {
        use OrderState::{Done, Expired, Failed, Open};
        for (case, order, wanted) in [
            ("none", None, true),
            ("open", Some(order(Open, 1, None)), false),
            ("good", Some(order(Done, 1, Some(1))), false),
            (
                "ends",
                Some(order(Done, NONCE_LIFE_MS - 1000, Some(1))),
                true,
            ),
            ("used", Some(order(Done, 1, None)), true),
            ("failed", Some(order(Failed, 1, None)), true),
            ("not answered", Some(order(Expired, 1, None)), true),
        ] {
            let nonce = |is_demanded| Nonce {
                machine: MachineId::new(Uuid::from_u128(1)),
                is_demanded,
                order: order.as_ref(),
            };
            let until = NOW.plus_ms(1000);
            assert_eq!(nonce(true).is_wanted(until), wanted, "{case}");
            assert!(!nonce(false).is_wanted(until), "{case}");
        }
    }
}
