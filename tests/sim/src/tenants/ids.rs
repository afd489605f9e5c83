//! Ids of the site. Objects of two kinds never share one, so that an id in a text says what it names.

use proto_types::{AllocationId, ClaimId, LeaseId, MachineId, ProjectId};
use tests_support::objects::id;

/// Number of the first machine's id.
const MACHINES: u128 = 0x1000;
/// Number of the first project's id.
const PROJECTS: u128 = 0x2000;
/// Number of the first id that tenants make, and how many each makes at most.
const FRESH: u128 = 0x1_0000_0000;
const FRESH_EACH: u128 = 0x100_0000;

/// The machine with this number.
pub(crate) fn machine(number: u64) -> MachineId {
    id(MACHINES + u128::from(number))
}

/// The number of a machine. `None` means that it is not of this site.
pub(crate) fn number_of(machine: MachineId) -> Option<u64> {
    let number = machine.uuid().as_u128().checked_sub(MACHINES)?;
    u64::try_from(number).ok()
}

/// The project of the tenant with this number.
pub(crate) fn project(number: u64) -> ProjectId {
    id(PROJECTS + u128::from(number))
}

/// New ids of one maker.
#[derive(Debug)]
pub(crate) struct Fresh {
    next: u128,
}

impl Fresh {
    /// The ids that maker `number` makes.
    pub(crate) fn of(number: u64) -> Self {
        Self {
            next: FRESH + u128::from(number) * FRESH_EACH,
        }
    }

    fn number(&mut self) -> u128 {
        self.next += 1;
        self.next
    }

    pub(crate) fn claim(&mut self) -> ClaimId {
        id(self.number())
    }

    pub(crate) fn allocation(&mut self) -> AllocationId {
        id(self.number())
    }

    pub(crate) fn lease(&mut self) -> LeaseId {
        id(self.number())
    }
}
