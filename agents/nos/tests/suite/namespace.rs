//! A network namespace as a switch.

use std::process::Command;

use agents_nos::linux::{Config, FilterConfig, Linux};

use crate::states::PORTS;

/// A namespace with the ports of the suite, which goes away with the value.
pub(crate) struct Namespace(String);

impl Namespace {
    /// `None` without root, which is said.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            println!("not run: network namespaces need root");
            return None;
        }
        let name = format!("mms{}-{test}", std::process::id());
        run(&["netns", "add", &name]);
        let namespace = Self(name);
        for port in PORTS {
            namespace.ip(&format!("link add {port} type veth peer name x{port}"));
            namespace.ip(&format!("link set x{port} up"));
        }
        Some(namespace)
    }

    /// Runs `ip` in the namespace.
    pub(crate) fn ip(&self, arguments: &str) {
        let mut all = vec!["-n", self.0.as_str()];
        all.extend(arguments.split(' '));
        run(&all);
    }

    /// Runs a future with the switch, on a thread of its own inside the namespace.
    pub(crate) fn with_switch(&self, work: impl AsyncFnOnce(Linux) + Send) {
        let path = format!("/run/netns/{}", self.0);
        let enter = move || {
            let file = std::fs::File::open(path).unwrap();
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let config = Config {
                    ports: vec!["swp*".into()],
                    vtep: [10, 9, 0, 1].into(),
                    frr: None,
                    filter: FilterConfig::default(),
                };
                work(Linux::open(config).unwrap()).await;
            });
        };
        std::thread::scope(|scope| scope.spawn(enter).join().unwrap());
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run(&["netns", "del", &self.0]);
    }
}

fn run(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status().unwrap();
    assert!(status.success(), "ip {arguments:?}");
}
