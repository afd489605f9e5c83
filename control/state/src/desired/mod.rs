//! Desired state of agents, derived from the tables and never stored.
//!
//! Each function returns the whole desired state. Its generation is [`Tables::revision`]: the
//! caller sends it again when the content differs from the last one sent, with the current
//! revision.

mod announcer;
mod bgp;
mod bmc;
mod boot;
mod fabric;
mod filters;
mod firewall;
mod firewall_changes;
mod gateway;
mod network_filter;
mod network_plan;
mod orders;
mod port;
mod port_plan;
mod segment_key;
mod switch;
mod userdata;

pub use bgp::{BgpFilter, bgp_filter};
pub use bmc::{bmc_desired, epoch_era, machine_epoch};
pub use boot::{BootRelay, MachineBoot, boot_desired, boot_relays};
pub use fabric::Fabric;
pub use firewall::{
    FirewallIntent, FirewallNetworkIntent, RuleSetIntent, firewall_candidate, firewall_desired,
};
pub use firewall_changes::concerned_firewalls;
pub use gateway::{GatewayIntent, bridged_segment};
pub use network_filter::NetworkFilter;
pub use orders::{ImageOrder, InstallOrder, MachineOrder, machine_order, numbered};
pub use port::{PortFilter, PortIntent, PortPlace};
pub use port_plan::port_intents;
pub use switch::{SegmentIntent, SwitchDesired, VrfIntent, port_traces};
pub use userdata::{UserdataContent, userdata_contents};

#[cfg(doc)]
use crate::Tables;
pub use crate::catalog::read::{check_installable, default_layout};
pub use crate::cluster::read::restored;
pub use crate::machine::read::{
    BootTarget, KeptPort, NONCE_LIFE_MS, NONCE_SETTLE_MS, Nonce, RestoredMachine,
    bmc_reading_matters, boot_target, event_is_heartbeat, hammer_may_boot, hammer_may_run,
    is_left_alone, kept_ports, machine_orders, port_vni, restored_machines, silent_switches,
};
pub use crate::switch::read::switch_report_matters;
