//! The stages of a machine: on offer, a tenant's, given back.

use proto_mesh::BmcAction;
use tokio::sync::broadcast;

use super::life::{Installed, Installer};
use super::machine::Machine;
use super::site::Site;

/// A machine with its installer while it is on offer.
pub(crate) struct Offered {
    pub(crate) machine: Machine,
    pub(crate) installer: Installer,
}

/// A machine of a tenant.
pub(crate) struct Rented {
    pub(crate) machine: Machine,
    pub(crate) system: Installed,
    /// Index of the tenant.
    pub(crate) tenant: usize,
}

/// A machine that was given back, and is off.
pub(crate) struct Released<'a> {
    site: &'a Site,
    pub(crate) machine: Machine,
    orders: broadcast::Receiver<(String, BmcAction)>,
}

impl<'a> Released<'a> {
    pub(crate) fn new(
        site: &'a Site,
        machine: Machine,
        orders: broadcast::Receiver<(String, BmcAction)>,
    ) -> Self {
        Self {
            site,
            machine,
            orders,
        }
    }

    /// Waits until the machine is switched on and on offer again.
    pub(crate) async fn again(mut self) -> Offered {
        let (site, machine) = (self.site, self.machine);
        site.ordered(&mut self.orders, &machine, BmcAction::PowerOn)
            .await;
        site.offer(machine).await
    }
}
