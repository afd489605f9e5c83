//! The configuration file as TOML.

use std::path::PathBuf;

use agents_update::mesh_agent::SelfUpdateSection;
use pixie_boot::BootFiles;
use serde::Deserialize;

use super::network_file::FileNetwork;
use super::relay::RelayConfig;

/// Default kernel command line of the installer: a serial console, and what slow virtual machines
/// need (see the project's lab).
const COMMANDLINE: &str = "console=ttyS0,115200n8 no_timer_check panic=30";

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default = "default_http_port")]
    pub(super) http_port: u16,
    pub(super) boot: FileBoot,
    pub(super) network: Vec<FileNetwork>,
    pub(super) relay: Option<RelayConfig>,
    pub(super) self_update: Option<SelfUpdateSection>,
}

/// The `[boot]` section.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileBoot {
    #[serde(default = "default_assets")]
    pub(super) assets: PathBuf,
    pub(super) kernel: PathBuf,
    pub(super) initrd: PathBuf,
    #[serde(default = "default_commandline")]
    pub(super) commandline: String,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) bios: Option<String>,
    pub(super) efi64: Option<String>,
    pub(super) efi32: Option<String>,
    pub(super) arm64: Option<String>,
    pub(super) http_efi64: Option<String>,
    pub(super) http_arm64: Option<String>,
    pub(super) http_uki: Option<String>,
}

fn default_http_port() -> u16 {
    8080
}

fn default_assets() -> PathBuf {
    PathBuf::from("/usr/lib/ipxe")
}

fn default_commandline() -> String {
    COMMANDLINE.into()
}

pub(super) fn boot_files(boot: &FileBoot) -> BootFiles {
    let default = BootFiles::default();
    let or = |own: &Option<String>, default: Option<String>| own.clone().or(default);
    BootFiles {
        bios: or(&boot.bios, default.bios),
        efi64: or(&boot.efi64, default.efi64),
        efi32: or(&boot.efi32, default.efi32),
        arm64: or(&boot.arm64, default.arm64),
        http_efi64: or(&boot.http_efi64, default.http_efi64),
        http_arm64: or(&boot.http_arm64, default.http_arm64),
        http_uki: or(&boot.http_uki, default.http_uki),
    }
}
