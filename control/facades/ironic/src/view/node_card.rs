//! Cards of a node, which are its ports.

use std::collections::BTreeSet;

use control_state::{Nic, NodePort};
use proto_types::MacAddr;
use uuid::{Builder, Uuid};

use super::stored;
use crate::access::SeenNode;

/// The first bytes of the id of a port that follows from its MAC address. Version and variant of a
/// UUIDv8 take some of their bits.
const ID_PREFIX: [u8; 10] = *b"metalmesh\0";

/// The field with which clients say that the machine boots over a card.
const PXE_ENABLED: &str = "pxe_enabled";

/// A card of a machine, or one that a client described.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeCard<'a> {
    /// The node.
    pub(crate) node: &'a SeenNode,
    /// The card's address.
    pub(crate) mac: MacAddr,
}

impl<'a> NodeCard<'a> {
    /// Its description by clients. `None` means that they said nothing.
    pub(crate) fn described(self) -> Option<&'a NodePort> {
        stored(self.node).ports.get(&self.mac)
    }

    /// The card as the machine registered it. `None` means that it did not.
    pub(crate) fn nic(self) -> Option<&'a Nic> {
        let mut nics = self.node.machine.hardware.nics.iter();
        nics.find(|nic| nic.mac == self.mac)
    }

    /// `true` if the machine has the card, whatever clients said about it.
    pub(crate) fn is_present(self) -> bool {
        self.nic().is_some() || self.has_booted()
    }

    /// `true` if the machine asked for a boot over it, and did not register since then.
    pub(crate) fn has_booted(self) -> bool {
        self.node.machine.boot_macs.contains(&self.mac)
    }

    /// `true` if the machine boots over it: as clients said, else as the machine did. A card that is only
    /// described boots, as in Ironic.
    pub(crate) fn boots(self) -> bool {
        let said = self
            .described()
            .and_then(|port| port.fields.get(PXE_ENABLED));
        match said {
            Some(text) => text == "true",
            None => self.nic().is_none_or(|nic| nic.boot) || self.has_booted(),
        }
    }

    /// The id of the port: the one that a client gave, or the one that follows from the address.
    pub(crate) fn id(self) -> Uuid {
        let given = self.described().and_then(|port| port.id);
        given.unwrap_or_else(|| port_id(self.mac))
    }

    /// The virtual interface that is on it.
    pub(crate) fn vif(self) -> Option<&'a str> {
        let mut vifs = stored(self.node).vifs.iter();
        let found = vifs.find(|(_, vif)| vif.mac == Some(self.mac));
        found.map(|(id, _)| id.as_str())
    }
}

/// The cards of a node, in the order of addresses.
pub(crate) fn cards(node: &SeenNode) -> impl Iterator<Item = NodeCard<'_>> {
    let mut macs: BTreeSet<MacAddr> = node.machine.macs();
    macs.extend(stored(node).ports.keys().copied());
    macs.into_iter().map(move |mac| NodeCard { node, mac })
}

/// The address that the id of a port follows from. `None` for other ids.
pub(crate) fn card_of_id(id: Uuid) -> Option<MacAddr> {
    let [.., a, b, c, d, e, f] = id.into_bytes();
    let mac = MacAddr([a, b, c, d, e, f]);
    (port_id(mac) == id).then_some(mac)
}

/// The id of the port of this address.
fn port_id(mac: MacAddr) -> Uuid {
    let [a, b, c, d, e, f, g, h, i, j] = ID_PREFIX;
    let [u, v, w, x, y, z] = mac.0;
    let bytes = [a, b, c, d, e, f, g, h, i, j, u, v, w, x, y, z];
    Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use control_state::{NodeContent, NodeVif};
    use serde_json::json;

    use super::*;

    fn mac(last: u8) -> MacAddr {
        MacAddr([0x52, 0x54, 0, 0, 1, last])
    }

    #[test]
    fn ids_follow_from_addresses() {
        let id = port_id(mac(7));
        assert_eq!(id.get_version_num(), 8);
        assert!(id.to_string().ends_with("525400000107"), "{id}");
        assert_eq!(card_of_id(id), Some(mac(7)));
        assert_eq!(card_of_id(Uuid::nil()), None);
        assert_ne!(port_id(mac(8)), id);
    }

    #[test]
    fn cards_are_those_of_the_machine_and_of_clients() {
        let given = Uuid::from_u128(1);
        let machine = json!({
            "hardware": {"nics": [{"name": "eth0", "mac": mac(1).to_string()}]},
            "boot_macs": [mac(2).to_string()],
        });
        let described = NodePort {
            id: Some(given),
            ..NodePort::default()
        };
        let vif = NodeVif {
            network: None,
            mac: Some(mac(1)),
        };
        let content = NodeContent {
            ports: [(mac(3), described)].into(),
            vifs: [("v".to_owned(), vif)].into(),
            ..NodeContent::default()
        };
        let node = SeenNode::of_json(machine, Some(content));
        let found: Vec<_> = cards(&node)
            .map(|card| (card.mac, card.id(), card.is_present(), card.vif()))
            .collect();
        let expected = [
            (mac(1), port_id(mac(1)), true, Some("v")),
            (mac(2), port_id(mac(2)), true, None),
            (mac(3), given, false, None),
        ];
        assert_eq!(found, expected);
    }
}
