//! The installation: from an order to a disk that boots.
//!
//! The steps run in order; a failure reports the step's name. After any failure the disks are left
//! without partition tables and signatures, so that a half-installed system never boots. The steps
//! keep no state on the disks: after a reset, or for another attempt, they start from the first.

pub mod boot;
mod bounded;
pub mod config;
mod console_password;
mod digest;
mod expanded;
pub mod features;
pub mod firewall_agent;
mod identity;
pub mod ignition;
pub mod image;
pub mod item;
pub mod layout;
mod login;
pub mod machine_network;
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

use agents_kit::Agent;
use anyhow::{Context, Result};
use proto_mesh::Install;
use proto_types::MacAddr;

use crate::cmd::run_all;
use crate::inventory::Sys;
use crate::net::http::Http;
use crate::net::links;
use boot::TARGET;
use config::ConfigInput;
use features::{ImageFeatures, features};
use image::ImageError;
use item::ItemState;
use layout::Plan;
use rootfs::{Owner, Root};
use user_data::Handling;
use users::Accounts;

/// Longest time of one command that makes a partition table, an array or a file system. Beyond it
/// the command is killed and fails.
const DISK_LIMIT: Duration = Duration::from_secs(600);
/// Longest time of one run of grub-install. Beyond it the command is killed and fails.
const GRUB_LIMIT: Duration = Duration::from_secs(300);
/// Longest wait for the node of a new device.
const DEVICE_LIMIT: Duration = Duration::from_secs(10);
/// The running binary, which is copied into the installed system as its agent.
const OWN_BINARY: &str = "/proc/self/exe";

/// The failure of an installation.
#[derive(Debug)]
pub struct StepError {
    /// Name of the failed step, as reported to control.
    pub step: &'static str,
    /// `true` if the same order may succeed at another attempt.
    pub retryable: bool,
    /// The cause.
    pub error: anyhow::Error,
}

/// The result of a successful installation.
pub struct Installed {
    /// The console password of the administrator, in clear text. Only control receives it.
    pub console_password: String,
    /// Path of the disk that holds the root file system.
    pub primary_disk: String,
}

// By hand: a derived one would print the password.
impl fmt::Debug for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disk = &self.primary_disk;
        f.debug_struct("Installed")
            .field("primary_disk", disk)
            .finish_non_exhaustive()
    }
}

/// The machine and the connections that an installation uses.
#[derive(Debug)]
pub struct InstallTools<'a> {
    /// The machine's hardware.
    pub sys: &'a Sys,
    /// Client to fetch the image.
    pub http: &'a Http,
    /// Session to control, for the identity of the installed system.
    pub agent: &'a Agent,
    /// MAC address of the boot interface.
    pub mac: &'a str,
    /// Arguments of the running kernel that the installed one inherits.
    pub inherited: &'a [String],
}

/// Carries out an installation. After a failure the disks of the layout are unbootable.
///
/// # Errors
/// The failed step with its cause.
pub async fn run(cx: &InstallTools<'_>, order: &Install) -> Result<Installed, StepError> {
    let uefi = cx.sys.is_uefi();
    let fixed = |step, error: anyhow::Error| StepError {
        step,
        retryable: false,
        error,
    };
    // The whole layout is checked before the first step: a refusal leaves the disks untouched.
    let wanted = order.layout.clone().unwrap_or_default();
    let plan = layout::plan(&wanted, &cx.sys.disks(), uefi, uuid::Uuid::new_v4)
        .map_err(|e| fixed("layout", e.into()))?;
    firewall_agent::check(order).map_err(|error| fixed("configure", error))?;
    let done = steps(cx, order, &plan, uefi).await;
    if done.is_err() {
        clean(&plan).await;
    }
    done
}

async fn steps(
    cx: &InstallTools<'_>,
    order: &Install,
    plan: &Plan,
    uefi: bool,
) -> Result<Installed, StepError> {
    // Failures of disks, network and tools may pass, so those steps are retryable. A configuration
    // that was refused will be refused again.
    step("partition", true, partition(plan)).await?;
    step("mount", true, async {
        mount::all(&plan.filesystems, Path::new(TARGET))
    })
    .await?;
    fetch(cx, order).await?;
    // Only after the image's digest was checked: its programs decide what the user data may be.
    let carried_out = async {
        let features = features(&target()?);
        Ok((features, user_data::handling(order, &features)?))
    };
    let (features, handling) = step("userdata", false, carried_out).await?;
    let console = step("password", false, async { console_password::generate() }).await?;
    let configured = async { configure(cx, order, plan, &console.hash, features, handling) };
    step("configure", false, configured).await?;
    step("bootloader", true, bootloader(cx, plan, uefi)).await?;
    // Ignition runs between boot loader and identity. After the boot loader: grub-install follows
    // links in /boot, and must not follow those of a tenant out of the target. Before the identity:
    // the tenant's programs must not read or replace the key of the installed system.
    if let Handling::Ignition(program) = handling {
        step("userdata", false, ignition::run(program, &order.userdata)).await?;
    }
    let identified = async { identity::install(cx, order, &target()?).await };
    step("identity", true, identified).await?;
    // Success is reported only after the unmount: control may cut the power right after the report.
    step("sync", true, async { mount::none(Path::new(TARGET)) }).await?;
    Ok(Installed {
        console_password: console.password,
        primary_disk: plan.primary_disk.clone(),
    })
}

/// Runs a step, logs its duration, and names it in its failure.
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
        // The kernel makes device nodes asynchronously; the next stage would fail without them.
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

async fn fetch(cx: &InstallTools<'_>, order: &Install) -> Result<(), StepError> {
    let image = order.image.clone().unwrap_or_default();
    // The step's fixed flag does not do here: a stalled server may recover, a wrong digest will
    // not.
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

fn target() -> Result<Root> {
    Ok(Root::open(Path::new(TARGET))?)
}

fn configure(
    cx: &InstallTools<'_>,
    order: &Install,
    plan: &Plan,
    hash: &str,
    features: ImageFeatures,
    handling: Handling,
) -> Result<()> {
    let root = target()?;
    let read = |path: &str| root.text(path).with_context(|| path.to_owned());
    let accounts = Accounts {
        passwd: read("etc/passwd")?,
        shadow: read("etc/shadow")?,
        group: read("etc/group")?,
        gshadow: read("etc/gshadow")?,
        ..Accounts::default()
    };
    let accounts = config::accounts_with_user(accounts, hash, root.exists("bin/bash"));
    let input = ConfigInput {
        install: order,
        mac: cx.mac,
        nics: &nics(cx.mac),
        netplan_names: &root.names("etc/netplan"),
        filesystems: &plan.filesystems,
        features,
        handling,
        accounts: &accounts,
        ssh_names: &root.names("etc/ssh"),
    };
    for item in config::items(&input)? {
        put(&root, &item).with_context(|| item.path.clone())?;
    }
    // Last, and from the running system: user data of the items above cannot replace the agents.
    let agent = std::fs::read(OWN_BINARY)?;
    let files = [
        (config::AGENT, 0o755, Some(agent)),
        (
            firewall_agent::PROGRAM,
            0o755,
            firewall_agent::program(order)?,
        ),
        (
            firewall_agent::RELEASE_KEYS,
            0o644,
            firewall_agent::release_keys(order)?,
        ),
    ];
    for (path, mode, content) in files {
        if let Some(content) = content {
            root.write(Path::new(path), Owner::root(mode), &content)
                .context(path)?;
        }
    }
    Ok(())
}

/// The Ethernet NICs with a carrier, the boot interface first.
fn nics(boot: &str) -> Vec<MacAddr> {
    let up = links::list()
        .into_iter()
        .filter(|link| links::has_carrier(&link.name));
    let mut macs: Vec<MacAddr> = up.map(|link| link.mac).collect();
    macs.sort_by_key(|mac| mac.to_string() != boot);
    macs
}

fn put(root: &Root, item: &item::SystemItem) -> io::Result<()> {
    let path = Path::new(&item.path);
    match &item.state {
        ItemState::File(owner, bytes) => root.write(path, *owner, bytes),
        ItemState::Dir(owner) => root.make_dir(path, *owner).map(drop),
        ItemState::Link(target) => root.symlink(path, target),
        ItemState::Absent => root.remove(&item.path),
    }
}

async fn bootloader(cx: &InstallTools<'_>, plan: &Plan, uefi: bool) -> Result<()> {
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
    // A kernel without initrd has no tool that reads file systems' UUIDs.
    let partuuid = if kernel.initrd.is_empty() {
        Some(partuuid(&root_fs.device).await?)
    } else {
        None
    };
    let line = boot::command_line(root_fs, partuuid.as_deref(), cx.inherited);
    let boot_uuid = &separate.unwrap_or(root_fs).uuid;
    run_all(&boot::install_commands(plan, uefi), GRUB_LIMIT).await?;
    // The configuration comes after the loader: without it GRUB stops at a prompt instead of
    // booting a system whose installation did not get here.
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

/// Removes everything that a firmware could boot or a next attempt could assemble. Failures are
/// logged only: the installation's own error is the one to report.
async fn clean(plan: &Plan) {
    if let Err(error) = mount::none(Path::new(TARGET)) {
        tracing::warn!(error = format!("{error:#}"), "cannot unmount");
    }
    // From top to bottom: mounts keep volumes busy, volumes keep arrays busy, arrays keep disks
    // busy. Signatures inside partitions go before the partition tables, which give access to them;
    // a table with the same borders, as the next attempt makes it, would show them again.
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
        tracing::warn!(%error, "cannot clean the disks after a failed installation");
    }
}
