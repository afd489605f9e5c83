//! The network of installed systems, as labels of images and partitions choose it.

use proto_errors::Error;
use serde::{Deserialize, Serialize};

use crate::catalog::entity::Partition;
use crate::meta::{Labels, label};

/// The way in which an installed system takes part in its segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Networking {
    /// Static addresses on the boot NIC.
    #[default]
    Static,
    /// The machine announces its addresses by BGP to every leaf that it is cabled to.
    Routed,
    /// A bond over every cabled NIC, with the anycast gateway of the segment.
    Bridged,
}

/// The mode of a bridged machine's bond.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BondMode {
    /// One link carries the traffic, the others stand by. Needs nothing of the leaves.
    #[default]
    ActiveBackup,
    /// LACP over all links. Needs leaves that are one LACP partner (MLAG or EVPN multihoming).
    Lacp,
}

impl Networking {
    /// The mode that the labels of an image choose.
    ///
    /// # Errors
    /// `InvalidField` if the label has another text than `routed` or `bridged`.
    pub fn of_image(labels: &Labels) -> Result<Self, Error> {
        match labels.get(label::NETWORKING).map(String::as_str) {
            None => Ok(Self::Static),
            Some("routed") => Ok(Self::Routed),
            Some("bridged") => Ok(Self::Bridged),
            Some(_) => {
                let rule = "must be \"routed\" or \"bridged\"; without the label the system is \
                            bridged in an EVPN partition, and has static addresses on its boot \
                            NIC in others";
                Err(Error::invalid(label::NETWORKING, rule))
            }
        }
    }

    /// The network of a machine that is allocated in the partition. Where leaves speak EVPN a system
    /// without a routing daemon needs the anycast gateway of a bridged segment, so that an image
    /// without the label is bridged.
    #[must_use]
    pub fn in_partition(self, partition: &Partition) -> Self {
        match self {
            Self::Static if partition.has_evpn() => Self::Bridged,
            chosen => chosen,
        }
    }

    /// `true` for the default.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) const fn is_static(&self) -> bool {
        matches!(self, Self::Static)
    }

    /// The text in the order of an installation; empty for [`Networking::Static`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Static => "",
            Self::Routed => "routed",
            Self::Bridged => "bridged",
        }
    }
}

impl BondMode {
    /// The mode that the labels of a partition choose.
    ///
    /// # Errors
    /// `InvalidField` if the label has another text than `active-backup` or `802.3ad`.
    pub fn of_partition(labels: &Labels) -> Result<Self, Error> {
        match labels.get(label::BOND).map(String::as_str) {
            None | Some("active-backup") => Ok(Self::ActiveBackup),
            Some("802.3ad") => Ok(Self::Lacp),
            Some(_) => {
                let rule = "must be \"active-backup\" or \"802.3ad\"";
                Err(Error::invalid(label::BOND, rule))
            }
        }
    }

    /// The text in the order of an installation.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ActiveBackup => "active-backup",
            Self::Lacp => "802.3ad",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(key: &str, value: &str) -> Labels {
        Labels::from([(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn labels_choose_the_mode() {
        let image = |value| Networking::of_image(&labels(label::NETWORKING, value));
        assert_eq!(Networking::of_image(&Labels::new()).unwrap().as_str(), "");
        for known in ["routed", "bridged"] {
            assert_eq!(image(known).unwrap().as_str(), known);
        }
        for unknown in ["", "static", "Routed", "routed ", "routed\n", "l3"] {
            let text = image(unknown).unwrap_err().to_string();
            assert!(text.contains(label::NETWORKING), "{unknown:?}: {text}");
        }
        let partition = |value| BondMode::of_partition(&labels(label::BOND, value));
        let default = BondMode::of_partition(&Labels::new()).unwrap();
        assert_eq!(default.as_str(), "active-backup");
        for known in ["active-backup", "802.3ad"] {
            assert_eq!(partition(known).unwrap().as_str(), known);
        }
        assert!(partition("balance-rr").is_err());
    }
}
