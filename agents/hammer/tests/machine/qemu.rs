//! An emulated machine, and what its disk holds.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

pub(crate) const OVMF_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
const OVMF_VARS: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";
pub(crate) const MEMORY_MIB: u64 = 768;
const DISK_LEN: u64 = 4 << 30;
const CONSOLE_TAIL: usize = 6_000;
/// Where the secret stands: beginning, somewhere within, end.
const SECRET_AT: [u64; 3] = [1 << 20, 1 << 31, DISK_LEN - 4096];
/// Clock ticks a second, as Linux on x86 has them.
const TICKS: f64 = 100.0;

pub(crate) struct Setup {
    pub(crate) boot: PathBuf,
    pub(crate) disk: PathBuf,
    /// Attached so that it cannot be written to.
    pub(crate) stuck: PathBuf,
    /// Further disks to install on: serial number and file.
    pub(crate) others: Vec<(&'static str, PathBuf)>,
    /// Port of this host that leads to the installed system's SSH.
    pub(crate) ssh_port: u16,
    pub(crate) installed_ip: &'static str,
    pub(crate) vars: PathBuf,
    pub(crate) serial: PathBuf,
    pub(crate) uefi: bool,
    pub(crate) uuid: &'static str,
    pub(crate) mac: &'static str,
    pub(crate) gateway: &'static str,
    pub(crate) command_line: String,
}

impl Setup {
    pub(crate) fn console_tail(&self) -> String {
        let bytes = fs::read(&self.serial).unwrap_or_default();
        let start = bytes.len().saturating_sub(CONSOLE_TAIL);
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    fn arguments(&self, installer: bool) -> Vec<String> {
        let mut out = Vec::new();
        let mut add = |words: &str| out.extend(words.split(' ').map(str::to_string));
        add("-machine q35 -accel tcg -cpu qemu64 -display none -nodefaults -no-reboot");
        add(&format!("-m {MEMORY_MIB} -uuid {}", self.uuid));
        add("-smbios type=1,manufacturer=LabVendor,product=LabServer,serial=SER-M1");
        add("-device virtio-rng-pci");
        add(&format!("-serial file:{}", self.serial.display()));
        let disk = self.disk.display();
        add(&format!(
            "-drive if=none,id=d0,format=raw,discard=unmap,file={disk}"
        ));
        // NVMe with UEFI, virtio with BIOS: both are wiped and booted from.
        let kind = if self.uefi { "nvme" } else { "virtio-blk-pci" };
        add(&format!(
            "-device {kind},drive=d0,serial=DISK-1,bootindex=1"
        ));
        for (serial, file) in &self.others {
            let file = file.display();
            add(&format!(
                "-drive if=none,id={serial},format=raw,discard=unmap,file={file}"
            ));
            add(&format!(
                "-device virtio-blk-pci,drive={serial},serial={serial}"
            ));
        }
        let stuck = self.stuck.display();
        add(&format!(
            "-drive if=none,id=d1,format=raw,readonly=on,file={stuck}"
        ));
        add("-device virtio-blk-pci,drive=d1,serial=STUCK");
        let (gateway, ssh, ip) = (self.gateway, self.ssh_port, self.installed_ip);
        add(&format!(
            "-netdev user,id=n0,net=169.254.0.0/16,host={gateway},dhcpstart=169.254.2.15,\
             hostfwd=tcp:127.0.0.1:{ssh}-{ip}:22"
        ));
        add(&format!(
            "-device virtio-net-pci,netdev=n0,mac={},romfile=",
            self.mac
        ));
        if self.uefi {
            let vars = self.vars.display();
            add(&format!(
                "-drive if=pflash,format=raw,unit=0,readonly=on,file={OVMF_CODE}"
            ));
            add(&format!("-drive if=pflash,format=raw,unit=1,file={vars}"));
        }
        if installer {
            let boot = self.boot.display();
            add(&format!(
                "-kernel {boot}/vmlinuz -initrd {boot}/initramfs.cpio.zst -append"
            ));
            out.push(self.command_line.clone());
        }
        out
    }
}

pub(crate) struct Machine {
    child: Child,
    cpu_s: f64,
}

impl Machine {
    /// Powers on: with the installer's kernel, or from the disk.
    pub(crate) fn boot(setup: &Setup, installer: bool) -> Self {
        if setup.uefi && !setup.vars.exists() {
            fs::copy(OVMF_VARS, &setup.vars).unwrap();
        }
        let child = Command::new("qemu-system-x86_64")
            .args(setup.arguments(installer))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child, cpu_s: 0.0 }
    }

    /// Waits until it reboots, which ends QEMU.
    pub(crate) async fn ended(&mut self) {
        loop {
            let tick = std::time::Duration::from_millis(500);
            self.cpu_s = self.cpu_s.max(self.cpu_now());
            if let Ok(status) = tokio::time::timeout(tick, self.child.wait()).await {
                assert!(status.unwrap().success());
                return;
            }
        }
    }

    /// Cuts the power.
    pub(crate) async fn cut(mut self) {
        self.child.kill().await.unwrap();
    }

    /// CPU time that it has cost.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.cpu_s.max(self.cpu_now())
    }

    fn cpu_now(&self) -> f64 {
        let Some(pid) = self.child.id() else {
            return 0.0;
        };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = stat.rsplit(')').next().unwrap_or_default();
        let number = |at: usize| {
            after
                .split_whitespace()
                .nth(at)
                .and_then(|n| n.parse().ok())
        };
        (number(11).unwrap_or(0.0) + number(12).unwrap_or(0.0)) / TICKS
    }
}

/// A small disk for the guest to fail on.
pub(crate) fn make_stuck_disk(path: &Path) {
    File::create(path).unwrap().set_len(64 << 20).unwrap();
}

/// A sparse disk with the secret in it.
pub(crate) fn make_disk(path: &Path, secret: &[u8]) {
    let file = File::create(path).unwrap();
    file.set_len(DISK_LEN).unwrap();
    for at in SECRET_AT {
        // A whole block, as a file would have it.
        let block: Vec<u8> = secret.iter().copied().cycle().take(4096).collect();
        file.write_all_at(&block, at).unwrap();
    }
}

pub(crate) fn disk_holds(path: &Path, secret: &[u8]) -> bool {
    let file = File::open(path).unwrap();
    SECRET_AT.iter().any(|at| {
        let mut block = vec![0; secret.len()];
        file.read_exact_at(&mut block, *at).unwrap();
        block == secret
    })
}

/// GPT's signature in the second sector, or a boot sector's mark in the first.
pub(crate) fn has_partition_table(path: &Path) -> bool {
    let file = File::open(path).unwrap();
    let mut sectors = [0; 1024];
    file.read_exact_at(&mut sectors, 0).unwrap();
    &sectors[512..520] == b"EFI PART" || sectors[510..512] == [0x55, 0xaa]
}
