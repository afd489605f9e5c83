//! Real firmware and real iPXE. They take 10 to 40 s each, so they run only where
//! METALMESH_BOOT_DIR is set, as `./dev test` does.

use std::path::Path;
use std::time::Duration;

use pixie_boot::{InstallerSource, Target};
use pixie_server::control::{Desired, Seen};

use crate::file_server::{Answer, FileServer};
use crate::running_pixie::Running;
use crate::world::*;

const BOOT_TIME_MAX: Duration = Duration::from_secs(150);

/// A machine with its firmware, its card, and more devices, on the cable of a pixie.
struct Booted {
    world: World,
    pixie: Running,
    _running: Vec<Machine>,
}

impl Booted {
    /// Boots; `None`, with a printed reason, where it cannot.
    fn new(config: &str, target: Target, args: &[&str]) -> Option<Self> {
        let ipxe = Path::new("/usr/lib/ipxe");
        if skipped() || !have("qemu-system-x86_64") {
            return None;
        }
        if std::env::var_os("METALMESH_BOOT_DIR").is_none() {
            eprintln!("SKIPPED: METALMESH_BOOT_DIR is not set");
            return None;
        }
        if !ipxe.join("ipxe.efi").exists() {
            eprintln!("SKIPPED: no {}", ipxe.display());
            return None;
        }
        let world = World::new();
        for name in ["undionly.kpxe", "snponly.efi", "ipxe.efi"] {
            std::fs::copy(ipxe.join(name), world.dir.path().join(name)).unwrap();
        }
        let mut args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        if args.iter().any(|arg| arg.contains("OVMF")) {
            let vars = world.dir.path().join("vars.fd");
            std::fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &vars).unwrap();
            let drive = format!("if=pflash,format=raw,unit=1,file={}", vars.display());
            args.extend(["-drive".into(), drive]);
        }
        let pixie = Running::start(&world, world.config(config));
        pixie.sink.set(Desired::default(), true);
        *pixie.control.target.lock().unwrap() = Some(target);
        world.bridge();
        let mut running = Vec::new();
        if config == PROXY {
            running.push(world.dnsmasq());
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        running.push(world.machine(&args));
        Some(Self {
            world,
            pixie,
            _running: running,
        })
    }

    fn serial(&self) -> String {
        let bytes = std::fs::read(self.world.dir.path().join("serial")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn wait_for_script(&self) -> Seen {
        let started = std::time::Instant::now();
        let seen = || self.pixie.control.seen.lock().unwrap().first().cloned();
        wait_long("the script", BOOT_TIME_MAX, || seen().is_some());
        eprintln!("script after {:?}", started.elapsed());
        seen().unwrap()
    }

    fn wait_for_serial(&self, text: &str) {
        wait_long(text, BOOT_TIME_MAX, || self.serial().contains(text));
    }
}

fn nic(romfile: &str) -> String {
    format!("virtio-net-pci,netdev=n0,mac={MAC},bootindex=1{romfile}")
}

fn boots(config: &str, firmware: &[&str], romfile: &str) {
    let nic = nic(romfile);
    let args = [firmware, &["-device", &nic]].concat();
    let Some(booted) = Booted::new(config, Target::Hammer, &args) else {
        return;
    };
    let seen = booted.wait_for_script();
    assert_eq!(
        seen.machine.to_string(),
        UUID,
        "iPXE agrees with the firmware"
    );
    assert_eq!(seen.mac, MAC);
    assert_eq!(seen.arch, if firmware.is_empty() { 0 } else { 7 });
    booted.wait_for_serial("/kernel");
}

const PROXY: &str = "mode = \"proxy\"";
const SERVER: &str = "range = [\"10.99.1.100\", \"10.99.1.110\"]\nrouter = \"10.99.1.2\"";
const OVMF: [&str; 2] = [
    "-drive",
    "if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd",
];
const HTTP_ONLY: [&str; 4] = [
    "-fw_cfg",
    "name=opt/org.tianocore/IPv4PXESupport,string=n",
    "-fw_cfg",
    "name=opt/org.tianocore/IPv6PXESupport,string=n",
];

#[test]
fn a_bios_machine_with_ipxe_in_its_card() {
    boots(SERVER, &[], "");
}

#[test]
fn a_uefi_machine_by_its_own_pxe() {
    boots(SERVER, &OVMF, ",romfile=");
}

#[test]
fn a_uefi_machine_by_http() {
    boots(SERVER, &[&OVMF[..], &HTTP_ONLY[..]].concat(), ",romfile=");
}

#[test]
fn a_bios_machine_beside_another_dhcp_server() {
    if have("dnsmasq") {
        boots(PROXY, &[], "");
    }
}

#[test]
fn a_uefi_machine_beside_another_dhcp_server() {
    if have("dnsmasq") {
        boots(PROXY, &OVMF, ",romfile=");
    }
}

#[test]
fn a_uefi_machine_by_http_beside_another_dhcp_server() {
    if have("dnsmasq") {
        boots(PROXY, &[&OVMF[..], &HTTP_ONLY[..]].concat(), ",romfile=");
    }
}

/// The partition names its installer: real firmware waits until it has come, and loads that one.
#[test]
fn a_uefi_machine_boots_what_the_partition_names() {
    let nic = nic(",romfile=");
    let args = [&OVMF[..], &["-device", &nic]].concat();
    let Some(booted) = Booted::new(SERVER, Target::Hammer, &args) else {
        return;
    };
    let server = FileServer::http(&booted.world);
    server.set("/kernel", Answer::File(pattern(300_000), "k1"));
    let source = InstallerSource::of(&server.url("/kernel"), &server.url("/image"));
    booted.pixie.set_installer(Target::Hammer, source);
    booted.wait_for_script();
    booted.wait_for_serial("nothing to boot yet: the installer cannot be fetched");
    server.set("/image", Answer::File(pattern(500_000), "i1"));
    booted.wait_for_serial("/boot/");
    let serial = booted.serial();
    assert!(!serial.contains(":8080/kernel"), "no other one: {serial}");
}

/// A boot sector that writes `DISKBOOT` to the first serial port.
fn boot_sector() -> Vec<u8> {
    let code = [
        0x31, 0xc0, 0x8e, 0xd8, // ds = 0
        0xbe, 0x16, 0x7c, // si = text
        0xac, 0x84, 0xc0, 0x74, 0x06, // next byte, end at zero
        0xba, 0xf8, 0x03, 0xee, 0xeb, 0xf5, // out to the port, again
        0xf4, 0xeb, 0xfd, 0x90, // halt
    ];
    let mut sector = code.to_vec();
    sector.extend_from_slice(b"DISKBOOT\0");
    sector.resize(510, 0);
    sector.extend_from_slice(&[0x55, 0xaa]);
    sector.resize(1 << 20, 0);
    sector
}

#[test]
fn an_installed_bios_machine_goes_on_to_its_disk() {
    let disk = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(disk.path(), boot_sector()).unwrap();
    let drive = format!("if=none,id=d0,format=raw,file={}", disk.path().display());
    let nic = nic("");
    let args = [
        "-device",
        &nic,
        "-drive",
        &drive,
        "-device",
        "virtio-blk-pci,drive=d0,bootindex=2",
    ];
    let Some(booted) = Booted::new(SERVER, Target::Disk, &args) else {
        return;
    };
    booted.wait_for_script();
    booted.wait_for_serial("DISKBOOT");
}

#[test]
fn an_installed_uefi_machine_goes_on_to_its_disk() {
    let folder = tempfile::tempdir().unwrap();
    let boot = folder.path().join("EFI/BOOT");
    std::fs::create_dir_all(&boot).unwrap();
    if std::fs::copy("/usr/lib/ipxe/ipxe.efi", boot.join("BOOTX64.EFI")).is_err() {
        return;
    }
    let drive = format!(
        "if=none,id=d0,format=raw,file=fat:rw:{}",
        folder.path().display()
    );
    let nic = nic(",romfile=");
    let disk = [
        "-drive",
        &drive,
        "-device",
        "virtio-blk-pci,drive=d0,bootindex=2",
    ];
    // Each network entry comes before the disk's, and those of IPv6 take a minute to give up.
    let no_v6 = &HTTP_ONLY[2..];
    let args = [&OVMF[..], no_v6, &["-device", &nic], &disk[..]].concat();
    let Some(booted) = Booted::new(SERVER, Target::Disk, &args) else {
        return;
    };
    booted.wait_for_script();
    // What the firmware calls a virtio disk when it starts from it.
    wait_long("the disk", BOOT_TIME_MAX, || {
        let serial = booted.serial();
        serial
            .lines()
            .any(|line| line.contains("starting Boot") && line.contains("Misc Device"))
    });
}
