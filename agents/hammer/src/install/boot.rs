//! The boot loader: GRUB for BIOS and UEFI, installed by the tools of the initramfs, so that no
//! program of the image runs.
//!
//! No entry is written to the firmware's boot list: a machine boots from the network first, and
//! control decides there whether it continues from its disk. UEFI finds the loader at the path for
//! removable media.

use super::layout::{Fs, Plan};
use crate::cmd::Cmd;

/// Mount point of the new system.
pub(crate) const TARGET: &str = "/mnt";
/// GRUB's modules in the initramfs, one directory per platform.
const GRUB_LIB: &str = "/usr/lib/grub";
/// Timeout of GRUB's menu, seconds.
const MENU_S: u32 = 1;
/// Speed of a serial console whose command line names none, bits per second.
const SERIAL_SPEED: u32 = 115_200;
/// Modules that the core image needs to find its configuration, and the menu to load a kernel.
/// Copying few modules keeps this step short.
const MODULES: &str = "all_video biosdisk boot cat chain configfile diskfilter echo ext2 fat gfxterm \
    gzio halt linux ls lvm mdraid09 mdraid1x minicmd normal part_gpt part_msdos probe reboot search \
    search_fs_uuid search_label serial sleep terminal test true";

/// A kernel of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Path within the file system that holds it, as GRUB sees it.
    pub image: String,
    /// Path of its initrd, likewise. Empty if there is none.
    pub initrd: String,
}

/// Finds the kernel to boot. `names` are the files in /boot; `links` is `true` if `/vmlinuz` and
/// `/initrd.img` exist, which packages keep up to date. `None` if there is no kernel.
#[must_use]
pub fn kernel(names: &[String], links: bool, separate_boot: bool) -> Option<Kernel> {
    // With a separate /boot the links lead from the root file system into another one, which
    // GRUB cannot follow.
    if links && !separate_boot {
        return Some(Kernel {
            image: "/vmlinuz".into(),
            initrd: "/initrd.img".into(),
        });
    }
    let prefix = if separate_boot { "" } else { "/boot" };
    let versions = names.iter().filter_map(|n| n.strip_prefix("vmlinuz-"));
    let newest = versions.max_by_key(|v| version_key(v))?;
    // The names of Debian, and of Fedora and its relatives.
    let initrd = [
        format!("initrd.img-{newest}"),
        format!("initramfs-{newest}.img"),
    ];
    let initrd = initrd.into_iter().find(|n| names.contains(n));
    Some(Kernel {
        image: format!("{prefix}/vmlinuz-{newest}"),
        initrd: initrd.map_or_else(String::new, |n| format!("{prefix}/{n}")),
    })
}

/// Rank of a number in a sort key after "rc": below the end of the version.
const CANDIDATE: u8 = 0;
/// Rank of the end of a version.
const END: u8 = 1;
/// Rank of any other number.
const NUMBER: u8 = 2;

/// Sort key of kernel versions: 6.1.0-rc1, 6.1.0, 6.1.0-9, 6.1.0-56.
fn version_key(version: &str) -> Vec<(u8, u64)> {
    let mut key = Vec::new();
    let mut rest = version;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| !c.is_ascii_digit());
        let (digits, after) = from.split_at(end.unwrap_or(from.len()));
        let rank = if before.ends_with("rc") {
            CANDIDATE
        } else {
            NUMBER
        };
        key.push((rank, digits.parse().unwrap_or(u64::MAX)));
        rest = after;
    }
    key.push((END, 0));
    key
}

/// Command line of the installed kernel. Without an initrd the kernel itself must find the root
/// file system, which it can only by the partition's UUID.
#[must_use]
pub fn command_line(root: &Fs, partuuid: Option<&str>, inherited: &[String]) -> String {
    let mut words = vec![match partuuid {
        Some(id) => format!("root=PARTUUID={id}"),
        None => format!("root=UUID={}", root.uuid),
    }];
    words.push("ro".to_string());
    words.extend(inherited.iter().cloned());
    words.join(" ")
}

/// The content of /boot/grub/grub.cfg.
#[must_use]
pub fn grub_cfg(kernel: &Kernel, boot_uuid: &str, command_line: &str) -> String {
    let mut out = String::from("# Written at installation. A kernel's own update replaces it.\n");
    out.push_str(&format!("set timeout={MENU_S}\nset default=0\n"));
    if let Some(serial) = serial_command(command_line) {
        out.push_str(&format!("{serial}\n"));
        out.push_str("terminal_input console serial\nterminal_output console serial\n");
    }
    out.push_str("insmod part_gpt\ninsmod ext2\n");
    // By UUID: GRUB numbers the disks in the firmware's order, which changes with the boot device.
    out.push_str(&format!(
        "search --no-floppy --fs-uuid --set=root {boot_uuid}\n"
    ));
    out.push_str("menuentry 'Linux' {\n");
    out.push_str(&format!("  linux {} {command_line}\n", kernel.image));
    if !kernel.initrd.is_empty() {
        out.push_str(&format!("  initrd {}\n", kernel.initrd));
    }
    out.push_str("}\n");
    out
}

/// GRUB's command for the kernel's last serial console, with unit and speed of
/// `console=ttySUNIT,SPEED…` (the kernel's documentation, serial-console). Without a speed it is
/// the usual one of serial over LAN. `None` if the kernel has no serial console: GRUB stops at a
/// terminal that does not exist.
fn serial_command(command_line: &str) -> Option<String> {
    let consoles = command_line.split(' ');
    let mut consoles = consoles.filter_map(|word| word.strip_prefix("console=ttyS"));
    let (unit, options) = consoles
        .next_back()
        .map(|last| last.split_once(',').unwrap_or((last, "")))?;
    let unit: u8 = unit.parse().ok()?;
    let digits = options.split(|c: char| !c.is_ascii_digit()).next();
    let speed = digits.and_then(|speed| speed.parse::<u32>().ok());
    let speed = speed.unwrap_or(SERIAL_SPEED);
    Some(format!("serial --unit={unit} --speed={speed}"))
}

/// The content of /etc/default/grub.d/metalmesh.cfg, for images with a GRUB package, which writes
/// grub.cfg anew at each kernel update.
#[must_use]
pub fn grub_default(command_line: &str) -> String {
    // `grub-mkconfig` adds these two itself, for the root file system that it finds.
    let own: Vec<&str> = command_line
        .split(' ')
        .filter(|w| !w.starts_with("root=") && *w != "ro")
        .collect();
    let own = own.join(" ");
    let terminal = serial_command(command_line).map_or_else(String::new, |serial| {
        format!("GRUB_TERMINAL=\"console serial\"\nGRUB_SERIAL_COMMAND=\"{serial}\"\n")
    });
    format!("GRUB_CMDLINE_LINUX=\"{own}\"\n{terminal}GRUB_TIMEOUT={MENU_S}\n")
}

/// The runs of grub-install for the machine's firmware: one for UEFI, one per disk for BIOS.
#[must_use]
pub fn install_commands(plan: &Plan, uefi: bool) -> Vec<Cmd> {
    let common = |platform: &str| {
        vec![
            format!("--target={platform}"),
            format!("--directory={GRUB_LIB}/{platform}"),
            format!("--boot-directory={TARGET}/boot"),
            "--no-floppy".to_string(),
            "--locales=".to_string(),
            "--themes=".to_string(),
            "--fonts=".to_string(),
        ]
    };
    let modules = |unwanted: &[&str]| {
        let wanted: Vec<&str> = MODULES
            .split_whitespace()
            .filter(|m| !unwanted.contains(m))
            .collect();
        format!("--install-modules={}", wanted.join(" "))
    };
    if uefi {
        let mut args = common("x86_64-efi");
        // This module exists for BIOS only.
        args.push(modules(&["biosdisk"]));
        args.push(format!("--efi-directory={TARGET}/boot/efi"));
        // NVRAM is left alone: an entry there would come before the network boot that control
        // relies on, and would survive the tenant.
        args.extend(["--removable".to_string(), "--no-nvram".to_string()]);
        return vec![Cmd::new("grub-install", args)];
    }
    // All BIOS disks of the layout: a mirror must boot after the loss of either disk.
    let each = |disk: &String| {
        let mut args = common("i386-pc");
        args.push(modules(&[]));
        args.push(disk.clone());
        Cmd::new("grub-install", args)
    };
    plan.bios_disks.iter().map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_newest_kernel_is_found() {
        let boot = names(&[
            "initrd.img-6.1.0-56-cloud-amd64",
            "vmlinuz-6.1.0-56-cloud-amd64",
            "vmlinuz-6.1.0-9-cloud-amd64",
        ]);
        let k = kernel(&boot, false, false).unwrap();
        assert_eq!(k.image, "/boot/vmlinuz-6.1.0-56-cloud-amd64");
        assert_eq!(k.initrd, "/boot/initrd.img-6.1.0-56-cloud-amd64");
        assert_eq!(kernel(&boot, true, false).unwrap().image, "/vmlinuz");
        assert_eq!(
            kernel(&boot, true, true).unwrap().image,
            "/vmlinuz-6.1.0-56-cloud-amd64"
        );
        assert_eq!(
            kernel(&names(&["vmlinuz-1"]), false, false).unwrap().initrd,
            ""
        );
        assert_eq!(kernel(&names(&["config-1"]), false, false), None);
    }

    #[test]
    fn configuration() {
        let root = Fs {
            device: "/dev/vda3".into(),
            path: "/".into(),
            format: "ext4".into(),
            uuid: "u-1".into(),
            mount_options: vec![],
        };
        let line = command_line(&root, None, &names(&["console=ttyS0", "no_timer_check"]));
        assert_eq!(line, "root=UUID=u-1 ro console=ttyS0 no_timer_check");
        assert_eq!(
            command_line(&root, Some("p-1"), &[]),
            "root=PARTUUID=p-1 ro"
        );
        let k = Kernel {
            image: "/vmlinuz".into(),
            initrd: "/initrd.img".into(),
        };
        let cfg = grub_cfg(&k, "u-1", &line);
        assert!(cfg.contains("  linux /vmlinuz root=UUID=u-1 ro console=ttyS0 no_timer_check\n"));
        assert!(cfg.contains("  initrd /initrd.img\n") && cfg.contains("--set=root u-1\n"));
        assert!(cfg.contains("serial --unit=0"));
        assert!(!grub_cfg(&k, "u-1", "root=x").contains("serial"));
        assert_eq!(
            grub_default(&line),
            "GRUB_CMDLINE_LINUX=\"console=ttyS0 no_timer_check\"\n\
             GRUB_TERMINAL=\"console serial\"\n\
             GRUB_SERIAL_COMMAND=\"serial --unit=0 --speed=115200\"\nGRUB_TIMEOUT=1\n"
        );
        assert_eq!(
            grub_default("root=x ro quiet"),
            "GRUB_CMDLINE_LINUX=\"quiet\"\nGRUB_TIMEOUT=1\n"
        );
    }

    #[test]
    fn versions_are_in_the_order_of_their_releases() {
        let order = [
            "6.1.0-rc1-amd64",
            "6.1.0~rc2",
            "6.1.0",
            "6.1.0-9-amd64",
            "6.1.0-56-cloud-amd64",
            "6.1.1",
            "6.10.0-rc1",
            "6.10.0",
        ];
        for pair in order.windows(2) {
            assert!(version_key(pair[0]) < version_key(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn grub_uses_the_kernels_serial_console() {
        for (line, wanted) in [
            (
                "console=ttyS1,57600n8",
                Some("serial --unit=1 --speed=57600"),
            ),
            (
                "console=ttyS0 console=tty0",
                Some("serial --unit=0 --speed=115200"),
            ),
            (
                "console=ttyS0,115200 console=ttyS2,9600",
                Some("serial --unit=2 --speed=9600"),
            ),
            ("console=tty0 quiet", None),
            ("console=ttySAC0", None),
            ("comment=ttyS0", None),
        ] {
            assert_eq!(serial_command(line).as_deref(), wanted, "{line}");
        }
    }

    #[test]
    fn one_loader_for_each_firmware() {
        let plan = Plan {
            stages: vec![],
            filesystems: vec![],
            disks: vec![],
            bios_disks: names(&["/dev/sda", "/dev/sdb"]),
            primary_disk: String::new(),
        };
        let bios = install_commands(&plan, false);
        assert_eq!(bios.len(), 2);
        assert!(
            bios[1]
                .line()
                .starts_with("grub-install --target=i386-pc --directory=/usr/lib/grub/i386-pc")
        );
        assert!(bios[1].line().ends_with("/dev/sdb"));
        let uefi = install_commands(&plan, true);
        assert_eq!(uefi.len(), 1);
        assert!(
            uefi[0]
                .line()
                .contains("--efi-directory=/mnt/boot/efi --removable --no-nvram")
        );
        assert!(!uefi[0].line().contains("biosdisk"));
    }
}
