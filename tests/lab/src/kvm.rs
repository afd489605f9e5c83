//! Whether a guest really runs with KVM. A device file proves nothing: under some hypervisors it
//! opens and no guest ever reaches user space.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::chassis::Accelerator;

const LIMIT: Duration = Duration::from_secs(8);
const SIGN: &str = "GUEST-REACHED-USER-SPACE";
const BUSYBOX: &str = "/bin/busybox";

/// Boots a kernel with KVM; TCG when that does not reach user space within seconds. The answer is
/// kept in `cache` until the host boots anew or has another QEMU.
///
/// # Errors
/// The probe's files cannot be written.
pub fn probe(kernel: &Path, dir: &Path, cache: &Path) -> Result<Accelerator> {
    if !Path::new("/dev/kvm").exists() || !Path::new(BUSYBOX).exists() {
        return Ok(Accelerator::Tcg);
    }
    let kept = cache.join("kvm-probe");
    let host = host();
    for found in [Accelerator::Kvm, Accelerator::Tcg] {
        if fs::read_to_string(&kept).is_ok_and(|text| text == answer(&host, found)) {
            return Ok(found);
        }
    }
    let found = boot(kernel, dir)?;
    fs::create_dir_all(cache)?;
    fs::write(&kept, answer(&host, found))?;
    Ok(found)
}

fn answer(host: &str, found: Accelerator) -> String {
    format!("{host}{}\n", found.name())
}

/// This boot of this host with this QEMU.
fn host() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let qemu = fs::metadata("/usr/bin/qemu-system-x86_64")
        .and_then(|m| m.modified())
        .ok();
    format!("{boot}{qemu:?}\n")
}

fn boot(kernel: &Path, dir: &Path) -> Result<Accelerator> {
    let initrd = dir.join("probe.cpio");
    let log = dir.join("probe.log");
    fs::write(&initrd, archive()?)?;
    let mut guest = Command::new("qemu-system-x86_64")
        .args("-machine q35 -accel kvm -cpu qemu64 -m 256 -display none -nodefaults".split(' '))
        .args([
            "-no-reboot",
            "-append",
            "console=ttyS0 panic=-1 quiet no_timer_check",
        ])
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(&initrd)
        .arg("-serial")
        .arg(format!("file:{}", log.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let until = Instant::now() + LIMIT;
    let mut found = false;
    while !found && Instant::now() < until && guest.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(50));
        found = fs::read(&log).is_ok_and(|text| String::from_utf8_lossy(&text).contains(SIGN));
    }
    // It may have ended by itself.
    guest.kill().ok();
    guest.wait()?;
    Ok(if found {
        Accelerator::Kvm
    } else {
        Accelerator::Tcg
    })
}

/// An initramfs of one shell and one line.
fn archive() -> Result<Vec<u8>> {
    let busybox = fs::read(BUSYBOX)?;
    let init = format!("#!/bin/busybox sh\n/bin/busybox echo {SIGN}\n/bin/busybox sleep 60\n");
    let mut out = Vec::new();
    for (name, mode, content) in [
        ("bin", 0o040_755, &[][..]),
        ("bin/busybox", 0o100_755, busybox.as_slice()),
        ("init", 0o100_755, init.as_bytes()),
        ("TRAILER!!!", 0, &[][..]),
    ] {
        write!(
            out,
            "070701{:08x}{mode:08x}{zero:08x}{zero:08x}{:08x}{zero:08x}{:08x}{zero:08x}{zero:08x}{zero:08x}{zero:08x}{:08x}{zero:08x}",
            out.len() + 1,
            1,
            content.len(),
            name.len() + 1,
            zero = 0,
        )?;
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        pad(&mut out);
        out.extend_from_slice(content);
        pad(&mut out);
    }
    Ok(out)
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}
