//! The desired state of every switch, kept up with the changes of the state.

use control_state::life::Fabric;
use control_store::{Revision, Store, StoreError};

/// The intents of all switches as of a revision.
#[derive(Debug, Default)]
pub(crate) struct SwitchIntents {
    pub(crate) fabric: Fabric,
    pub(crate) revision: Revision,
}

impl SwitchIntents {
    /// Derives all intents from the state that this node has applied.
    ///
    /// # Errors
    /// The store is shut down.
    pub(crate) fn read(store: &Store) -> Result<Self, StoreError> {
        store.read_local(|tables| Self {
            fabric: Fabric::of(tables),
            revision: Revision(tables.revision()),
        })
    }
}
