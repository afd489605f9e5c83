//! The installation: from an order to a disk that boots.
//!
//! Steps in order, each with a name that a failure reports. Whatever fails, the disk is left
//! without partition table and signatures: a half-installed system never boots.

pub mod boot;
mod bounded;
pub mod config;
pub mod ignition;
pub mod image;
pub mod layout;
mod mount;
pub mod network;
pub mod rootfs;
pub mod selector;
pub mod untar;
pub mod user_data;
pub mod users;

use std::fmt;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use agents_kit::state_dir::StoredSession;
use agents_kit::{Agent, Credential, Key, StateDir};
use anyhow::{Context, Result};
use proto_mesh::{Install, MachineServiceClient, ProjectIdentityRequest, ProjectIdentityResponse};

use crate::cmd::run_all;
use crate::inventory::Sys;
use crate::net::http::Http;
use boot::TARGET;
use config::{Features, Input, What};
use image::ImageError;
use layout::Plan;
use rootfs::{Owner, Root};
use user_data::Handling;
use users::Accounts;

/// Longest that making partitions, arrays and file systems takes.
const DISK_LIMIT: Duration = Duration::from_secs(600);
const GRUB_LIMIT: Duration = Duration::from_secs(300);
const DEVICE_LIMIT: Duration = Duration::from_secs(10);
/// Where the identity of the installed system is made before it is copied; in memory.
const IDENTITY_DIR: &str = "/run/metalmesh/installed";
const OWN_BINARY: &str = "/proc/self/exe";
const CONSOLE_PASSWORD_LEN: usize = 16;

/// Why an installation failed.
#[derive(Debug)]
pub struct StepError {
    pub step: &'static str,
    /// Whether another try may help.
    pub retryable: bool,
    pub error: anyhow::Error,
}

/// What a good installation has to report.
pub struct Installed {
    pub console_password: String,
    pub primary_disk: String,
}

impl fmt::Debug for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disk = &self.primary_disk;
        f.debug_struct("Installed")
            .field("primary_disk", disk)
            .finish_non_exhaustive()
    }
}

/// What an installation works with.
#[derive(Debug)]
pub struct Tools<'a> {
    pub sys: &'a Sys,
    pub http: &'a Http,
    pub agent: &'a Agent,
    /// MAC address of the boot interface.
    pub mac: &'a str,
    /// Arguments of this kernel that the installed one inherits.
    pub inherited: &'a [String],
}

/// Installs; on failure the disks are unbootable again.
///
/// # Errors
/// The step that failed.
pub async fn run(cx: &Tools<'_>, order: &Install) -> Result<Installed, StepError> {
    let uefi = cx.sys.is_uefi();
    let fixed = |step, error: anyhow::Error| StepError {
        step,
        retryable: false,
        error,
    };
    let wanted = order.layout.clone().unwrap_or_default();
    let plan = layout::plan(&wanted, &cx.sys.disks(), uefi, uuid::Uuid::new_v4)
        .map_err(|e| fixed("layout", e.into()))?;
    let done = steps(cx, order, &plan, uefi).await;
    if done.is_err() {
        clean(&plan).await;
    }
    done
}

async fn steps(
    cx: &Tools<'_>,
    order: &Install,
    plan: &Plan,
    uefi: bool,
) -> Result<Installed, StepError> {
    step("partition", true, partition(plan)).await?;
    step("mount", true, async {
        mount::all(&plan.filesystems, Path::new(TARGET))
    })
    .await?;
    fetch(cx, order).await?;
    let carried_out = async {
        let features = features(&target()?);
        Ok((features, user_data::handling(order, &features)?))
    };
    let (features, handling) = step("userdata", false, carried_out).await?;
    let (hash, console_password) = step("password", false, async { password() }).await?;
    let configured = async { configure(cx, order, plan, &hash, features, handling) };
    step("configure", false, configured).await?;
    step("bootloader", true, bootloader(cx, plan, uefi)).await?;
    // Between boot loader and identity: grub-install follows links in /boot, so it must not meet
    // those of a tenant, and the key of the installed system must not be there for them.
    if let Handling::Ignition(program) = handling {
        step("userdata", false, ignition::run(program, &order.userdata)).await?;
    }
    step("identity", true, identity(cx, order)).await?;
    step("sync", true, async { mount::none(Path::new(TARGET)) }).await?;
    Ok(Installed {
        console_password,
        primary_disk: plan.primary_disk.clone(),
    })
}

/// Runs a step, tells how long it took, and names it in its failure.
async fn step<T>(
    name: &'static str,
    retryable: bool,
    work: impl Future<Output = Result<T>>,
) -> Result<T, StepError> {
    let started = Instant::now();
    let done = work.await;
    let seconds = format!("{:.1}", started.elapsed().as_secs_f32());
    match done {
        Ok(value) => {
            tracing::info!(seconds, "install: {name}");
            Ok(value)
        }
        Err(error) => Err(StepError {
            step: name,
            retryable,
            error,
        }),
    }
}

async fn partition(plan: &Plan) -> Result<()> {
    for stage in &plan.stages {
        run_all(&stage.commands, DISK_LIMIT).await?;
        for device in &stage.creates {
            wait_for(device).await?;
        }
    }
    Ok(())
}

async fn wait_for(device: &str) -> Result<()> {
    let deadline = Instant::now() + DEVICE_LIMIT;
    while !Path::new(device).exists() {
        anyhow::ensure!(Instant::now() < deadline, "{device} does not appear");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn fetch(cx: &Tools<'_>, order: &Install) -> Result<(), StepError> {
    let image = order.image.clone().unwrap_or_default();
    let mut retryable = true;
    let work = async {
        let root = target()?;
        let done = image::install(cx.http, &image, root)
            .await
            .map_err(|e: ImageError| {
                retryable = e.is_retryable();
                anyhow::Error::new(e)
            })?;
        tracing::info!(
            files = done.entries,
            mib = done.bytes >> 20,
            "image unpacked"
        );
        Ok(())
    };
    let done = step("image", true, work).await;
    done.map_err(|e| StepError { retryable, ..e })
}

/// A random password for the console, and its hash.
fn password() -> Result<(String, String)> {
    use sha_crypt::{Algorithm, Params, PasswordHasher, ShaCrypt};
    let password = random_text(CONSOLE_PASSWORD_LEN);
    let salt: [u8; 12] = rand::random();
    let hasher = ShaCrypt::new(Algorithm::Sha512Crypt, Params::RECOMMENDED);
    let hash = hasher
        .hash_password_with_salt(password.as_bytes(), &salt)
        .map_err(|e| anyhow::anyhow!("cannot hash the console password: {e}"))?;
    Ok((hash.to_string(), password))
}

/// Letters and digits that are not mistaken for each other.
fn random_text(len: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    (0..len)
        .map(|_| char::from(LETTERS[rand::random_range(0..LETTERS.len())]))
        .collect()
}

fn target() -> Result<Root> {
    Ok(Root::open(Path::new(TARGET))?)
}

fn configure(
    cx: &Tools<'_>,
    order: &Install,
    plan: &Plan,
    hash: &str,
    features: Features,
    handling: Handling,
) -> Result<()> {
    let root = target()?;
    let accounts = Accounts {
        passwd: root.text("etc/passwd"),
        shadow: root.text("etc/shadow"),
        group: root.text("etc/group"),
        gshadow: root.text("etc/gshadow"),
        ..Accounts::default()
    };
    let accounts = config::accounts_with_user(accounts, hash, root.exists("bin/bash"));
    let input = Input {
        install: order,
        mac: cx.mac,
        filesystems: &plan.filesystems,
        features,
        handling,
        accounts: &accounts,
        ssh_names: &root.names("etc/ssh"),
    };
    for item in config::items(&input)? {
        put(&root, &item).with_context(|| item.path.clone())?;
    }
    let agent = std::fs::read(OWN_BINARY)?;
    root.write(Path::new(config::AGENT), Owner::root(0o755), &agent)
        .context(config::AGENT)
}

fn features(root: &Root) -> Features {
    let unit = |name: &str| root.exists(&format!("lib/systemd/system/{name}"));
    Features {
        cloud_init: root.exists("usr/bin/cloud-init"),
        networkd: unit("systemd-networkd.service"),
        resolved: unit("systemd-resolved.service"),
        timesyncd: unit("systemd-timesyncd.service"),
        chrony: match (unit("chrony.service"), unit("chronyd.service")) {
            // Debian's name, and Fedora's.
            (true, _) => Some("/etc/chrony/chrony.conf"),
            (_, true) => Some("/etc/chrony.conf"),
            _ => None,
        },
        sudo: root.exists("usr/bin/sudo"),
        ignition: user_data::IGNITION_PATHS
            .into_iter()
            .find(|path| root.exists(path)),
    }
}

fn put(root: &Root, item: &config::Item) -> io::Result<()> {
    let path = Path::new(&item.path);
    match &item.what {
        What::File(owner, bytes) => root.write(path, *owner, bytes),
        What::Dir(owner) => root.make_dir(path, *owner).map(drop),
        What::Link(target) => root.symlink(path, target),
        What::Absent => root.remove(&item.path),
    }
}

/// A key for the installed system, made here, and control's certificate for it.
async fn identity(cx: &Tools<'_>, order: &Install) -> Result<()> {
    let key = Key::generate()?;
    let client: MachineServiceClient = cx.agent.client();
    let csr = key.request()?;
    let answer: ProjectIdentityResponse = crate::calls::persistent("ProjectIdentity", || {
        client.project_identity(ProjectIdentityRequest { csr: csr.clone() })
    })
    .await?;
    let der = |list: Vec<Vec<u8>>| list.into_iter().map(Into::into).collect();
    let credential = Credential {
        key,
        chain: der(answer.chain),
        roots: der(answer.roots),
    };
    let session = StoredSession {
        credential,
        control: order.control.clone(),
        ticket_id: String::new(),
    };
    let dir = StateDir::open(Path::new(IDENTITY_DIR))?;
    dir.store(&session)?;
    let root = target()?;
    for entry in std::fs::read_dir(IDENTITY_DIR)? {
        let entry = entry?;
        let to = Path::new(config::STATE_DIR).join(entry.file_name());
        root.write(&to, Owner::root(0o600), &std::fs::read(entry.path())?)?;
    }
    std::fs::remove_dir_all(IDENTITY_DIR)?;
    Ok(())
}

async fn bootloader(cx: &Tools<'_>, plan: &Plan, uefi: bool) -> Result<()> {
    let root = target()?;
    let separate = plan.filesystems.iter().find(|f| f.path == "/boot");
    let root_fs = plan
        .filesystems
        .iter()
        .find(|f| f.path == "/")
        .context("no root file system")?;
    let links = root.exists("vmlinuz") && root.exists("initrd.img");
    let kernel = boot::kernel(&root.names("boot"), links, separate.is_some())
        .context("the image has no kernel in /boot")?;
    let partuuid = if kernel.initrd.is_empty() {
        Some(partuuid(&root_fs.device).await?)
    } else {
        None
    };
    let line = boot::command_line(root_fs, partuuid.as_deref(), cx.inherited);
    let boot_uuid = &separate.unwrap_or(root_fs).uuid;
    run_all(&boot::install_commands(plan, uefi), GRUB_LIMIT).await?;
    let grub_cfg = boot::grub_cfg(&kernel, boot_uuid, &line);
    root.write(
        Path::new("boot/grub/grub.cfg"),
        Owner::root(0o600),
        grub_cfg.as_bytes(),
    )?;
    let defaults = boot::grub_default(&line);
    Ok(root.write(
        Path::new("etc/default/grub.d/metalmesh.cfg"),
        Owner::root(0o644),
        defaults.as_bytes(),
    )?)
}

async fn partuuid(device: &str) -> Result<String> {
    let ask = crate::cmd::Cmd::new(
        "blkid",
        ["-p", "-s", "PART_ENTRY_UUID", "-o", "value", device],
    );
    Ok(ask.run(DEVICE_LIMIT).await?.trim().to_string())
}

/// Takes away everything that a firmware could boot.
async fn clean(plan: &Plan) {
    if let Err(error) = mount::none(Path::new(TARGET)) {
        tracing::warn!(error = format!("{error:#}"), "cannot unmount");
    }
    let mut commands = crate::wipe::release_commands();
    for stage in &plan.stages {
        for device in &stage.creates {
            commands.push(crate::cmd::Cmd::new("wipefs", ["--all", "--force", device]).optional());
        }
    }
    for disk in &plan.disks {
        commands.push(crate::cmd::Cmd::new("sgdisk", ["--zap-all", disk]).optional());
        commands.push(crate::cmd::Cmd::new("wipefs", ["--all", "--force", disk]).optional());
    }
    if let Err(error) = run_all(&commands, DISK_LIMIT).await {
        tracing::warn!(%error, "cannot clean up");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_password_is_hashed() {
        let (hash, password) = password().unwrap();
        assert_eq!(password.len(), CONSOLE_PASSWORD_LEN);
        assert!(hash.starts_with("$6$") && !hash.contains(':') && !hash.contains(&password));
    }
}
