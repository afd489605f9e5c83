//! Partitions: a room, a data centre, a failure domain.

use std::net::IpAddr;

use proto_types::{PartitionId, Vni};
use serde::{Deserialize, Serialize};

use crate::meta::{Meta, label};

/// VNI of the provisioning segment when the partition names none.
pub const PROVISIONING_VNI_DEFAULT: u32 = 4000;
/// Ethernet MTU of segments when the partition names none: fits into 1500 with VXLAN around it.
pub const SEGMENT_MTU_DEFAULT: u32 = 1450;

/// Default of how long a released number stays with its last owner, seconds: ten minutes, longer
/// than neighbour entries and routes of a failed reclaim live.
pub const NUMBER_COOLDOWN_DEFAULT_S: u32 = 600;
/// Upper bound of the cooldown, seconds: a day.
pub const NUMBER_COOLDOWN_MAX_S: u32 = 24 * 3600;
/// Default of how many unknown machines become known in a minute: three racks that are powered on
/// at once.
pub const UNKNOWN_MACHINES_DEFAULT: u32 = 120;
/// Upper bound of that setting; at the bound unknown machines are not counted.
pub const UNKNOWN_MACHINES_MAX: u32 = 100_000;

/// Kernel, initramfs and command line of hammer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BootConfiguration {
    /// URL of hammer's initramfs.
    pub image_url: String,
    /// URL of hammer's kernel.
    pub kernel_url: String,
    /// Arguments that are appended to the kernel command line. Empty means none.
    pub commandline: String,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// The key.
    pub id: PartitionId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Kernel, initramfs and command line of hammer.
    #[serde(default)]
    pub boot: BootConfiguration,
    /// Default name servers of machines, at most 3.
    #[serde(default)]
    pub dns_servers: Vec<IpAddr>,
    /// Default time servers of machines, addresses or names, at most 10.
    #[serde(default)]
    pub ntp_servers: Vec<String>,
    /// host:port of management services.
    #[serde(default)]
    pub mgmt_service_addresses: Vec<String>,
}

impl Partition {
    /// The segment that unallocated machines boot in.
    pub fn provisioning_vni(&self) -> Vni {
        let number = self.number(label::PROVISIONING_VNI, PROVISIONING_VNI_DEFAULT);
        // `apply` refuses a label outside the range of VNIs. A partition with such a label has no
        // segment: any other number could be the segment of a tenant.
        Vni::try_from(number).unwrap_or(Vni::NONE)
    }
    /// Ethernet MTU inside segments, bytes.
    pub fn segment_mtu(&self) -> u32 {
        self.number(label::SEGMENT_MTU, SEGMENT_MTU_DEFAULT)
    }
    /// Number of confirmed cables that its machines need to be on offer. `None` means that the
    /// partition demands none.
    pub fn uplinks(&self) -> Option<usize> {
        self.meta.labels.get(label::UPLINKS)?.parse().ok()
    }
    /// Cooldown of a released number, in which only its last owner gets it, milliseconds.
    pub fn number_cooldown_ms(&self) -> u64 {
        let seconds = self.number(label::NUMBER_COOLDOWN, NUMBER_COOLDOWN_DEFAULT_S);
        u64::from(seconds.min(NUMBER_COOLDOWN_MAX_S)) * 1000
    }
    /// Rate limit of unknown machines that become known, per minute.
    pub fn unknown_machines_per_minute(&self) -> usize {
        let number = self.number(label::UNKNOWN_MACHINES, UNKNOWN_MACHINES_DEFAULT);
        usize::try_from(number).unwrap_or(usize::MAX)
    }
    /// `true` if its machines join only with the nonce that their BMC holds. Default: `false`.
    pub fn requires_bmc_nonce(&self) -> bool {
        let text = self.meta.labels.get(label::REQUIRE_BMC_NONCE);
        text.is_some_and(|text| text == "true")
    }
    /// `true` if its leaves route tenants in VRFs and find each other by EVPN. Default: `false`.
    pub fn has_evpn(&self) -> bool {
        let text = self.meta.labels.get(label::FABRIC);
        text.is_some_and(|text| text == "evpn")
    }
    /// Underlay addresses of exit routers.
    pub fn exit_vteps(&self) -> Vec<IpAddr> {
        let text = self
            .meta
            .labels
            .get(label::EXIT_VTEPS)
            .map_or("", String::as_str);
        text.split(',')
            .filter_map(|part| part.trim().parse().ok())
            .collect()
    }
    fn number(&self, label: &str, default: u32) -> u32 {
        self.meta
            .labels
            .get(label)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    }
}
