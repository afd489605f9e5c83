//! What the machine is made of, read from sysfs and procfs.
//!
//! Every reader takes the directory that stands for `/`, so that tests give it one of their own.

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

/// The running machine, or a test's picture of one.
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
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A small text file, trimmed; empty when it is not there.
    fn text(&self, path: &str) -> String {
        let bytes = fs::read(self.path(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim().to_string()
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.text(path).parse().ok()
    }

    /// Names in a directory, sorted.
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

    /// Last part of where a link leads, such as the driver's name.
    fn link_name(&self, path: &str) -> String {
        fs::read_link(self.path(path))
            .ok()
            .and_then(|t| t.file_name().map(|n| n.to_string_lossy().into_owned()))
            .unwrap_or_default()
    }

    /// SMBIOS UUID, lower case; the machine's name everywhere.
    #[must_use]
    pub fn uuid(&self) -> String {
        self.text("sys/class/dmi/id/product_uuid").to_lowercase()
    }

    /// A fresh number each boot.
    #[must_use]
    pub fn boot_id(&self) -> String {
        self.text("proc/sys/kernel/random/boot_id")
    }

    #[must_use]
    pub fn is_uefi(&self) -> bool {
        self.path("sys/firmware/efi").exists()
    }

    /// Disks that an operating system could go on, by name.
    #[must_use]
    pub fn disks(&self) -> Vec<Disk> {
        disk::list(self)
    }
}

/// Everything that `Register` wants to know.
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

/// Asks the BMC by the kernel's IPMI driver, where there is one.
pub async fn bmc(sys: &Sys) -> Bmc {
    if sys.path("dev/ipmi0").exists() {
        bmc::ask().await
    } else {
        Bmc::default()
    }
}

/// Looks each time anew for the nonce that the BMC holds.
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
        fake.put("sys/firmware/efi/fw_platform_size", "64");
        assert!(fake.sys().is_uefi());
    }
}
