//! Network namespaces of a test.

use std::process::Command;
use std::time::Duration;

/// Pause between two looks at a condition, which leaves the processors to the one that is waited for.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// A namespace that goes away with the value.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    pub(crate) fn new(test: &str, name: &str) -> Self {
        let name = format!("mmf{}-{test}-{name}", std::process::id());
        run("ip", &["netns", "add", &name]);
        run("ip", &["-n", &name, "link", "set", "lo", "up"]);
        Self(name)
    }

    /// Runs `ip` in the namespace.
    pub(crate) fn ip(&self, arguments: &str) {
        let mut all = vec!["-n", self.0.as_str()];
        all.extend(arguments.split(' '));
        run("ip", &all);
    }

    /// Runs a program in the namespace and returns its output.
    pub(crate) fn output(&self, arguments: &str) -> String {
        let mut all = vec!["netns", "exec", self.0.as_str()];
        all.extend(arguments.split(' '));
        let output = Command::new("ip").args(&all).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs work on a thread of its own inside the namespace.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let path = format!("/run/netns/{}", self.0);
        let enter = move || {
            let file = std::fs::File::open(path).unwrap();
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(enter).join().unwrap())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run("ip", &["netns", "del", &self.0]);
    }
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// `true` if the test can run.
pub(crate) fn can_run() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    // It breaks rules, and says what the kernel holds.
    let has_nft = Command::new("nft").arg("--version").output().is_ok();
    if !is_root || !has_nft {
        println!("not run: network namespaces need root, and the tests need nft");
    }
    is_root && has_nft
}
