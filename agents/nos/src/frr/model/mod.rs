//! Canonical values of what we own in FRR. They hold only what FRR accepts and shows again.

mod action;
mod as_path;
mod asn;
mod check;
mod community;
mod config;
mod family;
mod instance;
mod interface_name;
mod name;
mod peer;
mod peer_settings;
mod prefix;
mod route_map;
mod text;
mod vrf;

pub use action::Action;
pub use as_path::{AsPathKey, AsPathRule};
pub use asn::{Asn, RemoteAs};
pub use check::ConfigError;
pub use community::{CommunityKey, CommunityKind, CommunityRule};
pub use config::FrrConfig;
pub use family::{Family, PerFamily, PerIp};
pub use instance::{BgpInstance, Redistribute};
pub use interface_name::InterfaceName;
pub use name::{ObjectName, WordError};
pub use peer::{Neighbour, PeerGroup, Remote};
pub use peer_settings::{PeerFamily, PeerSettings, Timers};
pub use prefix::{PrefixEntry, PrefixListKey, PrefixRule};
pub use route_map::{RouteMapEntry, RouteMapKey};
pub use text::{AsPathRegex, CommunityRegex, Description};
pub use vrf::{BgpVrf, VrfName};
