//! Drivers: loads the module whose alias matches, for each device that the kernel found.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::mounts;

/// Rounds at most. A loaded driver makes new devices appear; the deepest chain is controller, bus,
/// device, and one more round sees that nothing is new.
const ROUNDS_MAX: usize = 4;
/// Time for a bus to find its devices before the next round.
const ROUND_PAUSE: Duration = Duration::from_millis(50);
/// Modules loaded by name, because no device has an alias for them.
const BY_NAME: [&str; 11] = [
    "af_packet",
    "dm_mod",
    "dmi_sysfs",
    "efivarfs",
    "ext4",
    "ipmi_devintf",
    "nls_ascii",
    "nls_cp437",
    "raid1",
    "sd_mod",
    "vfat",
];
/// Directory of all buses; their devices have the `modalias` files.
const BUSES: &str = "/sys/bus";

/// Loads drivers until no device has a new alias. Returns the number of aliases.
pub(super) fn load_drivers() -> usize {
    let mut asked: BTreeSet<String> = BTreeSet::new();
    // Each alias is looked up once. Without the set of known ones the loop would end only by its
    // bound, since the aliases of earlier rounds stay in sysfs.
    for _ in 0..ROUNDS_MAX {
        let new: Vec<String> = aliases(Path::new(BUSES))
            .into_iter()
            .filter(|a| asked.insert(a.clone()))
            .collect();
        if new.is_empty() {
            break;
        }
        modprobe(&new);
        thread::sleep(ROUND_PAUSE);
    }
    modprobe(&BY_NAME.map(str::to_string));
    // Only now: the file system's driver is one of those modules.
    if let Some(failure) = mounts::efi_variables() {
        super::say(&failure);
    }
    asked.len()
}

/// The aliases of all devices, also of those with a driver: another module may fit better, and
/// asking costs nothing.
fn aliases(buses: &Path) -> BTreeSet<String> {
    let list = |path: &Path| {
        fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path())
    };
    list(buses)
        .flat_map(|bus| list(&bus.join("devices")).collect::<Vec<_>>())
        .filter_map(|device| fs::read_to_string(device.join("modalias")).ok())
        .map(|text| text.trim().to_string())
        .filter(|alias| !alias.is_empty())
        .collect()
}

/// Runs modprobe once for all names, because each run reads the whole index. A missing module is
/// no failure here: most aliases have none, and the step that needs the device reports it.
fn modprobe(names: &[String]) {
    let done = Command::new("/sbin/modprobe")
        .args(["--all", "--quiet"])
        .args(names)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = done {
        super::say(&format!("modprobe: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_alias_once() {
        let dir = tempfile::tempdir().unwrap();
        for (device, alias) in [
            ("pci/devices/0", "pci:a\n"),
            ("pci/devices/1", "pci:a\n"),
            ("virtio/devices/0", "virtio:b\n"),
            ("acpi/devices/x", "\n"),
        ] {
            fs::create_dir_all(dir.path().join(device)).unwrap();
            fs::write(dir.path().join(device).join("modalias"), alias).unwrap();
        }
        let got: Vec<String> = aliases(dir.path()).into_iter().collect();
        assert_eq!(got, ["pci:a", "virtio:b"]);
    }
}
