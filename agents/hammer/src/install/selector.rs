//! Which disk a layout means: kernel names change from boot to boot, so it may say what it wants.

use crate::inventory::Disk;

/// Why no disk fits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    #[error("this machine has no disk to install on")]
    NoDisk,
    #[error("no disk {0:?} in this machine")]
    NotFound(String),
    #[error("unknown disk selector {0:?}; known are @first, @smallest and @serial=…")]
    Unknown(String),
}

/// The disk that `device` means: a path, `@first` (by name), `@smallest`, or `@serial=…`.
/// Removable ones are taken only by path or serial number.
///
/// # Errors
/// When no disk fits.
pub fn resolve<'a>(device: &str, disks: &'a [Disk]) -> Result<&'a Disk, SelectorError> {
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
