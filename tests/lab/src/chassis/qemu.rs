//! QEMU as a machine with a power button.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::qmp;
use super::{BmcWire, Config};

pub(super) const KCS_SOCKET: &str = "kcs.sock";
const QMP_SOCKET: &str = "qmp.sock";
const FIRMWARE_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
const FIRMWARE_VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";
/// How long a machine stays dark in a power cycle.
const DARK: Duration = Duration::from_secs(1);
const QUIT: Duration = Duration::from_secs(3);
/// Boot order of the network card: before the first disk (2), or after it.
const NIC_FIRST: u32 = 1;
const NIC_LAST: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Firmware {
    Bios,
    Uefi,
}

/// What executes the guest's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accelerator {
    Kvm,
    Tcg,
}

impl Accelerator {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Disk {
    /// A sparse raw file.
    pub path: PathBuf,
    pub serial: String,
}

/// What the machine tries first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boot {
    Disk,
    Pxe,
}

/// A machine, on or off. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    config: Arc<Config>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    child: Option<Child>,
    boot: Boot,
    /// Every write to the first disk fails from the next power on.
    writes_fail: bool,
    /// CPU time of QEMU processes that have ended, ticks.
    ticks_spent: u64,
    powered_on: u32,
}

impl Machine {
    pub(super) fn new(config: Config) -> Result<Self> {
        if config.firmware == Firmware::Uefi {
            let variables = config.dir.join("efivars.fd");
            if !variables.exists() {
                fs::copy(FIRMWARE_VARIABLES, &variables)
                    .with_context(|| format!("cannot copy {FIRMWARE_VARIABLES}"))?;
            }
        }
        let inner = Inner {
            child: None,
            boot: Boot::Disk,
            writes_fail: false,
            ticks_spent: 0,
            powered_on: 0,
        };
        Ok(Self {
            config: Arc::new(config),
            inner: Arc::new(Mutex::new(inner)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_on(&self) -> bool {
        self.lock().running()
    }

    pub(super) fn boot(&self) -> Boot {
        self.lock().boot
    }

    pub(super) fn powered_on(&self) -> u32 {
        self.lock().powered_on
    }

    pub(super) fn pid(&self) -> Option<u32> {
        let mut inner = self.lock();
        if inner.running() {
            inner.child.as_ref().map(Child::id)
        } else {
            None
        }
    }

    pub(super) fn cpu_ticks(&self) -> u64 {
        let inner = self.lock();
        inner.ticks_spent + inner.child.as_ref().map_or(0, |c| ticks(c.id()))
    }

    pub(super) fn fail_writes(&self, fail: bool) {
        self.lock().writes_fail = fail;
    }

    /// What the next boot tries first; a running machine takes it at its next reset.
    pub(super) fn set_boot(&self, boot: Boot) -> Result<()> {
        let mut inner = self.lock();
        // QEMU refuses an index that is in use, also by the card itself.
        if inner.boot != boot && inner.running() {
            let index = if boot == Boot::Pxe {
                NIC_FIRST
            } else {
                NIC_LAST
            };
            let arguments = json!({"path": "/machine/peripheral/nic0", "property": "bootindex", "value": index});
            qmp::call(&self.qmp_socket(), "qom-set", Some(arguments))?;
        }
        inner.boot = boot;
        Ok(())
    }

    pub(super) fn on(&self) -> Result<()> {
        let mut inner = self.lock();
        if inner.running() {
            return Ok(());
        }
        let mut command = self.command(inner.boot, inner.writes_fail)?;
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.config.dir.join("qemu.log"))?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        inner.child = Some(command.spawn().context("cannot start QEMU")?);
        inner.powered_on += 1;
        drop(inner);
        // A command that follows at once must find the monitor.
        let until = Instant::now() + QUIT;
        while !self.qmp_socket().exists() && self.is_on() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    pub(super) fn off(&self) -> Result<()> {
        let mut inner = self.lock();
        if !inner.running() {
            return Ok(());
        }
        // A monitor that does not answer is as good as none: the power goes either way.
        drop(qmp::call(&self.qmp_socket(), "quit", None));
        let until = Instant::now() + QUIT;
        while inner.running() {
            if Instant::now() > until
                && let Some(child) = &mut inner.child
            {
                child.kill()?;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(fs::remove_file(self.qmp_socket()));
        Ok(())
    }

    pub(super) fn cycle(&self) -> Result<()> {
        self.off()?;
        std::thread::sleep(DARK);
        self.on()
    }

    pub(super) fn reset(&self) -> Result<()> {
        if !self.is_on() {
            bail!("the machine is off");
        }
        qmp::call(&self.qmp_socket(), "system_reset", None).map(|_| ())
    }

    /// The power button, pressed shortly: the guest decides.
    pub(super) fn press(&self) -> Result<()> {
        if self.is_on() {
            qmp::call(&self.qmp_socket(), "system_powerdown", None)?;
        }
        Ok(())
    }

    fn qmp_socket(&self) -> PathBuf {
        self.config.dir.join(QMP_SOCKET)
    }

    fn command(&self, boot: Boot, writes_fail: bool) -> Result<Command> {
        let config = &self.config;
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            &config.switch_namespace,
            "qemu-system-x86_64",
        ]);
        command.args(self.basics());
        command.args(self.network(boot));
        command.args(self.disks(writes_fail)?);
        Ok(command)
    }

    fn basics(&self) -> Vec<String> {
        let config = &self.config;
        let dir = config.dir.display();
        let mut arguments = vec![
            format!("-name {}", config.name),
            format!("-uuid {}", config.uuid),
            format!(
                "-smbios type=1,manufacturer=metalmesh,product=lab,serial={}",
                config.serial
            ),
            "-machine q35,graphics=off".into(),
            format!("-accel {}", config.accelerator.name()),
            "-cpu qemu64".into(),
            format!("-m {}", config.memory_mib),
            "-display none -nodefaults".into(),
            "-device virtio-rng-pci".into(),
            format!(
                "-chardev socket,id=ser0,path={dir}/serial.sock,server=on,wait=off,logappend=on,logfile={}",
                config.serial_log.display()
            ),
            "-serial chardev:ser0".into(),
            format!("-qmp unix:{dir}/{QMP_SOCKET},server=on,wait=off"),
        ];
        if config.firmware == Firmware::Uefi {
            arguments.push(format!(
                "-drive if=pflash,format=raw,unit=0,readonly=on,file={FIRMWARE_CODE}"
            ));
            arguments.push(format!(
                "-drive if=pflash,format=raw,unit=1,file={dir}/efivars.fd"
            ));
        }
        if let BmcWire::Ipmi { .. } = config.wire {
            arguments.push(format!(
                "-chardev socket,id=kcs0,path={dir}/{KCS_SOCKET},reconnect=2"
            ));
            arguments.push("-device ipmi-bmc-extern,id=bmc0,chardev=kcs0".into());
            arguments.push("-device isa-ipmi-kcs,bmc=bmc0".into());
        }
        words(&arguments)
    }

    fn network(&self, boot: Boot) -> Vec<String> {
        let config = &self.config;
        let index = if boot == Boot::Pxe {
            NIC_FIRST
        } else {
            NIC_LAST
        };
        words(&[
            format!(
                "-netdev tap,id=n0,ifname={},script=no,downscript=no",
                config.port
            ),
            format!(
                "-device virtio-net-pci,id=nic0,netdev=n0,mac={},bootindex={index}",
                config.mac
            ),
        ])
    }

    fn disks(&self, writes_fail: bool) -> Result<Vec<String>> {
        let mut arguments = Vec::new();
        for (number, disk) in self.config.disks.iter().enumerate() {
            // Discarded blocks become holes: a wiped disk takes no room on the host.
            let file = format!("file,filename={}", disk.path.display());
            let node = if writes_fail && number == 0 {
                let faults = fault_file(&self.config.dir)?;
                arguments.push(format!(
                    "-blockdev node-name=p{number},discard=unmap,driver={file}"
                ));
                format!("blkdebug,config={},image=p{number}", faults.display())
            } else {
                file
            };
            arguments.push(format!(
                "-blockdev node-name=f{number},discard=unmap,driver={node}"
            ));
            arguments.push(format!(
                "-blockdev node-name=d{number},driver=raw,discard=unmap,file=f{number}"
            ));
            arguments.push(format!(
                "-device virtio-blk-pci,drive=d{number},serial={},bootindex={}",
                disk.serial,
                number + 2
            ));
        }
        Ok(words(&arguments))
    }
}

impl Inner {
    /// Whether QEMU runs; one that ended by itself is accounted for.
    fn running(&mut self) -> bool {
        let Some(child) = &mut self.child else {
            return false;
        };
        let spent = ticks(child.id());
        if let Ok(None) = child.try_wait() {
            return true;
        }
        self.ticks_spent += spent;
        self.child = None;
        false
    }
}

/// Makes every kind of write fail with EIO.
fn fault_file(dir: &Path) -> Result<PathBuf> {
    let path = dir.join("faults.conf");
    let mut text = String::new();
    for kind in ["write", "write-zeroes", "discard"] {
        let rule = format!(
            "[inject-error]\nevent = \"none\"\niotype = \"{kind}\"\nerrno = \"5\"\nonce = \"off\"\n\n"
        );
        text.push_str(&rule);
    }
    fs::write(&path, text)?;
    Ok(path)
}

/// Nothing of ours holds a space; one string per option reads better.
fn words(arguments: &[String]) -> Vec<String> {
    arguments
        .iter()
        .flat_map(|a| a.split(' '))
        .map(str::to_owned)
        .collect()
}

/// CPU time of a process, user and system, in clock ticks.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<u64> = after
        .split_whitespace()
        .map(|f| f.parse().unwrap_or_default())
        .collect();
    fields.get(11).copied().unwrap_or(0) + fields.get(12).copied().unwrap_or(0)
}
