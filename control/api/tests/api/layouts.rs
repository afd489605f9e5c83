//! Filesystem layouts that no machine can be installed with, over gRPC.

use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tonic::Code;

use crate::node::Node;

/// The field of the refusal, and what breaks a good layout.
type Case = (&'static str, fn(&mut api::FilesystemLayout));

const CASES: [Case; 15] = [
    ("raid.spares", |l| l.raid[1].spares = 1),
    ("raid.spares", |l| l.raid[0].spares = -1),
    ("raid.devices", |l| l.raid[0].spares = 2),
    ("raid.devices", |l| l.raid[0].spares = 4),
    ("raid.devices", |l| {
        l.raid[1].devices[0] = "/dev/sdb2".into()
    }),
    ("raid.array_name", |l| {
        l.raid[0].array_name = "--scan".into()
    }),
    ("raid.array_name", |l| {
        l.raid[1].array_name = "/dev/md0".into()
    }),
    ("raid.create_options", |l| {
        l.raid[0].create_options = vec!["/dev/sda".into()];
    }),
    ("volume_groups.name", |l| {
        l.volume_groups[0].name = "-vg".into()
    }),
    ("volume_groups.devices", |l| {
        l.volume_groups[0].devices.clear()
    }),
    ("volume_groups.tags", |l| {
        l.volume_groups[0].tags[0] = "a b".into()
    }),
    ("logical_volumes.name", |l| {
        l.logical_volumes[0].name = "a/b".into()
    }),
    ("logical_volumes.lvm_type", |l| {
        l.volume_groups[0].devices.truncate(1)
    }),
    ("filesystems.mount_options", |l| {
        l.filesystems[0].mount_options[0] = "ro /x".into();
    }),
    ("filesystems.create_options", |l| {
        l.filesystems[0].create_options[0] = "/dev/sda".into();
    }),
];

/// Three disks' partitions in a mirror with a spare, stripes and a volume group.
fn spread_layout() -> api::FilesystemLayout {
    let on = |number: u32| {
        let disks = ["/dev/sda", "/dev/sdb", "/dev/sdc"];
        disks.map(|disk| format!("{disk}{number}")).to_vec()
    };
    let raid = |name: &str, number, level: api::RaidLevel, spares| api::Raid {
        array_name: name.into(),
        devices: on(number),
        level: level.into(),
        spares,
        ..Default::default()
    };
    api::FilesystemLayout {
        id: "spread".into(),
        raid: vec![
            raid("/dev/md0", 1, api::RaidLevel::RaidLevel1, 1),
            raid("/dev/md/stripes", 2, api::RaidLevel::RaidLevel0, 0),
        ],
        volume_groups: vec![api::VolumeGroup {
            name: "vg0".into(),
            devices: on(3),
            tags: vec!["data".into()],
        }],
        logical_volumes: vec![api::LogicalVolume {
            name: "fast".into(),
            volume_group: "vg0".into(),
            size: 0,
            lvm_type: api::LvmType::Striped.into(),
        }],
        filesystems: vec![api::Filesystem {
            device: "/dev/md0".into(),
            format: api::Format::Ext4.into(),
            path: Some("/".into()),
            mount_options: vec!["noatime".into()],
            create_options: vec!["-m".into(), "1".into()],
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn layouts_that_no_machine_can_be_installed_with_are_refused() {
    let node = Node::start().await;
    let mut layouts =
        admin::filesystem_service_client::FilesystemServiceClient::new(node.as_admin());
    for (field, change) in CASES {
        let mut layout = spread_layout();
        change(&mut layout);
        let filesystem_layout = Some(layout);
        let create = admin::FilesystemServiceCreateRequest { filesystem_layout };
        let refused = layouts.create(create).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{field}: {refused}");
        assert!(refused.message().contains(field), "{field}: {refused}");
    }
    let create = admin::FilesystemServiceCreateRequest {
        filesystem_layout: Some(spread_layout()),
    };
    layouts.create(create).await.unwrap();

    // An update is judged with what it leaves as it is.
    let update = |devices: usize| {
        let mut groups = spread_layout().volume_groups;
        groups[0].devices.truncate(devices);
        admin::FilesystemServiceUpdateRequest {
            id: "spread".into(),
            update_meta: Some(api::UpdateMeta {
                locking_strategy: api::OptimisticLockingStrategy::Server.into(),
                ..Default::default()
            }),
            volume_groups: groups,
            ..Default::default()
        }
    };
    let refused = layouts.update(update(1)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert!(
        refused.message().contains("logical_volumes.lvm_type"),
        "{refused}"
    );
    layouts.update(update(2)).await.unwrap();
    node.stop().await;
}
