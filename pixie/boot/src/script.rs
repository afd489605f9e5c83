//! The iPXE scripts. iPXE asks twice: DHCP gives it a URL without the UUID, the answer to that
//! sends it back with the UUID as its own SMBIOS reader tells it, which settles the byte order.

use proto_types::{MacAddr, MachineId};

/// Seconds between two tries of a download, and between two looks of a held machine.
const RETRY_S: u32 = 10;
const HELD_RETRY_S: u32 = 30;

/// Sends iPXE back with its UUID, its platform and its architecture.
#[must_use]
pub fn identify(http_base: &str, mac: MacAddr) -> String {
    let mac = mac.to_string().replace(':', "-");
    format!(
        "#!ipxe\n\
         chain --replace {http_base}/v1/boot.ipxe?mac={mac}&uuid=${{uuid}}\
         &platform=${{platform}}&buildarch=${{buildarch}}\n"
    )
}

/// What hammer is started with.
#[derive(Debug, Clone, Copy)]
pub struct Hammer<'a> {
    pub http_base: &'a str,
    pub machine: MachineId,
    /// The card that it boots over.
    pub mac: MacAddr,
    /// Pixie's own kernel command line.
    pub commandline: &'a str,
    /// Control's addition to it.
    pub extra: &'a str,
}

/// Boots the installer: kernel and initramfs by HTTP, tried again until they come.
#[must_use]
pub fn hammer(hammer: &Hammer<'_>) -> String {
    let Hammer {
        http_base,
        machine,
        mac,
        ..
    } = hammer;
    let commandline = [hammer.commandline, hammer.extra]
        .iter()
        .flat_map(|text| text.split_whitespace())
        .filter(|word| is_plain(word))
        .collect::<Vec<_>>()
        .join(" ");
    format!(
        "#!ipxe\n\
         echo metalmesh: machine {machine} starts the installer\n\
         :again\n\
         imgfree\n\
         kernel {http_base}/kernel initrd=initrd.img metalmesh.pixie={http_base} metalmesh.mac={mac} {commandline} \
         || goto failed\n\
         initrd --name initrd.img {http_base}/initrd || goto failed\n\
         boot || goto failed\n\
         :failed\n\
         echo metalmesh: the installer did not load, trying again in {RETRY_S} s\n\
         sleep {RETRY_S}\n\
         goto again\n"
    )
}

/// Leaves network boot for the disk. EFI firmware goes on to its next boot entry when this one
/// fails, and to its menu when it succeeds; a BIOS may start over instead, so there iPXE starts the
/// first disk itself.
#[must_use]
pub fn disk(machine: MachineId) -> String {
    format!(
        "#!ipxe\n\
         echo metalmesh: machine {machine} starts from its disk\n\
         iseq ${{platform}} pcbios || exit 1\n\
         sanboot --no-describe --drive 0x80 || exit 1\n"
    )
}

/// Boots nothing, and asks again from time to time: the machine goes on by itself when it is
/// released.
#[must_use]
pub fn nothing(http_base: &str, mac: MacAddr, why: &str) -> String {
    let mac = mac.to_string().replace(':', "-");
    let why: String = why
        .chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .collect();
    let why = why.replace(['$', '|', '&'], "");
    format!(
        "#!ipxe\n\
         echo metalmesh: nothing to boot: {why}\n\
         sleep {HELD_RETRY_S}\n\
         chain --replace {http_base}/v1/boot.ipxe?mac={mac}&uuid=${{uuid}}\
         &platform=${{platform}}&buildarch=${{buildarch}}&again=1 || exit 1\n"
    )
}

/// Whether a word of a command line is no iPXE syntax (`${}`, `||`, `&&`, comments, newlines).
fn is_plain(word: &str) -> bool {
    word.bytes()
        .all(|b| b.is_ascii_graphic() && !matches!(b, b'$' | b'|' | b'&' | b'#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "http://10.77.1.2:8080";
    const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 1, 1]);

    fn id() -> MachineId {
        "6f1c0001-0000-4000-8000-525400770101".parse().unwrap()
    }

    #[test]
    fn hammer_has_kernel_initrd_and_one_clean_command_line() {
        let script = hammer(&Hammer {
            http_base: BASE,
            machine: id(),
            mac: MAC,
            commandline: "console=ttyS0,115200n8  panic=30",
            extra: "debug=1 evil=${net0/ip} a || b\nexit",
        });
        assert!(script.starts_with("#!ipxe\n"));
        assert!(script.contains(
            "kernel http://10.77.1.2:8080/kernel initrd=initrd.img \
             metalmesh.pixie=http://10.77.1.2:8080 metalmesh.mac=52:54:00:77:01:01 console=ttyS0,115200n8 panic=30 \
             debug=1 a b exit || goto failed\n"
        ));
        assert!(script.contains("initrd --name initrd.img http://10.77.1.2:8080/initrd ||"));
    }

    #[test]
    fn the_identifying_script_hands_the_variables_on() {
        assert_eq!(
            identify(BASE, MAC),
            "#!ipxe\nchain --replace http://10.77.1.2:8080/v1/boot.ipxe?mac=52-54-00-77-01-01\
             &uuid=${uuid}&platform=${platform}&buildarch=${buildarch}\n"
        );
    }

    #[test]
    fn disk_and_nothing_start_no_installer() {
        assert!(disk(id()).contains("sanboot --no-describe --drive 0x80"));
        let held = nothing(BASE, MAC, "held: wipe failed\n${x} || boot");
        assert!(held.contains("echo metalmesh: nothing to boot: held: wipe failed{x}  boot\n"));
        assert!(held.contains("&again=1"));
        for script in [disk(id()), held] {
            assert!(!script.contains("kernel "));
        }
    }
}
