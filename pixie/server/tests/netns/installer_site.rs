//! A machine, its pixie and a server with an installer, for the tests of the partition's installer.

use std::time::Duration;

use pixie_boot::{InstallerSource, Target};
use pixie_server::Config;
use pixie_server::config::FetchLimits;
use serde_json::Value;

use crate::dhcp_client::lease;
use crate::file_server::{Answer, FileServer};
use crate::running_pixie::Running;
use crate::world::{PIXIE, UUID, World, have, pattern, skipped, wait_for};

/// Longest kernel of these tests, bytes. Pixie refuses a longer one.
pub(crate) const KERNEL_LEN_MAX: u64 = 1 << 20;

/// The usual configuration, with pauses and lengths for tests.
pub(crate) fn config(world: &World) -> Config {
    Config {
        fetch: FetchLimits {
            kernel_len_max: KERNEL_LEN_MAX,
            retry_min: Duration::from_millis(50),
            retry_max: Duration::from_millis(200),
            recheck: Duration::from_millis(200),
            ..FetchLimits::default()
        },
        ..world.server_config()
    }
}

/// A machine with a lease on the cable of a pixie.
pub(crate) struct Site {
    pub(crate) world: World,
    pub(crate) pixie: Running,
}

impl Site {
    /// `None`, with a printed reason, if the test cannot run here.
    pub(crate) fn new(change: impl FnOnce(&World, &mut Config)) -> Option<Self> {
        if skipped() || !have("curl") {
            return None;
        }
        let world = World::new();
        let mut config = config(&world);
        change(&world, &mut config);
        let pixie = Running::start(&world, config);
        world.set_address(lease(&world, &[]).yiaddr);
        Some(Self { world, pixie })
    }

    /// Sets the partition's installer.
    pub(crate) fn want(&self, kernel_url: &str, image_url: &str) {
        let source = InstallerSource::of(kernel_url, image_url);
        self.pixie.set_installer(Target::Hammer, source);
    }

    /// The boot script of the machine.
    pub(crate) fn script(&self) -> String {
        let path = format!(
            "/v1/boot.ipxe?mac=52-54-00-99-01-01&uuid={UUID}&platform=efi&buildarch=x86_64"
        );
        let (status, script) = self.world.curl(&path, &[]);
        assert_eq!(status, 200, "{script}");
        script
    }

    /// The key of the pair in the script; `None` while the machine is told to wait.
    pub(crate) fn key(&self) -> Option<String> {
        let script = self.script();
        if script.contains("nothing to boot yet: ") {
            assert!(!script.contains("\nkernel "), "{script}");
            return None;
        }
        let (_, rest) = script.split_once("/boot/").expect("a pair");
        let (key, _) = rest.split_once('/').unwrap();
        let image = format!("initrd --name initrd.img http://{PIXIE}:8080/boot/{key}/image ");
        assert!(script.contains(&image), "one pair: {script}");
        Some(key.to_owned())
    }

    /// Waits until the script names a pair; its key.
    pub(crate) fn wait_for_key(&self) -> String {
        let mut key = None;
        wait_for("the pair", || {
            key = self.key();
            key.is_some()
        });
        key.unwrap()
    }

    /// A file of a pair as a machine gets it.
    pub(crate) fn get(&self, key: &str, name: &str) -> (u16, Vec<u8>) {
        let got = self.world.dir.path().join("got");
        let to = ["-o", got.to_str().unwrap()];
        let (status, _) = self.world.curl(&format!("/boot/{key}/{name}"), &to);
        (status, std::fs::read(got).unwrap())
    }

    /// The installer's part of `/healthz`.
    pub(crate) fn health(&self) -> Value {
        let (_, health) = self.world.curl("/healthz", &[]);
        let health: Value = serde_json::from_str(&health).unwrap();
        health["installer"].clone()
    }

    /// Waits for an error that says this; the machine is told it as well and boots nothing.
    pub(crate) fn wait_for_error(&self, text: &str) {
        let mut last = Value::Null;
        wait_for(text, || {
            let error = self.health()["last_error"].clone();
            if error != last {
                eprintln!("error now: {error}");
            }
            let is_it = error.as_str().is_some_and(|error| error.contains(text));
            last = error;
            is_it
        });
        assert_eq!(self.health()["pair"], Value::Null, "{text}");
        assert_eq!(self.key(), None, "{text}");
    }

    /// Counts the entries of the directory of pairs.
    pub(crate) fn kept(&self) -> usize {
        let dir = self.world.state_dir().join("installer");
        std::fs::read_dir(dir).unwrap().count()
    }
}

/// A server with a kernel and an image under `/a/`.
pub(crate) fn serve(world: &World) -> FileServer {
    let server = FileServer::http(world);
    server.set("/a/kernel", Answer::File(pattern(300_000), "k1"));
    server.set("/a/image", Answer::File(pattern(500_000), "i1"));
    server
}

/// Sets the pair under `/a/` as the partition's installer.
pub(crate) fn want_a(site: &Site, server: &FileServer) {
    site.want(&server.url("/a/kernel"), &server.url("/a/image"));
}
