//! The seam between a simulated cluster and what it keeps: the same network, disks, clocks and faults
//! serve every state machine.

use std::fmt::Debug;
use std::future::Future;

use control_store::{StateMachine, Store};

use crate::node::{Shared, World};

/// A state machine, with what clients ask of a node that keeps it. The value itself is what clients
/// share.
pub(crate) trait Workload: Debug + Default + Sized + 'static {
    /// The state machine of every node.
    type Machine: StateMachine;
    /// A request to a node.
    type Request: Debug + Send + 'static;

    /// Answers one request at a node.
    fn answer(
        store: Store<Self::Machine>,
        request: Self::Request,
    ) -> impl Future<Output = ()> + Send + 'static;

    /// Starts what runs beside the store of a node as long as it does.
    fn observe(world: &Shared<Self>, id: u64, store: &Store<Self::Machine>);

    /// Looks at everything after each step.
    ///
    /// # Errors
    /// The invariant that does not hold.
    fn inspect(world: &World<Self>) -> Result<(), String>;

    /// A checksum of a state: equal states have equal ones.
    fn digest(state: &Self::Machine) -> Vec<u8>;
}
