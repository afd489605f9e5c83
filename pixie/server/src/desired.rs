//! The desired state of pixie.

use pixie_boot::{InstallerSource, Machines, Relays};

/// The desired state from control: the boot target of each machine, and the installer.
#[derive(Debug, Clone, Default)]
pub struct Desired {
    pub generation: u64,
    /// Source of the installer's kernel and image.
    pub installer: InstallerSource,
    /// The partition's kernel command line for the installer: [`InstallerSource::commandline`].
    pub commandline: String,
    /// Addresses of control for machines, `host:port`.
    pub control: Vec<String>,
    pub machines: Machines,
    /// The switches of the partition, whose relays may pass requests on.
    pub relays: Relays,
}
