//! The iPXE scripts.
//!
//! iPXE requests its script twice. DHCP gives it a URL without the UUID; the answer sends it back
//! with the UUID from its own SMBIOS reader. The UUID in DHCP option 97 is not used here, because
//! firmware disagrees on its byte order.

use proto_types::{MacAddr, MachineId};

/// Wait of a machine whose installer did not load or is not available yet, s.
const RETRY_S: u32 = 10;
/// Poll interval of a machine that is held out of service, s.
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

/// The parameters of a script that boots the installer.
#[derive(Debug, Clone, Copy)]
pub struct Hammer<'a> {
    pub http_base: &'a str,
    pub machine: MachineId,
    /// The card that the machine boots over.
    pub mac: MacAddr,
    /// Key of the pair of kernel and image. `None` means the files of pixie's configuration.
    pub pair: Option<&'a str>,
    /// Kernel command line, in this order. Words with iPXE syntax are dropped.
    pub commandline: [&'a str; 2],
}

/// Boots the installer: kernel and initramfs by HTTP. If one fails to load the machine requests its
/// script again: the pair may have been replaced meanwhile, and its files are gone then.
#[must_use]
pub fn hammer(hammer: &Hammer<'_>) -> String {
    let Hammer {
        http_base,
        machine,
        mac,
        ..
    } = hammer;
    let (kernel, image) = match hammer.pair {
        Some(key) => (format!("/boot/{key}/kernel"), format!("/boot/{key}/image")),
        None => ("/kernel".to_owned(), "/initrd".to_owned()),
    };
    let again = again(http_base, *mac);
    // The command line comes from an operator, and iPXE expands `${…}` and splits at `||` and `&&`.
    // A word of that kind could change the script, so it is dropped.
    let commandline = hammer
        .commandline
        .iter()
        .flat_map(|text| text.split_whitespace())
        .filter(|word| is_plain(word))
        .collect::<Vec<_>>()
        .join(" ");
    // `initrd=` repeats the name that iPXE gives the image: with UEFI the kernel loads its initrd
    // by that name.
    // `imgfree` drops the images of an earlier attempt; iPXE would pass them to the kernel as well. The
    // script never ends by itself: a machine in the shell of iPXE would wait for an operator.
    format!(
        "#!ipxe\n\
         echo metalmesh: machine {machine} starts the installer\n\
         imgfree\n\
         kernel {http_base}{kernel} initrd=initrd.img metalmesh.pixie={http_base} metalmesh.mac={mac} {commandline} \
         || goto failed\n\
         initrd --name initrd.img {http_base}{image} || goto failed\n\
         boot || goto failed\n\
         :failed\n\
         echo metalmesh: the installer did not load, trying again in {RETRY_S} s\n\
         sleep {RETRY_S}\n\
         {again} || goto failed\n"
    )
}

/// Requests the script again. `again=1` marks that this is not a new boot.
fn again(http_base: &str, mac: MacAddr) -> String {
    let mac = mac.to_string().replace(':', "-");
    // `--replace` ends the running script. A machine that polls for weeks would otherwise nest one
    // script in the other until its memory is full.
    format!(
        "chain --replace {http_base}/v1/boot.ipxe?mac={mac}&uuid=${{uuid}}\
         &platform=${{platform}}&buildarch=${{buildarch}}&again=1"
    )
}

/// Leaves network boot for the disk. EFI firmware continues with its next boot entry if this one
/// fails, and opens its menu if it succeeds. A BIOS may start over instead, so there iPXE starts
/// the first disk itself.
#[must_use]
pub fn disk(machine: MachineId) -> String {
    format!(
        // `--no-describe`: the disk is local. A boot table (iBFT) would have the system look for it
        // on a network.
        "#!ipxe\n\
         echo metalmesh: machine {machine} starts from its disk\n\
         iseq ${{platform}} pcbios || exit 1\n\
         sanboot --no-describe --drive 0x80 || exit 1\n"
    )
}

/// Boots nothing and polls, so that the machine continues by itself once it is released.
#[must_use]
pub fn nothing(http_base: &str, mac: MacAddr, why: &str) -> String {
    let (why, again) = (plain_text(why), again(http_base, mac));
    format!(
        "#!ipxe\n\
         echo metalmesh: nothing to boot: {why}\n\
         sleep {HELD_RETRY_S}\n\
         {again} || exit 1\n"
    )
}

/// Boots nothing yet and polls soon, because the installer is being fetched. Unlike [`nothing`] it
/// keeps polling while pixie does not answer, as a machine does whose installer does not load.
#[must_use]
pub fn not_yet(http_base: &str, mac: MacAddr, why: &str) -> String {
    let (why, again) = (plain_text(why), again(http_base, mac));
    format!(
        "#!ipxe\n\
         :wait\n\
         echo metalmesh: nothing to boot yet: {why}\n\
         sleep {RETRY_S}\n\
         {again} || goto wait\n"
    )
}

/// Removes line breaks and iPXE syntax from a text.
fn plain_text(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .filter(|c| !matches!(c, '$' | '|' | '&'))
        .collect()
}

/// `true` if a word has no iPXE syntax (`${}`, `||`, `&&`, comments, newlines).
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
            pair: None,
            commandline: [
                "console=ttyS0,115200n8  panic=30",
                "debug=1 evil=${net0/ip} a || b\nexit",
            ],
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
    fn kernel_and_image_are_of_one_pair_and_a_failure_asks_anew() {
        let script = hammer(&Hammer {
            http_base: BASE,
            machine: id(),
            mac: MAC,
            pair: Some("0f1e"),
            commandline: ["console=ttyS1 quiet", ""],
        });
        assert!(
            script.contains("kernel http://10.77.1.2:8080/boot/0f1e/kernel initrd=initrd.img ")
        );
        assert!(script.contains("initrd --name initrd.img http://10.77.1.2:8080/boot/0f1e/image "));
        assert!(script.contains(" metalmesh.mac=52:54:00:77:01:01 console=ttyS1 quiet || goto"));
        let (_, failed) = script.split_once(":failed\n").unwrap();
        assert!(failed.contains("chain --replace http://10.77.1.2:8080/v1/boot.ipxe?mac=52-54-00"));
        assert!(failed.ends_with("&again=1 || goto failed\n"));
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
        let waits = not_yet(BASE, MAC, "kernel: 404 ${x}\n|| boot");
        assert!(waits.contains("echo metalmesh: nothing to boot yet: kernel: 404 {x} boot\n"));
        assert!(waits.ends_with("&again=1 || goto wait\n"));
        for script in [disk(id()), held, waits] {
            assert!(!script.contains("kernel "));
        }
    }
}
