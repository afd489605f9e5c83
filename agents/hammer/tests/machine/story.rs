//! An emulated machine, its stand-ins, and the order of the steps that it goes through.

use std::path::Path;
use std::time::{Duration, Instant};

use proto_mesh::machine_order::Order;
use proto_mesh::{Image, Install, MachineNetwork};

use crate::control::{Control, News};
use crate::qemu::{self, Machine, Setup};
use crate::{Artifacts, ONE, Shape, artifacts, files, layouts, spread, ssh};

/// Longest time of one test. Emulated machines are slow, and the host may be busy.
const PATIENCE: Duration = Duration::from_secs(1800);
/// SMBIOS UUID of the emulated machine.
pub(crate) const UUID: &str = "6f1c0001-0000-4000-8000-00000000aa01";
/// MAC address of the emulated machine.
pub(crate) const MAC: &str = "52:54:00:77:01:01";
/// QEMU's user network, laid out so that the gateway is where every segment has it.
const GATEWAY: &str = "169.254.1.1";
/// Address of the installed system.
pub(crate) const INSTALLED_IP: &str = "169.254.3.5";
/// Data of an earlier tenant on the disks.
pub(crate) const SECRET: &[u8] = b"the former tenant's secret";

/// One emulated machine with its stand-ins.
pub(crate) struct Story {
    pub(crate) shape: Shape,
    started: Instant,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) setup: Setup,
    pub(crate) control: Control,
    pub(crate) files: files::Server,
    pub(crate) digest: String,
    pub(crate) image_len: u64,
    pub(crate) key: ssh::Key,
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

    /// Prints a line of progress.
    pub(crate) fn say(&self, what: &str) {
        println!(
            "{:?} {:7.1} s  {what}",
            self.shape,
            self.started.elapsed().as_secs_f32()
        );
    }

    /// Runs all steps, or none where the artifacts are not there.
    pub(crate) async fn tell(shape: Shape) {
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
        if self.shape == Shape::Bios {
            self.loses_its_tables().await;
        }
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

    /// The next thing that control hears, without events.
    pub(crate) async fn next(&mut self) -> News {
        loop {
            match self.control.news.recv().await.unwrap() {
                News::Event(e) if e == "Alive" => {}
                News::Event(e) => self.say(&format!("event {e}")),
                other => return other,
            }
        }
    }

    /// Sets the machine's order.
    pub(crate) fn order(&mut self, order: Order) {
        self.generation += 1;
        self.control.order(self.generation, order);
    }

    /// An order to install the image at `path` of the file server.
    pub(crate) fn install(&self, attempt: u32, path: &str, digest: &str) -> Install {
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
