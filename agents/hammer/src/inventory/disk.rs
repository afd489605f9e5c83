//! Block devices.

use proto_mesh::BlockDevice;

use super::Sys;

/// Prefixes of kernel names that are not disks of the machine: memory, optical drives, floppies,
/// and devices built from disks.
const NOT_DISKS: [&str; 9] = [
    "dm-", "fd", "loop", "md", "nbd", "ram", "sr", "zram", "drbd",
];
/// Bytes per sector in sysfs, whatever the device's own block size is.
const SECTOR: u64 = 512;

/// A disk of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// Kernel name, "vda".
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Serial number. Empty if the device has none.
    pub serial: String,
    /// Model name. Empty if the device has none.
    pub model: String,
    /// `true` if the device says that it has spinning platters.
    pub rotational: bool,
    /// `true` if the medium is removable, such as a USB stick's.
    pub removable: bool,
    /// `true` if the device says that it can discard.
    pub can_discard: bool,
}

impl Disk {
    /// "/dev/vda".
    #[must_use]
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name)
    }

    /// Path of a partition: "/dev/vda1", "/dev/nvme0n1p1".
    #[must_use]
    pub fn partition(&self, number: u32) -> String {
        let separator = if self.name.ends_with(|c: char| c.is_ascii_digit()) {
            "p"
        } else {
            ""
        };
        format!("/dev/{}{separator}{number}", self.name)
    }

    /// `true` if the disk is an NVMe namespace.
    #[must_use]
    pub fn is_nvme(&self) -> bool {
        self.name.starts_with("nvme")
    }
}

impl From<Disk> for BlockDevice {
    fn from(disk: Disk) -> Self {
        Self {
            name: disk.path(),
            size: disk.size,
            serial: disk.serial,
            model: disk.model,
            rotational: disk.rotational,
            removable: disk.removable,
        }
    }
}

pub(super) fn list(sys: &Sys) -> Vec<Disk> {
    let mut disks: Vec<Disk> = sys
        .names("sys/block")
        .into_iter()
        .filter(|n| !NOT_DISKS.iter().any(|p| n.starts_with(p)) && !is_part_of_disk(n))
        .map(|name| read(sys, name))
        .filter(|d| d.size > 0)
        .collect();
    disks.sort_by_key(|d| order(&d.name));
    disks
}

/// `true` if the name is a part or another path of a disk that is listed anyway. eMMC shows its
/// boot and replay-protected areas as disks of their own; NVMe multipath shows each path once more.
fn is_part_of_disk(name: &str) -> bool {
    name.contains("boot")
        || name.contains("rpmb")
        || (name.starts_with("nvme") && name.contains('c'))
}

/// Sort key of names: sda … sdz come before sdaa.
fn order(name: &str) -> (usize, String) {
    (name.len(), name.to_string())
}

fn read(sys: &Sys, name: String) -> Disk {
    let at = |file: &str| format!("sys/block/{name}/{file}");
    let flag = |file: &str| sys.text(&at(file)) == "1";
    // virtio has the first file, NVMe and eMMC have the second. SCSI and SATA have neither.
    let serial = ["serial", "device/serial"].map(|f| sys.text(&at(f)));
    let serial = serial
        .into_iter()
        .find(|s| !s.is_empty())
        .unwrap_or_else(|| vpd_serial(sys, &name));
    Disk {
        // Disks of size 0 (empty card readers, failed devices) are filtered out by `list`.
        size: sys.number(&at("size")).unwrap_or(0) * SECTOR,
        serial,
        model: sys.text(&at("device/model")),
        rotational: flag("queue/rotational"),
        removable: flag("removable"),
        can_discard: sys.number(&at("queue/discard_max_bytes")).unwrap_or(0) > 0,
        name,
    }
}

/// Serial number of SCSI and SATA disks: page 0x80 of the vital product data, a header of four
/// bytes followed by text. Empty if there is no such page.
fn vpd_serial(sys: &Sys, name: &str) -> String {
    let page =
        std::fs::read(sys.path(&format!("sys/block/{name}/device/vpd_pg80"))).unwrap_or_default();
    String::from_utf8_lossy(page.get(4..).unwrap_or_default())
        .trim_matches(|c: char| c.is_whitespace() || c == '\0')
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    #[test]
    fn disks_with_what_identifies_them() {
        let fake = Fake::new(&[
            ("sys/block/vda/size", "20971520\n"),
            ("sys/block/vda/serial", "DISK-1\n"),
            ("sys/block/vda/queue/rotational", "1\n"),
            ("sys/block/vda/queue/discard_max_bytes", "2147483136\n"),
            ("sys/block/sdb/size", "100\n"),
            ("sys/block/sdb/device/model", "USB stick \n"),
            ("sys/block/sdb/device/vpd_pg80", "\0\u{1}\0\u{8}SATA-SN \0"),
            ("sys/block/sdb/removable", "1\n"),
            ("sys/block/nvme0n1/size", "100\n"),
            ("sys/block/nvme0n1/device/serial", "NVME-SN   \n"),
            ("sys/block/nvme0c0n1/size", "100\n"),
            ("sys/block/sr0/size", "100\n"),
            ("sys/block/sdc/size", "0\n"),
            ("sys/block/sdaa/size", "100\n"),
        ]);
        let disks = fake.sys().disks();
        let names: Vec<&str> = disks.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["sdb", "vda", "sdaa", "nvme0n1"]);
        assert_eq!(
            (disks[1].size, disks[1].serial.as_str()),
            (10 << 30, "DISK-1")
        );
        assert!(disks[1].rotational && disks[1].can_discard && !disks[1].removable);
        assert_eq!(
            (disks[0].serial.as_str(), disks[0].model.as_str()),
            ("SATA-SN", "USB stick")
        );
        assert!(disks[0].removable);
        assert_eq!(disks[3].serial, "NVME-SN");
    }

    #[test]
    fn partition_names() {
        let disk = |name: &str| Disk {
            name: name.into(),
            ..Disk::default()
        };
        assert_eq!(disk("vda").partition(2), "/dev/vda2");
        assert_eq!(disk("nvme0n1").partition(2), "/dev/nvme0n1p2");
        assert_eq!(disk("mmcblk0").partition(1), "/dev/mmcblk0p1");
    }
}
