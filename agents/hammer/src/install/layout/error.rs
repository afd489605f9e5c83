//! The reasons to refuse a layout.

use crate::install::selector::SelectorError;

/// A reason why a layout does not work on this machine. None of them is retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error(transparent)]
    Selector(#[from] SelectorError),
    #[error("{0:?} and {1:?} of the layout are the same disk")]
    SameDisk(String, String),
    #[error("{disk} has {have_mib} MiB, the layout needs {need_mib} MiB")]
    TooSmall {
        disk: String,
        have_mib: u64,
        need_mib: u64,
    },
    #[error("{disk}: partition {number} takes the rest but is not the last")]
    RestNotLast { disk: String, number: u32 },
    #[error("{disk}: partition number {number} is not between 1 and 128, or is used twice")]
    Number { disk: String, number: u32 },
    #[error("no device {0:?} in the layout")]
    Device(String),
    #[error("{0} is used twice in the layout")]
    UsedTwice(String),
    #[error("no file system for {0}")]
    Missing(&'static str),
    #[error("unknown format {format:?} of {device}")]
    Format { device: String, format: String },
    #[error("{path:?} cannot be used as a mount point")]
    Path { path: String },
    #[error("{path:?} is the mount point of two file systems")]
    SamePath { path: String },
    #[error("a BIOS machine needs a partition of type ef02 for the boot loader")]
    NoBiosBoot,
    #[error("a UEFI machine needs a vfat file system at /boot/efi")]
    NoEfi,
    #[error("{name:?} cannot be the name of {what}: {rule}")]
    Name {
        what: &'static str,
        name: String,
        rule: &'static str,
    },
    #[error("option {option:?} of {of} must be 1 to 128 printable characters without {without}")]
    Option {
        of: String,
        option: String,
        without: &'static str,
    },
    #[error("{array}: RAID level {level} is not supported; levels are 0 and 1")]
    Level { array: String, level: u32 },
    #[error("{array}: RAID 0 cannot have spares: it does not survive the loss of a device")]
    SpareOfStripes { array: String },
    #[error("{array}: {devices} devices, of which {spares} are spares, leave fewer than 2 active")]
    TooFewActive {
        array: String,
        devices: usize,
        spares: u32,
    },
    #[error("volume group {0:?} has no devices")]
    EmptyGroup(String),
    #[error("volume {volume:?} is in volume group {group:?}, which the layout does not have")]
    NoGroup { volume: String, group: String },
    #[error(
        "volume {volume:?} of type {kind} needs 2 devices, its volume group {group:?} has {have}"
    )]
    TooFewDevices {
        volume: String,
        group: String,
        kind: &'static str,
        have: usize,
    },
    #[error("volume {volume:?}: unknown type {kind:?}; types are linear, striped and raid1")]
    VolumeType { volume: String, kind: String },
    #[error("volume {volume:?} takes the rest of its volume group but is not its last")]
    VolumeRestNotLast { volume: String },
}
