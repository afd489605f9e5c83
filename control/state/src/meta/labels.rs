//! Labels of objects: their changes, and the keys that have a meaning.

use std::collections::{BTreeMap, BTreeSet};

use proto_errors::Error;
use serde::{Deserialize, Serialize};

use crate::bounds::LABELS_MAX;

/// Labels: key-value pairs of users, and system labels under the domains `metalmesh.dev` and
/// `metal-stack.io`.
pub type Labels = BTreeMap<String, String>;

/// A change of labels (`UpdateLabels` of the contract).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelsUpdate {
    /// Replace all labels.
    Replace(Labels),
    /// Set some, remove others.
    Patch {
        /// To set.
        update: Labels,
        /// To remove; unknown keys are ignored.
        remove: Vec<String>,
    },
}

impl LabelsUpdate {
    /// The labels that the change sets.
    #[must_use]
    pub const fn stated(&self) -> &Labels {
        match self {
            Self::Replace(labels) | Self::Patch { update: labels, .. } => labels,
        }
    }

    /// Changes labels.
    ///
    /// # Errors
    /// `InvalidField` if there would be more than [`LABELS_MAX`], labels of the system not counted.
    pub fn apply(&self, labels: &mut Labels) -> Result<(), Error> {
        match self {
            Self::Replace(new) => labels.clone_from(new),
            Self::Patch { update, remove } => {
                let remove: BTreeSet<&String> = remove.iter().collect();
                labels.retain(|key, _| !remove.contains(key));
                labels.extend(update.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
        }
        let is_users = |key: &&String| !label::OF_THE_SYSTEM.contains(&key.as_str());
        if labels.keys().filter(is_users).count() <= LABELS_MAX {
            return Ok(());
        }
        let rule = format!("must have at most {LABELS_MAX} entries: remove some");
        Err(Error::invalid("labels", rule))
    }
}

/// Label keys with a meaning.
pub mod label {
    /// On a partition: VNI of the segment that unallocated machines boot in.
    pub const PROVISIONING_VNI: &str = "metalmesh.dev/provisioning-vni";
    /// On a partition: underlay addresses, comma separated, of exit routers; every tenant segment
    /// of the partition is flooded to them as well.
    pub const EXIT_VTEPS: &str = "metalmesh.dev/exit-vteps";
    /// On a partition: `true` if its machines join only with the nonce that their BMC holds.
    pub const REQUIRE_BMC_NONCE: &str = "metalmesh.dev/require-bmc-nonce";
    /// On a partition: number of confirmed cables that a machine needs to be on offer.
    pub const UPLINKS: &str = "metalmesh.dev/uplinks";
    /// On a partition: cooldown of a released address, prefix, VRF id or AS number, seconds. Until
    /// it ends, only the last owner gets the number.
    pub const NUMBER_COOLDOWN: &str = "metalmesh.dev/number-cooldown";
    /// On a partition: rate limit of its boot server, unknown machines per minute.
    pub const UNKNOWN_MACHINES: &str = "metalmesh.dev/unknown-machines-per-minute";
    /// On a partition: Ethernet MTU inside segments, bytes.
    pub const SEGMENT_MTU: &str = "metalmesh.dev/segment-mtu";
    /// On a partition: `static` (the default) if control computes the flood lists of its segments,
    /// `evpn` if its leaves route tenants in VRFs and learn each other's routes.
    pub const FABRIC: &str = "metalmesh.dev/fabric";
    /// On an image: `sha256:<hex>` or `sha512:<hex>` of the compressed file.
    pub const DIGEST: &str = "metalmesh.dev/digest";
    /// On an image: where control found the digest. `published` stands for a checksum file beside
    /// the image, `fetched` for the image itself, `fetched, md5 agrees` for the image and a
    /// published MD5 that it has. Absent when a caller gave the digest.
    pub const DIGEST_SOURCE: &str = "metalmesh.dev/digest-source";
    /// On an image: `routed` or `bridged`, the network of the systems installed from it. Absent
    /// means `bridged` in an EVPN partition, and static addresses on the boot NIC in others.
    pub const NETWORKING: &str = "metalmesh.dev/networking";
    /// On a partition: `active-backup` or `802.3ad`, the bond of bridged machines. Absent means
    /// `active-backup`.
    pub const BOND: &str = "metalmesh.dev/bond";
    /// On an address: the claim whose host has it. It stands for the machine, which is not shown.
    pub const CLAIM_ID: &str = "metalmesh.dev/claim";
    /// On an address: the machine that has it.
    pub const MACHINE_ID: &str = "machine.metal-stack.io/id";
    /// On a machine: its AS number while allocated.
    pub const MACHINE_ASN: &str = "machine.metal-stack.io/network.primary.asn";
    /// On a machine: its rack.
    pub const MACHINE_RACK: &str = "machine.metal-stack.io/rack";
    /// On a machine: the serial number of its chassis.
    pub const MACHINE_CHASSIS: &str = "machine.metal-stack.io/chassis";

    /// Prefix of the keys whose meaning this system defines.
    pub const RESERVED_PREFIX: &str = "metalmesh.dev/";
    /// The reserved keys that a partition may have. Others are refused: a mistyped one would look
    /// set and change nothing.
    pub const OF_A_PARTITION: [&str; 9] = [
        PROVISIONING_VNI,
        EXIT_VTEPS,
        REQUIRE_BMC_NONCE,
        UPLINKS,
        NUMBER_COOLDOWN,
        UNKNOWN_MACHINES,
        SEGMENT_MTU,
        FABRIC,
        BOND,
    ];
    /// Labels that the system sets; they do not count against [`LABELS_MAX`](crate::bounds::LABELS_MAX).
    pub const OF_THE_SYSTEM: [&str; 4] = [MACHINE_ID, MACHINE_ASN, MACHINE_RACK, MACHINE_CHASSIS];
}
