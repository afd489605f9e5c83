//! Data from the firmware's SMBIOS tables and from the PCI bus.

use proto_mesh::Gpu;
use proto_mesh::machine_register_request::Fru;

use super::Sys;

/// PCI class 0x03: display controllers. 0x0302 are those without a screen.
const PCI_CLASS_DISPLAY: &str = "0x03";
/// Vendors of GPUs. The VGA controllers of BMCs (Matrox, ASPEED) are not GPUs.
const GPU_VENDORS: [(&str, &str); 3] =
    [("0x10de", "NVIDIA"), ("0x1002", "AMD"), ("0x8086", "Intel")];

pub(super) fn fru(sys: &Sys) -> Fru {
    let id = |name: &str| sys.text(&format!("sys/class/dmi/id/{name}"));
    Fru {
        product_manufacturer: id("sys_vendor"),
        product_name: id("product_name"),
        product_serial: id("product_serial"),
        board_manufacturer: id("board_vendor"),
        board_serial: id("board_serial"),
        chassis_serial: id("chassis_serial"),
    }
}

/// GPUs, with the PCI device id as model: the initramfs has no table of names.
pub(super) fn gpus(sys: &Sys) -> Vec<Gpu> {
    let read = |device: &str, file: &str| sys.text(&format!("sys/bus/pci/devices/{device}/{file}"));
    sys.names("sys/bus/pci/devices")
        .iter()
        .filter(|d| read(d, "class").starts_with(PCI_CLASS_DISPLAY))
        .filter_map(|d| {
            let id = read(d, "vendor");
            let (_, vendor) = GPU_VENDORS.iter().find(|(known, _)| *known == id)?;
            Some(Gpu {
                vendor: (*vendor).to_string(),
                model: read(d, "device"),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    #[test]
    fn a_bmc_has_no_gpu() {
        let fake = Fake::new(&[
            ("sys/bus/pci/devices/0000:01:00.0/class", "0x030200"),
            ("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de"),
            ("sys/bus/pci/devices/0000:01:00.0/device", "0x2330"),
            ("sys/bus/pci/devices/0000:02:00.0/class", "0x030000"),
            ("sys/bus/pci/devices/0000:02:00.0/vendor", "0x1a03"),
            ("sys/bus/pci/devices/0000:03:00.0/class", "0x020000"),
            ("sys/bus/pci/devices/0000:03:00.0/vendor", "0x8086"),
        ]);
        let gpus = gpus(&fake.sys());
        assert_eq!(
            gpus,
            [Gpu {
                vendor: "NVIDIA".into(),
                model: "0x2330".into()
            }]
        );
    }
}
