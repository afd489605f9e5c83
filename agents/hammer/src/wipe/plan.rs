//! The wipe methods of a disk, their order and their commands.

use strum::IntoStaticStr;

use crate::cmd::Cmd;
use crate::inventory::Disk;

/// The name in `DiskWipe.method` of a wipe that removes partition tables and signatures only.
pub(super) const METADATA: &str = "metadata";

/// A way to make data unreadable, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Method {
    /// NVMe Format with user data erase.
    NvmeFormat,
    /// ATA security erase, for flash: on rotating disks it takes hours and zeroes no better.
    AtaSecureErase,
    /// Discard of all blocks; the read-back requires zeros.
    Discard,
    /// Overwriting of every block that is not zero.
    Zero,
}

impl Method {
    /// The method's name in `DiskWipe.method`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The commands of the method. Empty for those that hammer carries out itself.
    #[must_use]
    pub fn commands(self, path: &str) -> Vec<Cmd> {
        // ATA requires a password before it erases; the erase removes it again. It is a constant,
        // not a secret: if the power fails in between, an operator can unlock the disk with it.
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

/// The state of a disk's ATA security feature set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtaSecurity {
    /// `true` if the disk has the feature.
    pub supported: bool,
    /// `true` if the firmware has disabled the feature until the next power cycle.
    pub frozen: bool,
    /// `true` if a password set earlier keeps the disk from being read.
    pub locked: bool,
}

impl AtaSecurity {
    /// Parses the output of `hdparm -I`. Without a security section nothing is supported.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let section = text.split("Security:").nth(1).unwrap_or_default();
        // hdparm negates with a word before it in the same line: "\tnot\tfrozen".
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

/// The methods to try on a disk, strongest first. Overwriting is always the last.
#[must_use]
pub fn methods(disk: &Disk, ata: AtaSecurity) -> Vec<Method> {
    let mut out = Vec::new();
    if disk.is_nvme() {
        out.push(Method::NvmeFormat);
    }
    // A frozen or locked disk refuses the command, and setting a password on one that then fails
    // to erase would make it unusable.
    if ata.supported && !ata.frozen && !ata.locked && !disk.rotational {
        out.push(Method::AtaSecureErase);
    }
    if disk.can_discard {
        out.push(Method::Discard);
    }
    out.push(Method::Zero);
    out
}

/// Stops the arrays and volumes that the kernel assembled from old signatures.
#[must_use]
pub fn release_commands() -> Vec<Cmd> {
    // From top to bottom: a volume group on an array keeps the array busy. Device-mapper's own
    // removal comes last, for volumes that LVM no longer knows by name. All are optional, since
    // most machines have none of them.
    vec![
        Cmd::new("vgchange", ["--activate", "n"]).optional(),
        Cmd::new("mdadm", ["--stop", "--scan"]).optional(),
        Cmd::new("dmsetup", ["remove_all", "--force"]).optional(),
    ]
}

/// Removes signatures of file systems, RAID and LVM of a partition.
pub(super) fn signature_commands(path: &str) -> Vec<Cmd> {
    vec![Cmd::new("wipefs", ["--all", "--force", path])]
}

/// Removes signatures of file systems, RAID and LVM, and both partition tables.
pub(super) fn metadata_commands(path: &str) -> Vec<Cmd> {
    // Optional: a disk that cannot be written fails again, with a record, at the methods. The
    // kernel must forget the old partitions, or they keep the whole disk busy.
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
        assert_eq!(METADATA, "metadata");
    }
}
