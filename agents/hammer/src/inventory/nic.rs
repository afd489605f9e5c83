//! Network interfaces with their bus addresses and LLDP neighbours.

use std::collections::BTreeMap;
use std::path::Path;

use proto_mesh::Nic;
use proto_mesh::nic::Neighbour;
use proto_wire_lldp::Frame;

use super::Sys;

pub(super) fn list(sys: &Sys, boot: &str, neighbours: &BTreeMap<String, Vec<Frame>>) -> Vec<Nic> {
    sys.names("sys/class/net")
        .into_iter()
        .filter(|n| sys.path(&format!("sys/class/net/{n}/device")).exists())
        .map(|name| {
            let heard = neighbours.get(&name).map(Vec::as_slice).unwrap_or_default();
            read(sys, name, boot, heard)
        })
        .collect()
}

fn read(sys: &Sys, name: String, boot: &str, heard: &[Frame]) -> Nic {
    let at = |file: &str| format!("sys/class/net/{name}/{file}");
    // The kernel gives -1 or an error (an empty text here) for a link without a carrier; both mean
    // "unknown", which is 0 on the wire.
    let speed = sys.number(&at("speed")).unwrap_or(0);
    let ids = [
        sys.text(&at("device/vendor")),
        sys.text(&at("device/device")),
    ];
    let driver = sys.link_name(&at("device/driver"));
    Nic {
        mac: sys.text(&at("address")).to_lowercase(),
        identifier: bus_address(sys, &name),
        vendor: ids[0].clone(),
        model: format!("{} {driver}", ids[1]).trim().to_string(),
        speed,
        neighbours: heard.iter().map(neighbour).collect(),
        boot: name == boot,
        name,
    }
}

fn neighbour(frame: &Frame) -> Neighbour {
    Neighbour {
        chassis_id: frame.chassis_id.clone(),
        port_id: frame.port_id.clone(),
        system_name: frame.system_name.clone(),
    }
}

/// The PCI address of an interface, also if it is on a bus below PCI, such as virtio. Interfaces
/// without one get their name on their own bus.
fn bus_address(sys: &Sys, name: &str) -> String {
    let path = sys.path(&format!("sys/class/net/{name}/device"));
    let real = path.canonicalize().unwrap_or(path);
    let parts = || real.iter().rev().filter_map(|p| p.to_str());
    let pci = parts()
        .take_while(|p| !p.starts_with("pci"))
        .find(|p| is_pci(p));
    pci.or_else(|| Path::new(&real).file_name().and_then(|n| n.to_str()))
        .unwrap_or_default()
        .to_string()
}

/// `true` for PCI addresses such as "0000:00:03.0".
fn is_pci(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() == 12 && bytes[4] == b':' && bytes[7] == b':' && bytes[10] == b'.'
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    #[test]
    fn a_virtio_card_with_a_neighbour() {
        let fake = Fake::new(&[
            (
                "sys/devices/pci0000:00/0000:00:03.0/virtio1/vendor",
                "0x1af4",
            ),
            (
                "sys/devices/pci0000:00/0000:00:03.0/virtio1/device",
                "0x0001",
            ),
            ("sys/class/net/eth0/address", "52:54:00:AB:01:01\n"),
            ("sys/class/net/eth0/speed", "-1\n"),
            ("sys/class/net/lo/address", "00:00:00:00:00:00\n"),
        ]);
        fake.link(
            "sys/class/net/eth0/device",
            "../../../devices/pci0000:00/0000:00:03.0/virtio1",
        );
        fake.link(
            "sys/devices/pci0000:00/0000:00:03.0/virtio1/driver",
            "../virtio_net",
        );
        let leaf = Frame {
            system_name: "leaf1".into(),
            port_id: "swp1".into(),
            ..Frame::default()
        };
        let nics = list(
            &fake.sys(),
            "eth0",
            &BTreeMap::from([("eth0".to_string(), vec![leaf])]),
        );
        assert_eq!(nics.len(), 1);
        let nic = &nics[0];
        assert_eq!(
            (nic.mac.as_str(), nic.identifier.as_str()),
            ("52:54:00:ab:01:01", "0000:00:03.0")
        );
        assert_eq!((nic.speed, nic.boot), (0, true));
        assert_eq!(nic.model, "0x0001 virtio_net");
        assert_eq!(nic.neighbours[0].system_name, "leaf1");
    }
}
