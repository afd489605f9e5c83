//! Tests of switches that are machines of their own: two leaves and a spine, each with a kernel, FRR
//! and, on leaves, the agent with its state on a disk. A fourth guest has control, the machines of
//! tenants as namespaces, and the test, which takes the power from switches and gives it back.
//!
//! Cables are datagram sockets. A NIC has a carrier while the other end of its cable has power and its
//! port is up, as with real cables; without that a machine would not notice that its leaf is gone.

mod cables;
mod plant;
mod power;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tests_lab::chassis::Accelerator;

use self::cables::{MACHINES, SITE, SWITCHES};
use self::plant::Plant;
use super::guest::{Guest, tail};
use super::qemu::Qemu;

/// Memory of the guest with control and machines, and of a switch, MiB.
const SITE_MIB: u32 = 1280;
const SWITCH_MIB: u32 = 640;

/// The files of the guests.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) kernel: PathBuf,
    /// Initramfs with the test.
    pub(super) site: PathBuf,
    pub(super) leaf: PathBuf,
    pub(super) spine: PathBuf,
}

/// Boots all guests, passes every line of the test to `print`, and returns the test's exit code.
pub(super) fn run(
    files: &Files,
    accelerator: Accelerator,
    dir: &Path,
    limit: Duration,
    print: impl FnMut(&str),
) -> Result<i32> {
    let qemu = |initrd: &Path, name: &str, memory_mib, cpus| Qemu {
        kernel: files.kernel.clone(),
        initrd: initrd.to_owned(),
        accelerator,
        memory_mib,
        cpus,
        log: dir.join(format!("{name}.log")),
        append: String::new(),
        more: Vec::new(),
    };
    let switches = SWITCHES.map(|switch| {
        let initrd = if switch.is_leaf {
            &files.leaf
        } else {
            &files.spine
        };
        qemu(initrd, switch.name, SWITCH_MIB, 1)
    });
    let plant = Arc::new(Plant::new(dir, switches)?);
    for index in 0..SWITCHES.len() {
        plant.power_on(index)?;
    }
    let mut site = qemu(&files.site, "site", SITE_MIB, 2);
    site.append = format!("nics={}", cables::names(SITE));
    site.more = plant.site_arguments();
    let served = power::serve(Arc::clone(&plant));
    println!(
        "fabric | vms: {} and spine, {MACHINES} machines with {} cables",
        SWITCHES[..2]
            .iter()
            .map(|leaf| leaf.name)
            .collect::<Vec<_>>()
            .join(", "),
        2 * MACHINES
    );
    let code = Guest { qemu: site, limit }.run(print);
    plant.end();
    drop(served);
    if !matches!(code, Ok(0)) {
        for switch in SWITCHES {
            let log = dir.join(format!("{}.log", switch.name));
            println!("fabric | {}: serial log ends:\n{}", switch.name, tail(&log));
        }
    }
    code
}
