//! Real firmware and real iPXE. They take 10 to 40 s each, so they run only when asked for
//! (`--ignored`); the lab boots machines in this way each time.

use std::path::Path;
use std::time::Duration;

use crate::world::*;

const BOOT_TIME_MAX: Duration = Duration::from_secs(150);

fn boots(config: &str, firmware: &[&str], romfile: &str) {
    if skipped() || !have("qemu-system-x86_64") || !Path::new("/usr/lib/ipxe/ipxe.efi").exists() {
        return;
    }
    let world = World::new();
    for name in ["undionly.kpxe", "snponly.efi", "ipxe.efi"] {
        std::fs::copy(
            Path::new("/usr/lib/ipxe").join(name),
            world.dir.path().join(name),
        )
        .unwrap();
    }
    let vars = world.dir.path().join("vars.fd");
    let vars_drive = format!("if=pflash,format=raw,unit=1,file={}", vars.display());
    let mut args: Vec<&str> = firmware.to_vec();
    if !firmware.is_empty() {
        std::fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &vars).unwrap();
        args.extend(["-drive", &vars_drive]);
    }
    let nic = format!("virtio-net-pci,netdev=n0,mac={MAC},bootindex=1{romfile}");
    args.extend(["-device", &nic]);
    let pixie = Running::start(&world, world.config(config));
    world.bridge();
    let _other = (config == PROXY).then(|| world.dnsmasq());
    let _machine = world.machine(&args);
    let serial = || {
        let bytes = std::fs::read(world.dir.path().join("serial")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let started = std::time::Instant::now();
    wait_long("the script", BOOT_TIME_MAX, || {
        !pixie.control.seen.lock().unwrap().is_empty()
    });
    eprintln!("script after {:?}", started.elapsed());
    let seen = pixie.control.seen.lock().unwrap()[0];
    assert_eq!(
        seen.machine.to_string(),
        UUID,
        "option 97 and iPXE agree with the firmware"
    );
    assert_eq!(seen.mac, MAC);
    assert_eq!(seen.arch, if firmware.is_empty() { 0 } else { 7 });
    wait_long("the kernel", BOOT_TIME_MAX, || serial().contains("/kernel"));
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
#[ignore = "boots a virtual machine"]
fn a_bios_machine_with_ipxe_in_its_card() {
    boots(SERVER, &[], "");
}

#[test]
#[ignore = "boots a virtual machine"]
fn a_uefi_machine_by_its_own_pxe() {
    boots(SERVER, &OVMF, ",romfile=");
}

#[test]
#[ignore = "boots a virtual machine"]
fn a_uefi_machine_by_http() {
    boots(SERVER, &[&OVMF[..], &HTTP_ONLY[..]].concat(), ",romfile=");
}

#[test]
#[ignore = "boots a virtual machine"]
fn a_bios_machine_beside_another_dhcp_server() {
    if have("dnsmasq") {
        boots(PROXY, &[], "");
    }
}

#[test]
#[ignore = "boots a virtual machine"]
fn a_uefi_machine_beside_another_dhcp_server() {
    if have("dnsmasq") {
        boots(PROXY, &OVMF, ",romfile=");
    }
}

#[test]
#[ignore = "boots a virtual machine"]
fn a_uefi_machine_by_http_beside_another_dhcp_server() {
    if have("dnsmasq") {
        boots(PROXY, &[&OVMF[..], &HTTP_ONLY[..]].concat(), ",romfile=");
    }
}
