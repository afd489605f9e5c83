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

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proto_mesh::machine_order::Order;
use proto_mesh::{Firmware, Image, Install, InstallReport, MachineNetwork, machine_order};
use tokio::sync::Mutex;

use control::{Control, News};
use qemu::{Machine, Setup};

/// Emulated machines are slow, and the host may be busy.
const PATIENCE: Duration = Duration::from_secs(1800);
const UUID: &str = "6f1c0001-0000-4000-8000-00000000aa01";
const MAC: &str = "52:54:00:77:01:01";
/// QEMU's user network, laid out so that the gateway is where every segment has it.
const GATEWAY: &str = "169.254.1.1";
/// Bytes of the image that arrive before the power goes.
const CUT_AFTER: u64 = 40 << 20;
const INSTALLED_IP: &str = "169.254.3.5";
/// Something of an earlier tenant.
const SECRET: &[u8] = b"the former tenant's secret";

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

struct Story {
    shape: Shape,
    started: Instant,
    dir: tempfile::TempDir,
    setup: Setup,
    control: Control,
    files: files::Server,
    digest: String,
    image_len: u64,
    key: ssh::Key,
    generation: u64,
}

impl Story {
    async fn new(artifacts: Artifacts, shape: Shape) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let control = Control::start(GATEWAY);
        let image = artifacts.image.join("debian-12.tar.zst");
        let digest = digest_of(&image);
        let image_len = image.metadata().unwrap().len();
        let files = files::Server::start(control.ticket_answer(), image).await;
        let disk = dir.path().join("disk.raw");
        qemu::make_disk(&disk, SECRET);
        let stuck = dir.path().join("stuck.raw");
        qemu::make_stuck_disk(&stuck);
        let others: Vec<_> = shape.disks().iter().skip(1).collect();
        let others = others.into_iter().map(|serial| {
            let path = dir.path().join(format!("{serial}.raw"));
            qemu::make_disk(&path, SECRET);
            (*serial, path)
        });
        let key = ssh::Key::make(dir.path());
        let setup = Setup {
            boot: artifacts.boot,
            disk,
            stuck,
            others: others.collect(),
            ssh_port: ssh::free_port(),
            installed_ip: INSTALLED_IP,
            vars: dir.path().join("vars.fd"),
            serial: dir.path().join("serial.log"),
            uefi: shape == Shape::Uefi,
            uuid: UUID,
            mac: MAC,
            gateway: GATEWAY,
            command_line: format!(
                "console=ttyS0 no_timer_check quiet panic=-1 metalmesh.lldp_wait=1 \
                 metalmesh.pixie=http://{GATEWAY}:{}",
                files.port
            ),
        };
        Self {
            shape,
            started: Instant::now(),
            dir,
            setup,
            control,
            files,
            digest,
            image_len,
            key,
            generation: 0,
        }
    }

    fn say(&self, what: &str) {
        println!(
            "{:?} {:7.1} s  {what}",
            self.shape,
            self.started.elapsed().as_secs_f32()
        );
    }

    async fn tell(shape: Shape) {
        let Some(artifacts) = artifacts() else { return };
        let _one = ONE.lock().await;
        let mut story = Self::new(artifacts, shape).await;
        let machine = Machine::boot(&story.setup, true);
        let told = tokio::time::timeout(PATIENCE, story.chapters(machine)).await;
        if told.is_err() {
            let console = story.setup.console_tail();
            panic!("no end in {PATIENCE:?}; the console said:\n{console}");
        }
    }

    async fn chapters(&mut self, mut machine: Machine) {
        self.joins_and_registers().await;
        self.is_wiped().await;
        match self.shape {
            Shape::Bios | Shape::Uefi => self.refuses_bad_images().await,
            Shape::Mirror => machine = self.loses_power(machine).await,
            // Disks of many parts cost time enough.
            Shape::Spread => {}
        }
        if self.shape == Shape::Bios {
            self.refuses_bad_user_data().await;
        }
        self.is_installed(&mut machine).await;
        self.boots_and_phones_home().await;
    }

    async fn next(&mut self) -> News {
        loop {
            match self.control.news.recv().await.unwrap() {
                News::Event(e) if e == "Alive" => {}
                News::Event(e) => self.say(&format!("event {e}")),
                other => return other,
            }
        }
    }

    fn order(&mut self, order: Order) {
        self.generation += 1;
        self.control.order(self.generation, order);
    }

    async fn joins_and_registers(&mut self) {
        let News::Joined(uuid, mac) = self.next().await else {
            panic!("not joined")
        };
        assert_eq!((uuid.as_str(), mac.as_str()), (UUID, MAC));
        self.say("joined");
        let News::Registered(r) = self.next().await else {
            panic!("not registered")
        };
        let want = if self.setup.uefi {
            Firmware::Uefi
        } else {
            Firmware::Bios
        };
        assert_eq!(r.firmware(), want);
        assert_eq!(r.memory, qemu::MEMORY_MIB << 20);
        let mut serials: Vec<&str> = r.disks.iter().map(|d| d.serial.as_str()).collect();
        serials.sort_unstable();
        assert_eq!(serials, [self.shape.disks(), &["STUCK"]].concat());
        assert_eq!(
            (r.nics.len(), r.nics[0].mac.as_str(), r.nics[0].boot),
            (1, MAC, true)
        );
        assert!(r.nics[0].identifier.starts_with("0000:"));
        assert_eq!(r.fru.as_ref().unwrap().product_serial, "SER-M1");
        assert!(r.cpus[0].cores >= 1 && !r.boot_id.is_empty());
        self.say("registered");
    }

    async fn is_wiped(&mut self) {
        assert!(qemu::disk_holds(&self.setup.disk, SECRET));
        self.order(Order::Wipe(machine_order::Wipe {}));
        let News::Wiped(report) = self.next().await else {
            panic!("not wiped")
        };
        let of = |serial: &str| report.disks.iter().find(|d| d.serial == serial).unwrap();
        let (good, stuck) = (of("DISK-1"), of("STUCK"));
        assert_eq!(good.error, "");
        assert_eq!(
            good.method,
            if self.setup.uefi {
                "nvme-format"
            } else {
                "discard"
            }
        );
        assert!(
            !qemu::disk_holds(&self.setup.disk, SECRET),
            "the secret is still there"
        );
        self.say(&format!(
            "wiped by {} in {} ms",
            good.method, good.duration_ms
        ));
        // A disk that cannot be wiped is never passed over.
        assert!(!stuck.error.is_empty() && stuck.method.is_empty());
        self.say(&format!("not wiped: {}", stuck.error));
        self.order(Order::Wait(machine_order::Wait {}));
    }

    /// Each of them fails with its reason, and leaves nothing to boot.
    async fn refuses_bad_images(&mut self) {
        let wrong = format!("sha256:{}", "0".repeat(64));
        let digest = self.digest.clone();
        for (attempt, path, digest, root_mib, says, retryable) in [
            (1, "page", wrong.clone(), 0, "digest", false),
            (2, "cut", digest.clone(), 0, "cut short", true),
            (3, "image", digest.clone(), 64, "too big", false),
            (4, "missing", digest, 0, "404", false),
        ] {
            let mut install = self.install(attempt, path, &digest);
            if let Some(layout) = &mut install.layout {
                layout.disks[0].partitions[2].size_mib = root_mib;
            }
            self.order(Order::Install(install));
            let report = self.installation().await;
            assert_eq!(report.step, "image", "{}", report.error);
            assert!(report.error.contains(says), "{}", report.error);
            assert_eq!(report.retryable, retryable, "{}", report.error);
            assert!(!report.log_tail.is_empty());
            assert!(
                !qemu::has_partition_table(&self.setup.disk),
                "{path} left a table"
            );
            self.say(&format!("refused: {}", report.error));
        }
    }

    /// Ignition's own refusal of a version that it does not know.
    async fn refuses_bad_user_data(&mut self) {
        let digest = self.digest.clone();
        let mut install = self.install(5, "image", &digest);
        install.userdata = br#"{"ignition":{"version":"9.0.0"}}"#.to_vec();
        self.order(Order::Install(install));
        let report = self.installation().await;
        assert_eq!(report.step, "userdata", "{}", report.error);
        let says = "unsupported config version";
        assert!(report.error.contains(says), "{}", report.error);
        assert!(!report.retryable && report.log_tail.contains(says));
        assert!(!qemu::has_partition_table(&self.setup.disk));
        self.say(&format!("refused: {}", report.error));
    }

    /// In the middle of the image; what is left on the disks must not stop the next attempt.
    async fn loses_power(&mut self, machine: Machine) -> Machine {
        let digest = self.digest.clone();
        self.order(Order::Install(self.install(1, "image", &digest)));
        self.files.sent(CUT_AFTER).await;
        machine.cut().await;
        self.say("power cut in the middle of the image");
        let machine = Machine::boot(&self.setup, true);
        self.order(Order::Wait(machine_order::Wait {}));
        self.joins_and_registers().await;
        machine
    }

    /// From the middle of the image to its end; the machine goes on and waits with its report.
    async fn control_is_away_for_a_while(&mut self) {
        let before = self.files.count();
        self.files.sent(before + CUT_AFTER).await;
        self.control.leave().await;
        self.say("control is away");
        self.files.sent(before + self.image_len).await;
        self.control.serve();
        self.say("control is back");
    }

    async fn installation(&mut self) -> InstallReport {
        loop {
            match self.next().await {
                News::Installed(report) => return report,
                News::ProjectIdentity => self.say("project identity"),
                other => panic!("{other:?}"),
            }
        }
    }

    async fn is_installed(&mut self, machine: &mut Machine) {
        let digest = self.digest.clone();
        let install = self.install(6, "image", &digest);
        self.order(Order::Install(install));
        if self.setup.uefi {
            self.control_is_away_for_a_while().await;
        }
        let report = self.installation().await;
        assert_eq!(report.error, "", "{}", report.log_tail);
        assert_eq!(
            report.primary_disk,
            if self.setup.uefi {
                "/dev/nvme0n1"
            } else {
                "/dev/vda"
            }
        );
        assert!(!report.console_password.is_empty());
        println!("{}", report.log_tail);
        assert!(!spread::is_secret_in(&report.log_tail));
        self.say("installed");
        self.order(Order::Reboot(machine_order::Reboot {}));
        machine.ended().await;
        self.say(&format!("rebooting; {:.0} CPU s so far", machine.cpu_s()));
    }

    async fn boots_and_phones_home(&mut self) {
        let machine = Machine::boot(&self.setup, false);
        let News::PhonedHome(identity, kernel) = self.next().await else {
            panic!("not phoned home");
        };
        assert!(identity.contains("/project/p-1/machine/"), "{identity}");
        assert!(kernel.contains("cloud"), "{kernel}");
        self.say(&format!(
            "phoned home; {:.0} CPU s from disk",
            machine.cpu_s()
        ));
        let said = self.key.run(self.setup.ssh_port, "hostname; sudo id -u; cat /etc/machine-id; ls /sys/firmware; systemctl --failed --plain --no-legend").await;
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(&lines[..2], ["web-1", "0"], "{said}");
        assert_eq!(
            (lines[2].len(), lines.contains(&"efi")),
            (32, self.setup.uefi),
            "{said}"
        );
        self.say(&format!("reached by SSH as {INSTALLED_IP}"));
        assert!(!said.contains(".service"), "failed units: {said}");
        if self.shape == Shape::Spread {
            spread::check_disks(&self.key, self.setup.ssh_port).await;
            self.say("disks are as the layout says");
            spread::check_user_data(&self.key, self.setup.ssh_port).await;
            self.say("Ignition did what it was told");
        }
        assert!(self.dir.path().exists());
    }

    fn install(&self, attempt: u32, path: &str, digest: &str) -> Install {
        Install {
            allocation_uuid: "a0000000-0000-4000-8000-000000000001".into(),
            project: "p-1".into(),
            hostname: "web-1".into(),
            image: Some(Image {
                id: "debian-12".into(),
                url: format!("http://{GATEWAY}:{}/{path}", self.files.port),
                digest: digest.into(),
            }),
            layout: Some(match self.shape {
                Shape::Bios | Shape::Uefi => layouts::single(),
                Shape::Mirror => layouts::mirrored(),
                Shape::Spread => layouts::spread(),
            }),
            userdata: match self.shape {
                Shape::Spread => spread::user_data(&self.key),
                _ => Vec::new(),
            },
            ssh_public_keys: vec![self.key.public.clone()],
            networks: vec![MachineNetwork {
                network: "n".into(),
                prefixes: vec!["169.254.0.0/16".into()],
                ips: vec![INSTALLED_IP.into()],
                ..MachineNetwork::default()
            }],
            control: vec![self.control.endpoint.clone()],
            attempt,
            ..Install::default()
        }
    }
}

fn digest_of(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let hash = ring::digest::digest(&ring::digest::SHA256, &bytes);
    let hex: String = hash.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hex}")
}
