//! Which method a disk gets, in which order, by which commands.

use strum::IntoStaticStr;

use crate::cmd::Cmd;
use crate::inventory::Disk;

/// A way to make data unreadable, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Method {
    /// NVMe Format with user data erase.
    NvmeFormat,
    /// ATA security erase, for flash: on rotating disks it takes hours and zeroes no better.
    AtaSecureErase,
    /// Discard of all blocks, where the device then reads zero.
    Discard,
    /// Every block that is not zero is overwritten.
    Zero,
}

impl Method {
    /// As `DiskWipe.method` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What to run; none for overwriting, which hammer does itself.
    #[must_use]
    pub fn commands(self, path: &str) -> Vec<Cmd> {
        // ATA wants a password to be set before it erases; the erase takes it away again.
        let ata =
            |option: &str| Cmd::new("hdparm", ["--user-master", "u", option, "metalmesh", path]);
        match self {
            Self::NvmeFormat => vec![Cmd::new("nvme", ["format", path, "--ses=1", "--force"])],
            Self::AtaSecureErase => vec![ata("--security-set-pass"), ata("--security-erase")],
            Self::Discard => vec![Cmd::new("blkdiscard", ["--force", path])],
            Self::Zero => Vec::new(),
        }
    }
}

/// What `hdparm -I` says of a disk's security feature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtaSecurity {
    pub supported: bool,
    /// Firmware locks the feature until the next power cycle.
    pub frozen: bool,
    pub locked: bool,
}

impl AtaSecurity {
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let section = text.split("Security:").nth(1).unwrap_or_default();
        // "not" stands before a word in the same line: "\tnot\tfrozen".
        let says = |word: &str| {
            section.lines().any(|l| {
                let words: Vec<&str> = l.split_whitespace().collect();
                words.first() == Some(&word)
            })
        };
        Self {
            supported: says("supported"),
            frozen: says("frozen"),
            locked: says("locked"),
        }
    }
}

/// What to try on a disk, in order.
#[must_use]
pub fn methods(disk: &Disk, ata: AtaSecurity) -> Vec<Method> {
    let mut out = Vec::new();
    if disk.is_nvme() {
        out.push(Method::NvmeFormat);
    }
    if ata.supported && !ata.frozen && !ata.locked && !disk.rotational {
        out.push(Method::AtaSecureErase);
    }
    if disk.can_discard {
        out.push(Method::Discard);
    }
    out.push(Method::Zero);
    out
}

/// Lets go of arrays and volumes that the kernel found by itself.
#[must_use]
pub fn release_commands() -> Vec<Cmd> {
    vec![
        Cmd::new("vgchange", ["--activate", "n"]).optional(),
        Cmd::new("mdadm", ["--stop", "--scan"]).optional(),
        Cmd::new("dmsetup", ["remove_all", "--force"]).optional(),
    ]
}

/// Removes signatures of file systems, RAID and LVM, and both partition tables.
pub(super) fn metadata_commands(path: &str) -> Vec<Cmd> {
    vec![
        Cmd::new("wipefs", ["--all", "--force", path]).optional(),
        Cmd::new("blockdev", ["--rereadpt", path]).optional(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disk_gets_the_strongest_method_first() {
        use Method::{AtaSecureErase, Discard, NvmeFormat, Zero};
        let disk = |name: &str, rotational, can_discard| Disk {
            name: name.into(),
            rotational,
            can_discard,
            ..Disk::default()
        };
        let ready = AtaSecurity {
            supported: true,
            ..AtaSecurity::default()
        };
        let frozen = AtaSecurity {
            frozen: true,
            ..ready
        };
        let none = AtaSecurity::default();
        for (disk, ata, want) in [
            (
                disk("nvme0n1", false, true),
                none,
                vec![NvmeFormat, Discard, Zero],
            ),
            (
                disk("sda", false, true),
                ready,
                vec![AtaSecureErase, Discard, Zero],
            ),
            (disk("sda", false, true), frozen, vec![Discard, Zero]),
            (disk("sda", true, false), ready, vec![Zero]),
            (disk("vda", true, true), none, vec![Discard, Zero]),
            (disk("vda", true, false), none, vec![Zero]),
        ] {
            assert_eq!(methods(&disk, ata), want, "{}", disk.name);
        }
    }

    #[test]
    fn hdparm_is_understood() {
        let text = "Commands/features:\n\t   *\tSMART\nSecurity: \n\tMaster password revision code = 65534\n\
                    \t\tsupported\n\tnot\tenabled\n\tnot\tlocked\n\t\tfrozen\n\tnot\texpired: security count\n";
        let want = AtaSecurity {
            supported: true,
            frozen: true,
            locked: false,
        };
        assert_eq!(AtaSecurity::parse(text), want);
        assert_eq!(
            AtaSecurity::parse("no such section"),
            AtaSecurity::default()
        );
    }

    #[test]
    fn names_in_reports_do_not_change() {
        let all = [
            Method::NvmeFormat,
            Method::AtaSecureErase,
            Method::Discard,
            Method::Zero,
        ];
        let names = ["nvme-format", "ata-secure-erase", "discard", "zero"];
        assert_eq!(all.map(Method::name), names);
    }
}
