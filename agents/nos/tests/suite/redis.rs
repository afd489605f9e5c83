//! A redis-server of a test's own, and a client that blocks.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) type Row = BTreeMap<String, String>;

const DEADLINE: Duration = Duration::from_secs(30);
/// Pause between two looks at a condition, which leaves the processors to the one that is waited for.
const POLL: Duration = Duration::from_millis(10);

/// A running redis, which goes away with the value.
pub(crate) struct Redis {
    directory: tempfile::TempDir,
    process: Child,
}

impl Redis {
    /// `None` where no redis-server is installed, which is said. `REDIS_SERVER` names another one.
    pub(crate) fn start() -> Option<Self> {
        let program = std::env::var("REDIS_SERVER");
        let program = program.unwrap_or_else(|_| "redis-server".to_owned());
        let directory = tempfile::tempdir().unwrap();
        let started = Command::new(&program)
            .args("--port 0 --databases 16 --appendonly no --notify-keyspace-events AKE".split(' '))
            .args(["--save", "", "--unixsocket"])
            .arg(directory.path().join("redis.sock"))
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let Ok(process) = started else {
            println!("SKIPPED: {program} (Debian package redis-server) is missing");
            return None;
        };
        let redis = Self { directory, process };
        let until = Instant::now() + DEADLINE;
        while UnixStream::connect(redis.socket()).is_err() {
            assert!(Instant::now() < until, "redis does not start");
            std::thread::sleep(POLL);
        }
        Some(redis)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    /// Ends redis, as a crash does.
    pub(crate) fn end(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.end();
    }
}

/// A client of one redis.
pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    pub(crate) fn connect(socket: &Path) -> Self {
        Self(BufReader::new(UnixStream::connect(socket).unwrap()))
    }

    /// Runs a command; an array is its texts one after the other.
    pub(crate) fn run(&mut self, words: &[&str]) -> std::io::Result<Vec<String>> {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.0.get_mut().write_all(text.as_bytes())?;
        self.read()
    }

    /// Reads an answer, or a message of a subscription.
    pub(crate) fn read(&mut self) -> std::io::Result<Vec<String>> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "$" if rest == "-1" => Ok(vec![]),
            "$" => {
                let mut bytes = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(vec![String::from_utf8(bytes).unwrap()])
            }
            "*" => {
                let mut all = Vec::new();
                for _ in 0..rest.parse::<usize>().unwrap() {
                    all.extend(self.read()?);
                }
                Ok(all)
            }
            "-" => panic!("redis: {rest}"),
            _ => Ok(vec![rest.to_owned()]),
        }
    }

    pub(crate) fn set(&mut self, db: u8, key: &str, row: &[(&str, &str)]) {
        let fields = row.iter().flat_map(|(name, value)| [*name, *value]);
        let words: Vec<&str> = ["HSET", key].into_iter().chain(fields).collect();
        self.run(&["SELECT", &db.to_string()]).unwrap();
        self.run(&words).unwrap();
    }

    /// Every row of a database.
    pub(crate) fn rows(&mut self, db: u8) -> std::io::Result<BTreeMap<String, Row>> {
        self.run(&["SELECT", &db.to_string()])?;
        let keys = self.run(&["KEYS", "*"])?;
        let mut out = BTreeMap::new();
        for key in keys {
            let words = self.run(&["HGETALL", &key])?;
            let pairs = words
                .chunks(2)
                .map(|pair| (pair[0].clone(), pair[1].clone()));
            let row: Row = pairs.collect();
            if !row.is_empty() {
                out.insert(key, row);
            }
        }
        Ok(out)
    }
}
