//! MariaDB for Ironic: a server of its own, with its own directory, as durable as it is by default.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cluster::{POLL, free_ports};
use crate::process::Process;

/// How long the server may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The database and the user without a password; the server listens to loopback alone.
const DATABASE: &str = "ironic";

/// A running server.
#[derive(Debug)]
pub(super) struct MariaDb {
    process: Process,
    tree: PathBuf,
    socket: PathBuf,
    port: u16,
}

impl MariaDb {
    /// Starts the server of Debian's packages, unpacked in `tree`, over a new data directory.
    pub(super) async fn start(tree: &Path, dir: &Path) -> Result<Self> {
        let port = free_ports(1)?.first().copied().context("no port")?;
        let data = dir.join("mariadb");
        let base = format!("--basedir={}", tree.join("usr").display());
        let data_dir = format!("--datadir={}", data.display());
        let mut install = Command::new(tree.join("usr/bin/mariadb-install-db"));
        install.args(["--no-defaults", &base, &data_dir, "--skip-test-db"]);
        install.args(["--user=root", "--auth-root-authentication-method=normal"]);
        run(install.env("LD_LIBRARY_PATH", libraries(tree))).context("mariadb-install-db")?;
        // A socket's path may be no longer than 107 bytes.
        let socket = PathBuf::from("/tmp").join(format!("bench-api-{port}.sock"));
        let arguments = [
            "env".to_owned(),
            format!("LD_LIBRARY_PATH={}", libraries(tree)),
            tree.join("usr/sbin/mariadbd").display().to_string(),
            "--no-defaults".into(),
            base,
            data_dir,
            format!("--socket={}", socket.display()),
            format!("--pid-file={}", dir.join("mariadb.pid").display()),
            format!("--port={port}"),
            format!("--bind-address={}", Ipv4Addr::LOCALHOST),
            "--user=root".into(),
            "--max-connections=500".into(),
        ];
        let process = Process::start(&arguments, &dir.join("mariadb.log"))?;
        let mut server = Self {
            process,
            tree: tree.to_owned(),
            socket,
            port,
        };
        let until = Instant::now() + START_TIMEOUT;
        let create = format!("create database {DATABASE} character set utf8mb3");
        while let Err(error) = server.sql("mysql", &create) {
            server.process.check()?;
            ensure!(Instant::now() < until, "MariaDB does not serve: {error:#}");
            tokio::time::sleep(POLL).await;
        }
        Ok(server)
    }

    /// Runs statements in Ironic's database; what they print.
    pub(super) fn query(&self, statements: &str) -> Result<String> {
        self.sql(DATABASE, statements)
    }

    fn sql(&self, database: &str, statements: &str) -> Result<String> {
        let mut client = Command::new(self.tree.join("usr/bin/mariadb"));
        client.args(["--no-defaults", "--batch", "--skip-column-names"]);
        client.arg(format!("--socket={}", self.socket.display()));
        client.args([database, "--execute", statements]);
        run(client.env("LD_LIBRARY_PATH", libraries(&self.tree))).context("mariadb")
    }

    /// How SQLAlchemy finds it.
    pub(super) fn url(&self) -> String {
        format!("mysql+pymysql://root@127.0.0.1:{}/{DATABASE}", self.port)
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // It is in no directory that goes with the bench. Without it there is nothing to remove.
        drop(std::fs::remove_file(&self.socket));
    }
}

fn libraries(tree: &Path) -> String {
    tree.join("usr/lib/x86_64-linux-gnu").display().to_string()
}

/// Runs a program to its end.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().context("it cannot be run")?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    bail!("{status}: {}", String::from_utf8_lossy(&stderr).trim())
}
