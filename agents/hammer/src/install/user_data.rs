//! User data: its kind, the program of the image that carries it out, and the reasons to refuse it.
//!
//! User data for a program that the image lacks is refused with the reason, never left where
//! nobody reads it. The image's own Ignition carries out Ignition configs during the installation
//! ([`super::ignition`]); everything else is for cloud-init, at the first boot.

use proto_mesh::Install;
use serde_json::Value;

use super::features::ImageFeatures;
use super::item::{ItemState, SystemItem, file, item};
use super::rootfs::Owner;

/// Directory of cloud-init's NoCloud data source.
const SEED: &str = "/var/lib/cloud/seed/nocloud";
/// File that disables cloud-init.
const CLOUD_INIT_OFF: &str = "/etc/cloud/cloud-init.disabled";
/// Paths of Ignition in images: a directory for programs, or dracut's module.
pub(crate) const IGNITION_PATHS: [&str; 4] = [
    "/usr/bin/ignition",
    "/usr/sbin/ignition",
    "/usr/libexec/ignition",
    "/usr/lib/dracut/modules.d/30ignition/ignition",
];
/// Beginnings of data that only cloud-init understands.
const CLOUD_INIT_MARKS: [&str; 5] = [
    "#cloud-config",
    "#cloud-boothook",
    "#include",
    "#part-handler",
    "## template: jinja",
];

/// The way in which the user data of an order is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// The order has no user data.
    Nothing,
    /// By cloud-init at the first boot.
    CloudInit,
    /// By the program at this path of the image, during the installation.
    Ignition(&'static str),
    /// Written to /etc/metal/userdata, for programs of the image.
    Kept,
}

/// A reason to refuse user data. None of them is retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserDataError {
    /// An Ignition config, but the image with this id has no Ignition.
    #[error(
        "the user data is an Ignition config, and image {0:?} has no Ignition: take an image that \
         has it, or give user data for cloud-init"
    )]
    NoIgnition(String),
    /// Data for cloud-init, but the image with this id has no cloud-init.
    #[error(
        "the user data is for cloud-init, and image {0:?} has no cloud-init: take an image that \
         has it, or user data of another kind"
    )]
    NoCloudInit(String),
    /// An Ignition config that does not parse, with the position.
    #[error("the user data looks like an Ignition config, but it is not JSON: {0}")]
    NotJson(String),
    /// A source at this path of the config that is not a `data:` URL.
    #[error(
        "the Ignition config names a remote source at {0}, which is not fetched during the \
         installation: put it into the config as a data: URL, or have a unit fetch it at boot"
    )]
    Remote(String),
    /// A section of the config that the installation does not carry out.
    #[error(
        "the Ignition config has {0}, which the installation does not carry out: disks are laid \
         out by the filesystem layout, kernel arguments are those of the site"
    )]
    Unsupported(&'static str),
}

/// Decides how the user data of an order is carried out.
///
/// # Errors
/// When the image lacks the program for it, or the data has parts that cannot be carried out.
pub fn handling(install: &Install, features: &ImageFeatures) -> Result<Handling, UserDataError> {
    let data = install.userdata.as_slice();
    if data.is_empty() {
        return Ok(Handling::Nothing);
    }
    let image = || {
        let image = install.image.as_ref();
        image.map(|image| image.id.clone()).unwrap_or_default()
    };
    if let Some(config) = ignition_config(data)? {
        let program = features.ignition;
        let program = program.ok_or_else(|| UserDataError::NoIgnition(image()))?;
        check_sources(&config)?;
        return Ok(Handling::Ignition(program));
    }
    match features.cloud_init {
        true => Ok(Handling::CloudInit),
        false if is_for_cloud_init(data) => Err(UserDataError::NoCloudInit(image())),
        false => Ok(Handling::Kept),
    }
}

/// Parses an Ignition config: a JSON object with the member `ignition`, of any version. The image's
/// Ignition refuses versions that it does not know. `None` for other data.
fn ignition_config(data: &[u8]) -> Result<Option<Value>, UserDataError> {
    if !data.trim_ascii_start().starts_with(b"{") {
        return Ok(None);
    }
    match serde_json::from_slice::<Value>(data) {
        Ok(config) if config.get("ignition").is_some() => Ok(Some(config)),
        Ok(_) => Ok(None),
        // serde_json's message has a position and no part of the data, which may be secret.
        Err(error) if String::from_utf8_lossy(data).contains("\"ignition\"") => {
            Err(UserDataError::NotJson(error.to_string()))
        }
        Err(_) => Ok(None),
    }
}

fn is_for_cloud_init(data: &[u8]) -> bool {
    CLOUD_INIT_MARKS
        .iter()
        .any(|mark| data.trim_ascii_start().starts_with(mark.as_bytes()))
}

/// Checks that a config has no remote sources. Ignition runs without a network, because the machine
/// is still in the provisioning segment: a tenant's config must not send requests there.
///
/// # Errors
/// `Remote`, with the path of the first source that is not a `data:` URL.
pub(super) fn check_sources(config: &Value) -> Result<(), UserDataError> {
    match remote_source(config, "$") {
        Some(at) => Err(UserDataError::Remote(at)),
        None => Ok(()),
    }
}

fn remote_source(value: &Value, at: &str) -> Option<String> {
    match value {
        Value::Array(list) => list
            .iter()
            .enumerate()
            .find_map(|(n, value)| remote_source(value, &format!("{at}[{n}]"))),
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let at = format!("{at}.{name}");
            let source = value.as_str().filter(|_| name == "source");
            match source {
                Some(source) if !source.is_empty() && !is_data_url(source) => Some(at),
                _ => remote_source(value, &at),
            }
        }),
        _ => None,
    }
}

fn is_data_url(source: &str) -> bool {
    let scheme = source.get(..5).unwrap_or_default();
    // Schemes have no case (RFC 3986 §3.1).
    scheme.eq_ignore_ascii_case("data:")
}

/// Checks a config that Ignition has parsed and merged. Sections for stages other than `files` are
/// refused, because those stages do not run.
///
/// # Errors
/// `Unsupported` or `Remote`.
pub(super) fn check_merged(config: &Value) -> Result<(), UserDataError> {
    check_sources(config)?;
    for (pointer, name) in [
        ("/storage/disks", "storage.disks"),
        ("/storage/raid", "storage.raid"),
        ("/storage/filesystems", "storage.filesystems"),
        ("/storage/luks", "storage.luks"),
        ("/kernelArguments/shouldExist", "kernelArguments"),
        ("/kernelArguments/shouldNotExist", "kernelArguments"),
    ] {
        let list = config.pointer(pointer).and_then(Value::as_array);
        if list.is_some_and(|list| !list.is_empty()) {
            return Err(UserDataError::Unsupported(name));
        }
    }
    Ok(())
}

/// Items for the program that carries the data out. cloud-init is disabled if there is no data for
/// it, because its search for data sources delays the boot.
pub(super) fn items(
    install: &Install,
    has_cloud_init: bool,
    handling: Handling,
) -> Vec<SystemItem> {
    let secret = |path: &str, data: Vec<u8>| item(path, ItemState::File(Owner::root(0o600), data));
    let data = || install.userdata.clone();
    match handling {
        Handling::CloudInit => vec![
            // An image may come with cloud-init disabled. The data would then be ignored silently.
            item(CLOUD_INIT_OFF, ItemState::Absent),
            item(SEED, ItemState::Dir(Owner::root(0o700))),
            secret(&format!("{SEED}/user-data"), data()),
            file(
                &format!("{SEED}/meta-data"),
                0o600,
                format!(
                    // cloud-init carries the data out once per instance id.
                    "instance-id: {}\nlocal-hostname: {}\n",
                    install.allocation_uuid, install.hostname
                ),
            ),
            file(
                "/etc/cloud/cloud.cfg.d/99-metalmesh.cfg",
                0o644,
                // Unless it is disabled, cloud-init puts a network configuration of its own, DHCP on
                // the first card, beside the order's.
                "datasource_list: [ NoCloud, None ]\nnetwork:\n  config: disabled\n",
            ),
        ],
        Handling::Kept => vec![
            item("/etc/metal", ItemState::Dir(Owner::root(0o755))),
            secret("/etc/metal/userdata", data()),
        ],
        Handling::Nothing | Handling::Ignition(_) if has_cloud_init => {
            vec![file(CLOUD_INIT_OFF, 0o644, "")]
        }
        Handling::Nothing | Handling::Ignition(_) => Vec::new(),
    }
}

#[cfg(test)]
#[path = "user_data_tests.rs"]
mod tests;
