use proto_mesh::{LogicalVolume, Partition, Raid, VolumeGroup};

use super::*;
use crate::install::selector::SelectorError;

pub(super) fn disk(name: &str, gib: u64) -> Disk {
    Disk {
        name: name.into(),
        size: gib << 30,
        ..Disk::default()
    }
}

fn part(number: u32, label: &str, size_mib: u64, gpt_type: &str) -> Partition {
    Partition {
        number,
        label: label.into(),
        size_mib,
        gpt_type: gpt_type.into(),
    }
}

pub(super) fn fs(device: &str, path: &str, format: &str, label: &str) -> Filesystem {
    Filesystem {
        device: device.into(),
        path: path.into(),
        format: format.into(),
        label: label.into(),
        ..Filesystem::default()
    }
}

/// The built-in layout "default".
pub(super) fn default_layout() -> Layout {
    Layout {
        id: "default".into(),
        disks: vec![proto_mesh::Disk {
            device: "@first".into(),
            partitions: vec![
                part(1, "bios", 1, "ef02"),
                part(2, "efi", 256, "ef00"),
                part(3, "root", 0, "8300"),
            ],
        }],
        filesystems: vec![
            fs("@first:2", "/boot/efi", "vfat", "EFI"),
            fs("@first:3", "/", "ext4", "root"),
        ],
        ..Layout::default()
    }
}

pub(super) fn counter() -> impl FnMut() -> uuid::Uuid {
    let mut n = 0xabcd_0000_u128;
    move || {
        n += 1;
        uuid::Uuid::from_u128(n)
    }
}

fn lines(plan: &Plan) -> Vec<String> {
    plan.stages
        .iter()
        .flat_map(|s| &s.commands)
        .map(Cmd::line)
        .collect()
}

#[test]
fn the_default_layout_becomes_these_commands() {
    for uefi in [false, true] {
        let plan = plan(&default_layout(), &[disk("vda", 8)], uefi, counter()).unwrap();
        assert_eq!(
            lines(&plan),
            [
                "wipefs --all --force /dev/vda",
                "sgdisk --clear --new=1:0:+1M --typecode=1:ef02 --change-name=1:bios \
                 --new=2:0:+256M --typecode=2:ef00 --change-name=2:efi \
                 --new=3:0:0 --typecode=3:8300 --change-name=3:root /dev/vda",
                "partx --update /dev/vda",
                "mkfs.vfat -F 32 -i ABCD0001 -n EFI /dev/vda2",
                "mkfs.ext4 -F -q -U 00000000-0000-0000-0000-0000abcd0002 -L root \
                 -E lazy_itable_init=1,lazy_journal_init=1 /dev/vda3",
            ]
        );
        assert_eq!(
            plan.stages[0].creates,
            ["/dev/vda1", "/dev/vda2", "/dev/vda3"]
        );
        let paths: Vec<&str> = plan.filesystems.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(paths, ["/", "/boot/efi"]);
        assert_eq!(plan.filesystems[1].uuid, "ABCD-0001");
        assert_eq!(
            (plan.primary_disk.as_str(), plan.bios_disks.len()),
            ("/dev/vda", 1)
        );
    }
}

#[test]
fn nvme_partitions_have_their_own_names() {
    let plan = plan(&default_layout(), &[disk("nvme0n1", 8)], true, counter()).unwrap();
    assert_eq!(plan.stages[0].creates[2], "/dev/nvme0n1p3");
    assert_eq!(plan.primary_disk, "/dev/nvme0n1");
}

#[test]
fn the_primary_disk_is_not_one_with_a_shorter_name() {
    let mut layout = default_layout();
    layout.disks[0].device = "/dev/sdaa".into();
    layout.filesystems[0].device = "/dev/sdaa2".into();
    layout.filesystems[1].device = "/dev/sdaa3".into();
    let data = proto_mesh::Disk {
        device: "/dev/sda".into(),
        partitions: vec![part(1, "data", 0, "8300")],
    };
    layout.disks.insert(0, data);
    let disks = [disk("sda", 8), disk("sdaa", 8)];
    let plan = plan(&layout, &disks, true, counter()).unwrap();
    assert_eq!(plan.primary_disk, "/dev/sdaa");
}

#[test]
fn mirrored_disks_with_volumes() {
    let one = |device: &str| proto_mesh::Disk {
        device: device.into(),
        partitions: vec![part(1, "", 1, "ef02"), part(2, "", 0, "fd00")],
    };
    let layout = Layout {
        disks: vec![one("/dev/sda"), one("/dev/sdb")],
        raids: vec![Raid {
            array_name: "/dev/md0".into(),
            devices: vec!["/dev/sda2".into(), "/dev/sdb:2".into()],
            level: 1,
            create_options: vec!["--metadata=1.2".into()],
            spares: 0,
        }],
        volume_groups: vec![VolumeGroup {
            name: "vg".into(),
            devices: vec!["/dev/md0".into()],
            tags: vec!["os".into()],
        }],
        logical_volumes: vec![
            LogicalVolume {
                name: "root".into(),
                volume_group: "vg".into(),
                size_mib: 4096,
                r#type: "linear".into(),
            },
            LogicalVolume {
                name: "swap".into(),
                volume_group: "vg".into(),
                size_mib: 0,
                r#type: String::new(),
            },
        ],
        filesystems: vec![
            fs("/dev/vg/root", "/", "ext4", ""),
            fs("/dev/vg/swap", "", "swap", ""),
            fs("", "/tmp", "tmpfs", ""),
        ],
        ..Layout::default()
    };
    let disks = [disk("sda", 8), disk("sdb", 8)];
    let plan = plan(&layout, &disks, false, counter()).unwrap();
    let lines = lines(&plan);
    assert!(
        lines.contains(
            &"mdadm --create /dev/md0 --run --force --homehost=any --level=1 --raid-devices=2 \
          --metadata=1.2 /dev/sda2 /dev/sdb2"
                .to_string()
        )
    );
    assert!(lines.contains(&"vgcreate --yes --addtag os vg /dev/md0".to_string()));
    assert!(lines.contains(
        &"lvcreate --yes --wipesignatures y --extents 100%FREE --name swap vg".to_string()
    ));
    let order: Vec<&str> = plan.filesystems.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(order, ["/", "/tmp", ""]);
    assert_eq!(plan.bios_disks, ["/dev/sda", "/dev/sdb"]);
}

#[test]
fn what_cannot_work_is_refused() {
    let change = |f: &dyn Fn(&mut Layout)| {
        let mut layout = default_layout();
        f(&mut layout);
        layout
    };
    let vda = || [disk("vda", 8)];
    let refuse = |layout: &Layout, uefi| plan(layout, &vda(), uefi, counter()).unwrap_err();

    assert_eq!(
        plan(&default_layout(), &[], true, counter()).unwrap_err(),
        LayoutError::Selector(SelectorError::NoDisk)
    );
    let big = change(&|l| l.disks[0].partitions[1].size_mib = 9000);
    assert!(matches!(
        refuse(&big, true),
        LayoutError::TooSmall { need_mib: 9005, .. }
    ));
    let rest = change(&|l| l.disks[0].partitions[1].size_mib = 0);
    assert!(matches!(
        refuse(&rest, true),
        LayoutError::RestNotLast { number: 2, .. }
    ));
    let twice = change(&|l| l.disks[0].partitions[1].number = 1);
    assert!(matches!(
        refuse(&twice, true),
        LayoutError::Number { number: 1, .. }
    ));
    let same = change(&|l| {
        l.disks.push(proto_mesh::Disk {
            device: "/dev/vda".into(),
            partitions: vec![],
        })
    });
    assert!(matches!(refuse(&same, true), LayoutError::SameDisk(..)));
    let unknown = change(&|l| l.filesystems[0].device = "@first:9".into());
    assert_eq!(
        refuse(&unknown, true),
        LayoutError::Device("@first:9".into())
    );
    let no_root = change(&|l| drop(l.filesystems.pop()));
    assert_eq!(refuse(&no_root, true), LayoutError::Missing("/"));
    let btrfs = change(&|l| l.filesystems[1].format = "btrfs".into());
    assert!(matches!(refuse(&btrfs, true), LayoutError::Format { .. }));
    let vfat_root = change(&|l| l.filesystems[1].format = "vfat".into());
    assert!(matches!(
        refuse(&vfat_root, true),
        LayoutError::Format { .. }
    ));
    for path in ["/a/../b", "relative", "/a b", "/a\nUUID=x / ext4"] {
        let odd = change(&|l| l.filesystems[0].path = path.into());
        assert_eq!(refuse(&odd, true), LayoutError::Path { path: path.into() });
    }
    let no_efi = change(&|l| drop(l.filesystems.remove(0)));
    assert_eq!(refuse(&no_efi, true), LayoutError::NoEfi);
    assert!(plan(&no_efi, &vda(), false, counter()).is_ok());
    let no_bios = change(&|l| l.disks[0].partitions[0].gpt_type = "8300".into());
    assert_eq!(refuse(&no_bios, false), LayoutError::NoBiosBoot);
    assert!(plan(&no_bios, &vda(), true, counter()).is_ok());
}

/// Three disks: a mirror with a spare, stripes, and a volume group over all of them.
pub(super) fn every_kind() -> Layout {
    let one = |device: &str| proto_mesh::Disk {
        device: device.into(),
        partitions: vec![
            part(1, "", 1, "ef02"),
            part(2, "", 2048, "fd00"),
            part(3, "", 256, "fd00"),
            part(4, "", 0, "8e00"),
        ],
    };
    let on = |number: u32| {
        ["sda", "sdb", "sdc"]
            .map(|d| format!("/dev/{d}:{number}"))
            .to_vec()
    };
    let raid = |name: &str, number, level, spares| Raid {
        array_name: name.into(),
        devices: on(number),
        level,
        create_options: vec![],
        spares,
    };
    let volume = |name: &str, size_mib, kind: &str| LogicalVolume {
        name: name.into(),
        volume_group: "vg0".into(),
        size_mib,
        r#type: kind.into(),
    };
    Layout {
        disks: vec![one("/dev/sda"), one("/dev/sdb"), one("/dev/sdc")],
        raids: vec![raid("/dev/md0", 2, 1, 1), raid("/dev/md1", 3, 0, 0)],
        volume_groups: vec![VolumeGroup {
            name: "vg0".into(),
            devices: on(4),
            tags: vec!["data".into()],
        }],
        logical_volumes: vec![
            volume("striped", 300, "striped"),
            volume("copied", 100, "raid1"),
            volume("rest", 0, "linear"),
        ],
        filesystems: vec![
            fs("/dev/md0", "/", "ext4", "root"),
            fs("/dev/md1", "/scratch", "ext3", "scratch"),
            fs("/dev/vg0/striped", "/fast", "ext4", ""),
            fs("/dev/vg0/rest", "", "swap", "swap"),
            fs("", "/mem", "tmpfs", ""),
        ],
        ..Layout::default()
    }
}

pub(super) fn three() -> [Disk; 3] {
    ["sda", "sdb", "sdc"].map(|name| disk(name, 8))
}

#[test]
fn spares_stripes_and_copies_become_these_commands() {
    let plan = plan(&every_kind(), &three(), false, counter()).unwrap();
    let lines = lines(&plan);
    for want in [
        "mdadm --create /dev/md0 --run --force --homehost=any --level=1 --raid-devices=2 \
         --spare-devices=1 /dev/sda2 /dev/sdb2 /dev/sdc2",
        "mdadm --create /dev/md1 --run --force --homehost=any --level=0 --raid-devices=3 \
         /dev/sda3 /dev/sdb3 /dev/sdc3",
        "vgcreate --yes --addtag data vg0 /dev/sda4 /dev/sdb4 /dev/sdc4",
        "lvcreate --yes --wipesignatures y --size 300m --type striped --stripes 3 --name striped vg0",
        "lvcreate --yes --wipesignatures y --size 100m --type raid1 --mirrors 1 --name copied vg0",
        "mkfs.ext3 -F -q -U 00000000-0000-0000-0000-0000abcd0002 -L scratch \
         -E lazy_itable_init=1,lazy_journal_init=1 /dev/md1",
    ] {
        assert!(lines.iter().any(|line| line == want), "{want}\n{lines:#?}");
    }
}
