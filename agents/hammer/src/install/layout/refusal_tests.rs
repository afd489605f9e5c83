//! Layouts that are refused before a byte is written: each case breaks one that is good.

use super::tests::{counter, default_layout, disk, every_kind, fs, three};
use super::*;

/// Words of the refusal, and the change that breaks the layout.
type Case = (&'static str, fn(&mut Layout));

const ARRAYS_AND_VOLUMES: [Case; 27] = [
    ("level 5", |l| l.raids[0].level = 5),
    ("cannot have spares", |l| l.raids[1].spares = 1),
    ("fewer than 2 active", |l| l.raids[0].spares = 2),
    ("fewer than 2 active", |l| l.raids[0].spares = u32::MAX),
    ("fewer than 2 active", |l| l.raids[0].devices.clear()),
    ("no device", |l| l.raids[0].devices[0] = "/dev/sdz:2".into()),
    ("used twice", |l| {
        l.raids[0].devices[0] = "/dev/sdb:2".into()
    }),
    ("used twice", |l| l.raids[1].array_name = "/dev/md0".into()),
    ("used twice", |l| {
        l.volume_groups[0].devices[0] = "/dev/sda2".into()
    }),
    ("cannot be the name of an array", |l| {
        l.raids[0].array_name = "--scan".into()
    }),
    ("cannot be the name of an array", |l| {
        l.raids[0].array_name = "/dev/sda2".into()
    }),
    ("cannot be the name of an array", |l| {
        l.raids[0].array_name = "/dev/md/../sda".into()
    }),
    ("slash first", |l| {
        l.raids[0].create_options = vec!["/dev/sda1".into()]
    }),
    ("no devices", |l| l.volume_groups[0].devices.clear()),
    ("needs 2 devices", |l| {
        l.volume_groups[0].devices.truncate(1)
    }),
    ("needs 2 devices", |l| {
        l.logical_volumes.remove(0);
        l.filesystems.remove(2);
        l.volume_groups[0].devices.truncate(1);
    }),
    ("cannot be the name of a volume group", |l| {
        l.volume_groups[0].name = "-vg".into()
    }),
    ("cannot be the name of a tag", |l| {
        l.volume_groups[0].tags = vec!["-x".into()]
    }),
    ("used twice", |l| {
        l.volume_groups.push(l.volume_groups[0].clone())
    }),
    ("cannot be the name of a volume", |l| {
        l.logical_volumes[0].name = "../x".into()
    }),
    ("LVM reserves it", |l| {
        l.logical_volumes[0].name = "a_rimage_0".into()
    }),
    ("118 bytes", |l| l.logical_volumes[0].name = "a-".repeat(40)),
    ("used twice", |l| {
        l.logical_volumes[1].name = "striped".into()
    }),
    ("does not have", |l| {
        l.logical_volumes[0].volume_group = "vg1".into()
    }),
    ("unknown type", |l| {
        l.logical_volumes[0].r#type = "thin".into()
    }),
    ("not its last", |l| l.logical_volumes[0].size_mib = 0),
    ("used twice", |l| {
        l.filesystems[1].device = "/dev/md0".into()
    }),
];

const WORDS: [Case; 14] = [
    ("slash first", |l| {
        l.filesystems[1].create_options = vec!["/dev/vda2".into()]
    }),
    ("128 printable", |l| {
        l.filesystems[1].create_options = vec![String::new()]
    }),
    ("128 printable", |l| {
        l.filesystems[1].create_options = vec!["x".repeat(129)]
    }),
    ("spaces and #", |l| {
        l.filesystems[1].mount_options = vec!["ro /x".into()]
    }),
    ("spaces and #", |l| {
        l.filesystems[1].mount_options = vec!["ro\nUUID=x".into()]
    }),
    ("of a file system", |l| {
        l.filesystems[1].label = "x".repeat(17)
    }),
    ("of a file system", |l| {
        l.filesystems[0].label = "twelve-bytes".into()
    }),
    ("of a file system", |l| l.filesystems[1].label = "-L".into()),
    ("two file systems", |l| l.filesystems[0].path = "/".into()),
    ("as a mount point", |l| {
        l.filesystems.push(fs("", "", "tmpfs", ""))
    }),
    ("used twice", |l| {
        l.filesystems[0].device = "@first:3".into()
    }),
    ("a partition type", |l| {
        l.disks[0].partitions[0].gpt_type = "8300 --zap".into()
    }),
    ("of a partition", |l| {
        l.disks[0].partitions[0].label = "a\nb".into()
    }),
    ("the layout needs", |l| {
        l.disks[0].partitions[1].size_mib = u64::MAX
    }),
];

fn check(cases: &[Case], good: impl Fn() -> Layout, disks: &[Disk], uefi: bool) {
    assert!(plan(&good(), disks, uefi, counter()).is_ok());
    for (want, change) in cases {
        let mut layout = good();
        change(&mut layout);
        let error = plan(&layout, disks, uefi, counter())
            .unwrap_err()
            .to_string();
        assert!(error.contains(want), "{want}: {error}");
    }
}

#[test]
fn arrays_and_volumes_that_cannot_work_are_refused() {
    check(&ARRAYS_AND_VOLUMES, every_kind, &three(), false);
}

#[test]
fn words_of_file_systems_and_partitions_that_tools_would_misread_are_refused() {
    check(&WORDS, default_layout, &[disk("vda", 8)], true);
}
