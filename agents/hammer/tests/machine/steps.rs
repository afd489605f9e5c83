//! The steps of the tests, each with its assertions.

use proto_mesh::machine_order::Order;
use proto_mesh::{Firmware, InstallReport, machine_order};

use crate::control::News;
use crate::qemu::{self, Machine};
use crate::story::{INSTALLED_IP, MAC, SECRET, Story, UUID};
use crate::{Shape, spread};

/// Bytes of the image that arrive before the power goes.
const CUT_AFTER: u64 = 40 << 20;

impl Story {
    pub(crate) async fn joins_and_registers(&mut self) {
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

    /// The host stays with its project: the data does too, and nothing boots from the disk.
    pub(crate) async fn loses_its_tables(&mut self) {
        let level = "metadata".to_owned();
        self.order(Order::Wipe(machine_order::Wipe { level }));
        let News::Wiped(report) = self.next().await else {
            panic!("not cleared")
        };
        let of = |serial: &str| report.disks.iter().find(|d| d.serial == serial).unwrap();
        let (good, stuck) = (of("DISK-1"), of("STUCK"));
        assert_eq!(
            (good.error.as_str(), good.method.as_str()),
            ("", "metadata")
        );
        assert!(qemu::disk_holds(&self.setup.disk, SECRET));
        assert!(!qemu::has_partition_table(&self.setup.disk));
        assert!(!stuck.error.is_empty() && stuck.method.is_empty());
        self.say(&format!("cleared in {} ms", good.duration_ms));
    }

    pub(crate) async fn is_wiped(&mut self) {
        assert!(qemu::disk_holds(&self.setup.disk, SECRET));
        self.order(Order::Wipe(machine_order::Wipe::default()));
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
    pub(crate) async fn refuses_bad_images(&mut self) {
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
    pub(crate) async fn refuses_bad_user_data(&mut self) {
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
    pub(crate) async fn loses_power(&mut self, machine: Machine) -> Machine {
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

    pub(crate) async fn is_installed(&mut self, machine: &mut Machine) {
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

    pub(crate) async fn boots_and_phones_home(&mut self) {
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
}
