//! The tenant's way in: a key pair, and commands run with it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// sshd starts a little after the machine has phoned home.
const TRY_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct Key {
    private: PathBuf,
    pub(crate) public: String,
}

impl Key {
    pub(crate) fn make(dir: &Path) -> Self {
        let private = dir.join("id");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&private)
            .status()
            .unwrap();
        assert!(made.success());
        let public = std::fs::read_to_string(dir.join("id.pub")).unwrap();
        Self { private, public }
    }

    /// The output of a command on the installed system. Waits until SSH answers.
    pub(crate) async fn run(&self, port: u16, command: &str) -> String {
        self.run_as("metal", port, command).await
    }

    pub(crate) async fn run_as(&self, user: &str, port: u16, command: &str) -> String {
        loop {
            let done = tokio::process::Command::new("ssh")
                .args([
                    "-o",
                    "StrictHostKeyChecking=no",
                    "-o",
                    "UserKnownHostsFile=/dev/null",
                ])
                .args([
                    "-o",
                    "LogLevel=ERROR",
                    "-o",
                    "BatchMode=yes",
                    "-o",
                    "ConnectTimeout=30",
                ])
                .args(["-F", "none", "-p", &port.to_string(), "-i"])
                .arg(&self.private)
                .args([&format!("{user}@127.0.0.1"), command])
                .output()
                .await
                .unwrap();
            if done.status.code() != Some(255) {
                return String::from_utf8_lossy(&done.stdout).into_owned();
            }
            tokio::time::sleep(TRY_EVERY).await;
        }
    }
}

/// A port of loopback that nobody listens on.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}
