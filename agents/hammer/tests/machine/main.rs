//! hammer on a machine, end to end: an emulated one boots the real kernel and initramfs, is wiped,
//! meets bad images, is installed, boots from its disk and phones home. Once with BIOS, once with
//! UEFI and NVMe, once on a mirror with volumes, once spread over three disks with every kind of
//! array, volume and file system. Control and pixie are stand-ins in this process.
//!
//! Needs QEMU and what `cargo xtask initramfs` and `cargo xtask osimage` made:
//! `METALMESH_BOOT_DIR=… METALMESH_IMAGE_DIR=… cargo test -p agents-hammer --test machine`.
//! Says so and passes without.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "modules of one test"
)]

mod control;
mod files;
mod layouts;
mod qemu;
mod spread;
mod ssh;
mod steps;
mod story;

use std::path::PathBuf;

use tokio::sync::Mutex;

use story::Story;

/// One emulated machine at a time.
static ONE: Mutex<()> = Mutex::const_new(());

struct Artifacts {
    boot: PathBuf,
    image: PathBuf,
}

fn artifacts() -> Option<Artifacts> {
    let dir = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(boot), Some(image)) = (dir("METALMESH_BOOT_DIR"), dir("METALMESH_IMAGE_DIR")) else {
        eprintln!("skipped: METALMESH_BOOT_DIR and METALMESH_IMAGE_DIR are not set");
        return None;
    };
    let needed = [
        boot.join("vmlinuz"),
        boot.join("initramfs.cpio.zst"),
        image.join("debian-12.tar.zst"),
        PathBuf::from("/usr/bin/qemu-system-x86_64"),
        PathBuf::from(qemu::OVMF_CODE),
    ];
    if let Some(missing) = needed.iter().find(|p| !p.exists()) {
        eprintln!("skipped: no {}", missing.display());
        return None;
    }
    Some(Artifacts { boot, image })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bios() {
    Story::tell(Shape::Bios).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uefi() {
    Story::tell(Shape::Uefi).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror() {
    Story::tell(Shape::Mirror).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spread() {
    Story::tell(Shape::Spread).await;
}

/// The kind of machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Bios,
    Uefi,
    /// BIOS with two disks: a RAID 1, a volume group on it, the root file system in that.
    Mirror,
    /// BIOS with three disks: RAID 1 with a spare, RAID 0, striped and mirrored volumes; its user
    /// data is for Ignition.
    Spread,
}

impl Shape {
    /// Serial numbers of the disks to install on.
    fn disks(self) -> &'static [&'static str] {
        match self {
            Self::Bios | Self::Uefi => &["DISK-1"],
            Self::Mirror => &["DISK-1", "DISK-2"],
            Self::Spread => &["DISK-1", "DISK-2", "DISK-3"],
        }
    }
}
