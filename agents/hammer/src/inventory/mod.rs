//! The machine's inventory, read from sysfs and procfs.
//!
//! Every reader takes the directory that stands for `/`, so that tests can give it their own.

mod bmc;
mod cpu;
mod disk;
mod dmi;
mod nic;
mod nonce;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents_kit::NonceReader;
use proto_mesh::{Firmware, MachineRegisterRequest};
use proto_wire_lldp::Frame;

pub use bmc::Bmc;
pub use disk::Disk;

/// A view of a machine's sysfs and procfs: the running machine's, or a test's.
#[derive(Debug, Clone)]
pub struct Sys {
    root: PathBuf,
}

impl Default for Sys {
    fn default() -> Self {
        Self::at(Path::new("/"))
    }
}

impl Sys {
    /// A view with `root` as `/`.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The content of a small text file, trimmed. Empty if it is missing or unreadable.
    fn text(&self, path: &str) -> String {
        let bytes = fs::read(self.path(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim().to_string()
    }

    /// The number in a text file. `None` if it is missing or no number.
    fn number(&self, path: &str) -> Option<u64> {
        self.text(path).parse().ok()
    }

    /// The names in a directory, sorted. Empty if it is missing.
    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path))
            .into_iter()
            .flatten()
            .flatten();
        let mut names: Vec<String> = entries
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The last component of a link's target, such as the driver's name. Empty if it is no link.
    fn link_name(&self, path: &str) -> String {
        fs::read_link(self.path(path))
            .ok()
            .and_then(|t| t.file_name().map(|n| n.to_string_lossy().into_owned()))
            .unwrap_or_default()
    }

    /// SMBIOS UUID, lower case: the machine's id in control. Empty if the firmware has none.
    #[must_use]
    pub fn uuid(&self) -> String {
        self.text("sys/class/dmi/id/product_uuid").to_lowercase()
    }

    /// The kernel's random id of this boot.
    #[must_use]
    pub fn boot_id(&self) -> String {
        self.text("proc/sys/kernel/random/boot_id")
    }

    /// `true` if the machine was booted by UEFI, `false` if by a BIOS.
    #[must_use]
    pub fn is_uefi(&self) -> bool {
        self.path("sys/firmware/efi").exists()
    }

    /// The machine's disks with a medium, sorted by name.
    #[must_use]
    pub fn disks(&self) -> Vec<Disk> {
        disk::list(self)
    }

    /// Paths of the partitions of a disk that the kernel found.
    #[must_use]
    pub fn partitions(&self, disk: &Disk) -> Vec<String> {
        let folder = format!("sys/block/{}", disk.name);
        let names = self.names(&folder).into_iter();
        // Each partition is a folder with its number in it.
        let partitions =
            names.filter(|name| !self.text(&format!("{folder}/{name}/partition")).is_empty());
        partitions.map(|name| format!("/dev/{name}")).collect()
    }
}

/// Builds the request of `Register`.
#[must_use]
pub fn collect(
    sys: &Sys,
    boot_nic: &str,
    neighbours: &BTreeMap<String, Vec<Frame>>,
    bmc: &Bmc,
) -> MachineRegisterRequest {
    let firmware = if sys.is_uefi() {
        Firmware::Uefi
    } else {
        Firmware::Bios
    };
    MachineRegisterRequest {
        hammer_version: env!("CARGO_PKG_VERSION").to_string(),
        memory: cpu::memory(sys),
        cpus: cpu::list(sys),
        gpus: dmi::gpus(sys),
        disks: sys.disks().into_iter().map(Into::into).collect(),
        nics: nic::list(sys, boot_nic, neighbours),
        bios_vendor: sys.text("sys/class/dmi/id/bios_vendor"),
        bios_version: sys.text("sys/class/dmi/id/bios_version"),
        bios_date: sys.text("sys/class/dmi/id/bios_date"),
        firmware: firmware.into(),
        fru: Some(dmi::fru(sys)),
        bmc_address: bmc.address.clone(),
        bmc_mac: bmc.mac.clone(),
        bmc_version: bmc.version.clone(),
        boot_id: sys.boot_id(),
    }
}

/// Queries the BMC by the kernel's IPMI driver. Empty if there is no such device.
pub async fn bmc(sys: &Sys) -> Bmc {
    if sys.path("dev/ipmi0").exists() {
        bmc::ask().await
    } else {
        Bmc::default()
    }
}

/// A reader of the nonce that the BMC holds. Each call reads again, because the BMC agent may write
/// the nonce after the machine has booted.
#[must_use]
pub fn nonce_reader(sys: &Sys) -> NonceReader {
    let sys = sys.clone();
    Arc::new(move || {
        let sys = sys.clone();
        Box::pin(async move { nonce::read(&sys).await })
    })
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A machine made of files.
    pub(crate) struct Fake {
        pub(crate) dir: tempfile::TempDir,
    }

    impl Fake {
        pub(crate) fn new(files: &[(&str, &str)]) -> Self {
            let fake = Self {
                dir: tempfile::tempdir().unwrap(),
            };
            for (path, text) in files {
                fake.put(path, text);
            }
            fake
        }

        pub(crate) fn put(&self, path: &str, text: &str) {
            let path = self.dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        pub(crate) fn link(&self, path: &str, target: &str) {
            let path = self.dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, path).unwrap();
        }

        pub(crate) fn sys(&self) -> Sys {
            Sys::at(self.dir.path())
        }
    }

    #[test]
    fn a_machine_describes_itself() {
        let fake = Fake::new(&[
            (
                "sys/class/dmi/id/product_uuid",
                "6F1C0001-0000-4000-8000-000000000001\n",
            ),
            ("sys/class/dmi/id/bios_vendor", "SeaBIOS\n"),
            ("sys/class/dmi/id/product_serial", "SER-M1\n"),
            ("proc/sys/kernel/random/boot_id", "b007\n"),
        ]);
        let r = collect(&fake.sys(), "eth0", &BTreeMap::new(), &Bmc::default());
        assert_eq!(fake.sys().uuid(), "6f1c0001-0000-4000-8000-000000000001");
        assert_eq!(
            (r.bios_vendor.as_str(), r.boot_id.as_str()),
            ("SeaBIOS", "b007")
        );
        assert_eq!(r.firmware(), Firmware::Bios);
        assert_eq!(r.fru.unwrap().product_serial, "SER-M1");
        fake.put("sys/block/vda/size", "2048");
        fake.put("sys/block/vda/vda1/partition", "1");
        fake.put("sys/block/vda/queue/rotational", "1");
        let disks = fake.sys().disks();
        assert_eq!(fake.sys().partitions(&disks[0]), ["/dev/vda1"]);
        fake.put("sys/firmware/efi/fw_platform_size", "64");
        assert!(fake.sys().is_uefi());
    }
}
