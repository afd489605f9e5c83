//! The layouts that machines are installed with.

use proto_mesh::{Disk, Filesystem, Layout, LogicalVolume, Partition, Raid, VolumeGroup};

fn part(number: u32, label: &str, size_mib: u64, gpt_type: &str) -> Partition {
    Partition {
        number,
        label: label.into(),
        size_mib,
        gpt_type: gpt_type.into(),
    }
}

fn fs(device: &str, path: &str, format: &str) -> Filesystem {
    Filesystem {
        device: device.into(),
        path: path.into(),
        format: format.into(),
        ..Filesystem::default()
    }
}

fn volume(name: &str, size_mib: u64, kind: &str) -> LogicalVolume {
    LogicalVolume {
        name: name.into(),
        volume_group: "vg0".into(),
        size_mib,
        r#type: kind.into(),
    }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// One disk that boots with both firmwares.
pub(crate) fn single() -> Layout {
    Layout {
        id: "default".into(),
        disks: vec![Disk {
            device: "@serial=DISK-1".into(),
            partitions: vec![
                part(1, "bios", 1, "ef02"),
                part(2, "efi", 256, "ef00"),
                part(3, "root", 0, "8300"),
            ],
        }],
        filesystems: vec![
            fs("@serial=DISK-1:2", "/boot/efi", "vfat"),
            fs("@serial=DISK-1:3", "/", "ext4"),
        ],
        ..Layout::default()
    }
}

/// Everything in a volume group on a mirror of two disks.
pub(crate) fn mirrored() -> Layout {
    let disk = |device: &str| Disk {
        device: device.into(),
        partitions: vec![part(1, "bios", 1, "ef02"), part(2, "raid", 0, "fd00")],
    };
    Layout {
        id: "mirror".into(),
        disks: vec![disk("@serial=DISK-1"), disk("@serial=DISK-2")],
        raids: vec![Raid {
            array_name: "/dev/md0".into(),
            devices: vec!["@serial=DISK-1:2".into(), "@serial=DISK-2:2".into()],
            level: 1,
            // Both are zero: nothing needs to be copied.
            create_options: vec!["--metadata=1.2".into(), "--assume-clean".into()],
            spares: 0,
        }],
        volume_groups: vec![VolumeGroup {
            name: "vg0".into(),
            devices: vec!["/dev/md0".into()],
            tags: vec![],
        }],
        logical_volumes: vec![
            volume("root", 2048, "linear"),
            volume("swap", 256, "linear"),
        ],
        filesystems: vec![
            fs("/dev/vg0/root", "/", "ext4"),
            fs("/dev/vg0/swap", "", "swap"),
        ],
    }
}

/// For devices that udev assembles. systemd gives up after 90 s, in which an emulated machine on a
/// busy host has hardly started udev.
const SLOW_DEVICE: &str = "x-systemd.device-timeout=900";

/// Three disks with a part in each of: RAID 1 with a spare, RAID 0, a volume group.
pub(crate) fn spread() -> Layout {
    const DISKS: [&str; 3] = ["@serial=DISK-1", "@serial=DISK-2", "@serial=DISK-3"];
    let disk = |device: &str| Disk {
        device: device.into(),
        partitions: vec![
            part(1, "bios", 1, "ef02"),
            part(2, "mirror", 2200, "fd00"),
            part(3, "stripes", 200, "fd00"),
            part(4, "volumes", 0, "8e00"),
        ],
    };
    let on = |number: u32| DISKS.map(|disk| format!("{disk}:{number}")).to_vec();
    let raid = |name: &str, number, level, options: &[&str], spares| Raid {
        array_name: name.into(),
        devices: on(number),
        level,
        create_options: texts(options),
        spares,
    };
    let slow = |filesystem: Filesystem| Filesystem {
        mount_options: texts(&[SLOW_DEVICE]),
        ..filesystem
    };
    let labelled = |device: &str, path: &str, format: &str, label: &str| Filesystem {
        label: label.into(),
        ..fs(device, path, format)
    };
    Layout {
        id: "spread".into(),
        disks: DISKS.map(disk).to_vec(),
        raids: vec![
            raid("/dev/md0", 2, 1, &["--metadata=1.2", "--assume-clean"], 1),
            raid("/dev/md1", 3, 0, &["--chunk=64"], 0),
        ],
        volume_groups: vec![VolumeGroup {
            name: "vg0".into(),
            devices: on(4),
            tags: texts(&["data"]),
        }],
        logical_volumes: vec![
            volume("fast", 300, "striped"),
            volume("copied", 100, "raid1"),
            volume("swap", 0, "linear"),
        ],
        filesystems: vec![
            labelled("/dev/md0", "/", "ext4", "root"),
            Filesystem {
                mount_options: texts(&["noatime", "commit=17", SLOW_DEVICE]),
                create_options: texts(&["-I", "128"]),
                ..labelled("/dev/md1", "/scratch", "ext3", "scratch")
            },
            slow(fs("/dev/vg0/fast", "/srv/fast", "ext4")),
            slow(fs("/dev/vg0/copied", "/srv/copied", "ext4")),
            slow(labelled("/dev/vg0/swap", "", "swap", "pages")),
            Filesystem {
                mount_options: texts(&["size=64m", "mode=0700", "nosuid"]),
                ..fs("", "/mem", "tmpfs")
            },
        ],
    }
}
