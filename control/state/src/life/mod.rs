//! What agents are told, derived from the tables: nothing here is stored.
//!
//! Each answer is the whole desired state. Its generation is [`Tables::revision`]: send again
//! when the content differs from what was sent last, with the revision of that moment.

pub(crate) mod bgp;
pub(crate) mod bmc;
pub(crate) mod boot;
pub(crate) mod fabric;
pub(crate) mod orders;
pub(crate) mod switch;

pub use crate::catalog::read::check_installable;
pub use crate::catalog::read::default_layout;
pub use crate::cluster::read::restored;
pub use crate::machine::read::machine_orders;
pub use crate::machine::read::port_vni;
pub use crate::machine::read::{
    BootTarget, boot_target, hammer_may_boot, hammer_may_run, is_left_alone,
};
pub use crate::machine::read::{
    KeptPort, RestoredMachine, kept_ports, restored_machines, silent_switches,
};
pub use crate::machine::read::{NONCE_LIFE_MS, NONCE_SETTLE_MS, Nonce};
pub use crate::machine::read::{bmc_reading_matters, event_is_heartbeat};
pub use crate::switch::read::switch_report_matters;
pub use bgp::{BgpFilter, bgp_filter};
pub use bmc::bmc_desired;
pub use boot::{MachineBoot, boot_desired};
pub use fabric::Fabric;
pub use orders::{ImageOrder, InstallOrder, MachineOrder, machine_order, numbered};
pub use switch::{PortIntent, SegmentIntent, SwitchDesired, port_traces};

#[cfg(doc)]
use crate::Tables;
