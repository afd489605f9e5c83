//! The command line of QEMU that all guests have in common.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use tests_lab::chassis::Accelerator;

const QEMU: &str = "qemu-system-x86_64";

/// A guest to boot: kernel, initramfs and hardware.
#[derive(Clone, Debug)]
pub(crate) struct Qemu {
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: PathBuf,
    pub(crate) accelerator: Accelerator,
    pub(crate) memory_mib: u32,
    pub(crate) cpus: u32,
    /// File of the first serial port; appended to.
    pub(crate) log: PathBuf,
    /// Further words of the kernel's command line.
    pub(crate) append: String,
    /// Further arguments of QEMU.
    pub(crate) more: Vec<String>,
}

impl Qemu {
    /// Starts it. The second serial port is the output of the process.
    pub(crate) fn spawn(&self) -> Result<Child> {
        let accelerator = match self.accelerator {
            Accelerator::Kvm => "kvm",
            // Else one thread of the host emulates all processors, and translated code may take 1 GiB.
            Accelerator::Tcg => "tcg,thread=multi,tb-size=256",
        };
        // A busy host loses the timer interrupts that the kernel checks at boot, and lets it distrust
        // its clock; the one that it takes instead is slow in an emulated machine.
        let append = format!(
            "console=ttyS0 panic=-1 no_timer_check tsc=reliable oops=panic {}",
            self.append
        );
        Command::new(QEMU)
            .args(["-machine", "q35", "-accel", accelerator, "-cpu", "qemu64"])
            .args(["-smp", &self.cpus.to_string()])
            .args(["-m", &self.memory_mib.to_string()])
            .args(["-display", "none", "-nodefaults"])
            .args(["-device", "virtio-rng-pci"])
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(&self.initrd)
            .args(["-append", &append])
            .arg("-chardev")
            .arg(format!("file,id=log,append=on,path={}", self.log.display()))
            .args(["-serial", "chardev:log"])
            .args(["-chardev", "stdio,id=output,signal=off"])
            .args(["-serial", "chardev:output"])
            .args(&self.more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("cannot start {QEMU}"))
    }
}

/// The reason why no guest can run here.
pub(crate) fn missing() -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let is_there = |dir: PathBuf| Path::new(&dir).join(QEMU).exists();
    if std::env::split_paths(&path).any(is_there) {
        return None;
    }
    Some(format!(
        "{QEMU} (Debian package qemu-system-x86) is missing"
    ))
}
