//! The asset tag of a machine's BMC, and what the machine shows of it when it joins.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agents_kit::NonceReader;
use bmc_ipmi::dcmi::AssetTag;

use crate::machine::Machine;
use crate::world::World;

/// By this hammer knows a nonce.
const PREFIX: &str = "mm-";

/// The tag: written over the network, read inside the machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tag(Arc<Mutex<AssetTag>>);

impl Tag {
    fn lock(&self) -> MutexGuard<'_, AssetTag> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn text(&self) -> String {
        self.lock().text()
    }

    pub(crate) fn set(&self, text: &str) {
        self.lock().set(text);
    }

    /// Obeys a command of DCMI: completion code and data.
    pub(crate) fn answer(&self, command: u8, data: &[u8]) -> (u8, Vec<u8>) {
        self.lock().answer(command, data)
    }
}

/// What a machine shows, and what it showed last.
pub(crate) struct Shown {
    pub(crate) reader: NonceReader,
    pub(crate) last: Arc<Mutex<String>>,
}

/// Shows what the machine's own BMC holds. When that is a nonce for the first time ever it shows
/// once what its neighbour's BMC holds, as somebody would who only says to be that machine.
pub(crate) fn shown(world: &World, machine: &Machine) -> Shown {
    let last = Arc::new(Mutex::new(String::new()));
    let (own, told) = (machine.tag.clone(), Arc::clone(&last));
    let number = machine.plan.number;
    let neighbour = world.machines.get((number + 1) % world.machines.len());
    let neighbour = neighbour.map(|it| it.tag.clone());
    let foreign = Mutex::new(neighbour.filter(|_| machine.is_first_join()));
    let reader: NonceReader = Arc::new(move || {
        let is_nonce = |text: &String| text.starts_with(PREFIX);
        let mut text = Some(own.text()).filter(is_nonce);
        let mut foreign = foreign.lock().unwrap_or_else(PoisonError::into_inner);
        if text.is_some()
            && let Some(foreign) = foreign.take()
        {
            text = Some(foreign.text()).filter(is_nonce);
        }
        let mut last = told.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone_from(text.as_ref().unwrap_or(&String::new()));
        Box::pin(std::future::ready(text))
    });
    Shown { reader, last }
}
