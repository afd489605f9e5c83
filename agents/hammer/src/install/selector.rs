//! Disk selectors of a layout. Kernel names change from boot to boot, so a layout may select a disk
//! by its properties instead.

use crate::inventory::Disk;

/// A reason why no disk matches a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The machine has no fixed disk.
    #[error("this machine has no disk to install on")]
    NoDisk,
    /// No disk has this path or serial number.
    #[error("no disk {0:?} in this machine")]
    NotFound(String),
    /// The selector is of an unknown kind.
    #[error("unknown disk selector {0:?}; known are @first, @smallest and @serial=…")]
    Unknown(String),
}

/// The disk that `device` selects: a path, `@first` (by name), `@smallest`, or `@serial=…`.
/// Removable disks are selected only by path or serial number: an installation by default must
/// not overwrite an operator's USB stick.
///
/// # Errors
/// When no disk matches.
pub fn resolve<'a>(device: &str, disks: &'a [Disk]) -> Result<&'a Disk, SelectorError> {
    // The namespaces of an NVMe controller share its serial number. The first one is taken.
    let mut fixed = disks.iter().filter(|d| !d.removable);
    let not_found = || SelectorError::NotFound(device.to_string());
    match device {
        "@first" => fixed.next().ok_or(SelectorError::NoDisk),
        "@smallest" => fixed.min_by_key(|d| d.size).ok_or(SelectorError::NoDisk),
        _ => match device.strip_prefix('@') {
            Some(selector) => {
                let serial = selector.strip_prefix("serial=").filter(|s| !s.is_empty());
                let serial = serial.ok_or_else(|| SelectorError::Unknown(device.to_string()))?;
                disks
                    .iter()
                    .find(|d| d.serial == serial)
                    .ok_or_else(not_found)
            }
            None => disks
                .iter()
                .find(|d| d.path() == device)
                .ok_or_else(not_found),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        let disk = |name: &str, size, serial: &str, removable| Disk {
            name: name.into(),
            size,
            serial: serial.into(),
            removable,
            ..Disk::default()
        };
        let disks = [
            disk("sda", 1, "USB", true),
            disk("sdb", 300, "B", false),
            disk("vda", 100, "A", false),
        ];
        for (device, want) in [
            ("@first", Ok("sdb")),
            ("@smallest", Ok("vda")),
            ("@serial=A", Ok("vda")),
            ("@serial=USB", Ok("sda")),
            ("/dev/sda", Ok("sda")),
            (
                "@serial=C",
                Err(SelectorError::NotFound("@serial=C".into())),
            ),
            ("/dev/sdz", Err(SelectorError::NotFound("/dev/sdz".into()))),
            ("@serial=", Err(SelectorError::Unknown("@serial=".into()))),
            ("@largest", Err(SelectorError::Unknown("@largest".into()))),
        ] {
            assert_eq!(
                resolve(device, &disks).map(|d| d.name.as_str()),
                want,
                "{device}"
            );
        }
        assert_eq!(resolve("@first", &disks[..1]), Err(SelectorError::NoDisk));
    }
}
