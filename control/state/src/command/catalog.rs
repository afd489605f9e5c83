//! Commands about what admins offer: partitions, sizes, images, layouts.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proto_types::{ImageId, LayoutId, PartitionId, ReservationId, SizeId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::entities::{
    BootConfiguration, Classification, Disk, Filesystem, Image, ImageConstraint, ImageFeature,
    Layout, LayoutConstraints, LogicalVolume, Partition, Raid, Size, SizeConstraint,
    SizeImageConstraint, SizeReservation, VolumeGroup,
};
use crate::meta::{LabelsUpdate, Lock, label};

macro_rules! create {
    ($($op:ident($entity:ty);)*) => {
        $(
            /// A whole entity; of its head only the labels count.
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            pub struct $op(pub $entity);
        )*
    };
}

create! {
    CreatePartition(Partition);
    CreateSize(Size);
    CreateSizeReservation(SizeReservation);
    CreateSizeImageConstraint(SizeImageConstraint);
    CreateImage(Image);
    CreateLayout(Layout);
}

macro_rules! delete {
    ($($op:ident($id:ty);)*) => {
        $(
            /// Deletes the one of this key.
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            pub struct $op(pub $id);
        )*
    };
}

delete! {
    DeletePartition(PartitionId);
    DeleteSize(SizeId);
    DeleteSizeReservation(ReservationId);
    DeleteSizeImageConstraint(SizeId);
    DeleteImage(ImageId);
    DeleteLayout(LayoutId);
}

/// See [`Op::UpdatePartition`](crate::Op::UpdatePartition). Fields that are none stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdatePartition {
    /// Which.
    pub id: PartitionId,
    /// Guard.
    pub lock: Lock,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// What machines boot.
    #[serde(default)]
    pub boot: Option<BootConfiguration>,
    /// Name servers.
    #[serde(default)]
    pub dns_servers: Option<Vec<IpAddr>>,
    /// Time servers.
    #[serde(default)]
    pub ntp_servers: Option<Vec<String>>,
    /// Management services.
    #[serde(default)]
    pub mgmt_service_addresses: Option<Vec<String>>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}

impl UpdatePartition {
    /// Whether its machines are to join only with what their BMC holds: older programs would not
    /// ask them.
    pub(crate) fn demands_nonce(&self) -> bool {
        let labels = match &self.labels {
            Some(LabelsUpdate::Replace(labels)) => labels,
            Some(LabelsUpdate::Patch { update, .. }) => update,
            None => return false,
        };
        let text = labels.get(label::REQUIRE_BMC_NONCE);
        text.is_some_and(|text| text == "true")
    }
}

/// See [`Op::UpdateSize`](crate::Op::UpdateSize). Fields that are none stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateSize {
    /// Which.
    pub id: SizeId,
    /// Guard.
    pub lock: Lock,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// What hardware belongs to it.
    #[serde(default)]
    pub constraints: Option<Vec<SizeConstraint>>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}

/// See [`Op::UpdateSizeReservation`](crate::Op::UpdateSizeReservation). Fields that are none stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateSizeReservation {
    /// Which.
    pub id: ReservationId,
    /// Guard.
    pub lock: Lock,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Where.
    #[serde(default)]
    pub partitions: Option<BTreeSet<PartitionId>>,
    /// How many in each partition.
    #[serde(default)]
    pub amount: Option<u32>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}

/// See [`Op::UpdateSizeImageConstraint`](crate::Op::UpdateSizeImageConstraint).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateSizeImageConstraint {
    /// Which.
    pub size: SizeId,
    /// Guard.
    pub lock: Lock,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// What is allowed.
    #[serde(default)]
    pub image_constraints: Option<Vec<ImageConstraint>>,
}

/// See [`Op::UpdateImage`](crate::Op::UpdateImage). Fields that are none stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateImage {
    /// Which.
    pub id: ImageId,
    /// Guard.
    pub lock: Lock,
    /// Where the compressed tar file is.
    #[serde(default)]
    pub url: Option<String>,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// What it is good for.
    #[serde(default)]
    pub features: Option<BTreeSet<ImageFeature>>,
    /// How mature it is.
    #[serde(default)]
    pub classification: Option<Classification>,
    /// Not handed out any more after this.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}

/// See [`Op::UpdateLayout`](crate::Op::UpdateLayout). Fields that are none stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateLayout {
    /// Which.
    pub id: LayoutId,
    /// Guard.
    pub lock: Lock,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Filesystems.
    #[serde(default)]
    pub filesystems: Option<Vec<Filesystem>>,
    /// Disks.
    #[serde(default)]
    pub disks: Option<Vec<Disk>>,
    /// Software RAIDs.
    #[serde(default)]
    pub raids: Option<Vec<Raid>>,
    /// Volume groups.
    #[serde(default)]
    pub volume_groups: Option<Vec<VolumeGroup>>,
    /// Logical volumes.
    #[serde(default)]
    pub logical_volumes: Option<Vec<LogicalVolume>>,
    /// Where it is used by itself.
    #[serde(default)]
    pub constraints: Option<LayoutConstraints>,
}
