//! The audit trail sent elsewhere: to syslog over TLS, to a collector of OpenTelemetry, and to
//! rsyslogd.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::cli::{Cli, metalmesh};
use crate::daemon::{Daemon, PATIENCE, POLL};
use crate::python;
use crate::s3::Authority;

const OTLP_TYPES: &str = "opentelemetry-proto==1.38.0";

/// A process that takes records and writes them to a file; killed when dropped.
struct Place {
    child: Child,
    port: u16,
    file: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Place {
    fn start(kind: &str, dir: &Path, authority: &Authority) -> Option<Self> {
        let python = match python::environment(OTLP_TYPES) {
            Ok(python) => python,
            Err(reason) => {
                println!("SKIPPED: {OTLP_TYPES} cannot be installed: {reason}");
                return None;
            }
        };
        let file = dir.join(format!("{kind}.jsonl"));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/log_server.py");
        let mut child = Command::new(python)
            .arg(script)
            .arg(kind)
            .args([&authority.certificate, &authority.key, &file])
            .stdout(Stdio::piped())
            .stderr(File::create(dir.join(format!("{kind}.log"))).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        Some(Self { child, port, file })
    }

    /// What came, by sequence; the same record may come twice, but never another one.
    fn records(&self) -> BTreeMap<u64, Value> {
        records(&fs::read_to_string(&self.file).unwrap_or_default())
    }
}

fn records(text: &str) -> BTreeMap<u64, Value> {
    let mut out = BTreeMap::new();
    // The last line may still be on its way.
    for line in text.split_inclusive('\n').filter(|it| it.ends_with('\n')) {
        let record: Value = serde_json::from_str(line).unwrap();
        let Some(sequence) = record["sequence"].as_u64() else {
            continue;
        };
        if let Some(before) = out.insert(sequence, record.clone()) {
            assert_eq!(before, record);
        }
    }
    out
}

fn start(dir: &Path, program: &Path, config: &str) -> (Daemon, Cli) {
    let file = dir.join("metalmeshd.toml");
    fs::write(&file, config).unwrap();
    let daemon = Daemon::start_at(dir, "127.0.0.1:0", &["--config", file.to_str().unwrap()]);
    let cli = Cli {
        program: program.to_owned(),
        config: daemon.config().to_owned(),
    };
    (daemon, cli)
}

/// The trail as `metalmesh audit export` writes it now.
fn trail(dir: &Path, cli: &Cli) -> BTreeMap<u64, Value> {
    let file = dir.join("trail.jsonl");
    cli.ok(&["audit", "export", file.to_str().unwrap()]);
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(file).unwrap();
    records(&text)
}

/// Until everything of the trail is there, as it is in the trail.
fn wait_for(what: &str, wanted: &BTreeMap<u64, Value>, has: impl Fn() -> BTreeMap<u64, Value>) {
    let until = Instant::now() + PATIENCE;
    loop {
        let has = has();
        if wanted.keys().all(|it| has.contains_key(it)) {
            for (sequence, record) in wanted {
                assert_eq!(&has[sequence], record, "{what}");
            }
            return;
        }
        assert!(
            Instant::now() < until,
            "{what}: {} of {}",
            has.len(),
            wanted.len()
        );
        std::thread::sleep(POLL);
    }
}

#[test]
fn the_trail_reaches_syslog_and_a_collector() {
    let Some(program) = metalmesh() else { return };
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(&dir.path().join("tls"));
    let place = |kind| Place::start(kind, dir.path(), &authority);
    let (Some(mut syslog), Some(otlp)) = (place("syslog"), place("otlp")) else {
        return;
    };
    let token = dir.path().join("authorization");
    fs::write(&token, "Bearer collectors-token\n").unwrap();
    let (ca, token) = (authority.ca.display(), token.display());
    let config = |syslog: u16| {
        format!(
            "[[audit.export]]\nname = 'siem'\nurl = 'syslog+tls://127.0.0.1:{syslog}'\n\
             ca_file = '{ca}'\n[[audit.export]]\nname = 'otel'\n\
             url = 'https://127.0.0.1:{}/v1/logs'\nca_file = '{ca}'\n\
             authorization_file = '{token}'\n",
            otlp.port
        )
    };
    let (daemon, cli) = start(dir.path(), &program, &config(syslog.port));
    for name in ["one", "two"] {
        cli.ok(&["tenant", "create", name]);
    }
    cli.refused(&["tenant", "create", "two"]);
    let first = trail(dir.path(), &cli);
    assert!(first.values().any(|it| it["result_code"] == 0), "{first:?}");
    wait_for("syslog", &first, || syslog.records());
    wait_for("otlp", &first, || otlp.records());

    // While a server is away the trail is kept; after a restart it goes on where it was.
    syslog.child.kill().unwrap();
    syslog.child.wait().unwrap();
    cli.ok(&["tenant", "create", "three"]);
    let last = *trail(dir.path(), &cli).keys().next_back().unwrap();
    let until = Instant::now() + PATIENCE;
    let exports = loop {
        let exports = cli.ok(&["audit", "exports", "-o", "json"]);
        let exports: Value = serde_json::from_str(&exports).unwrap();
        let of = |name: &str| {
            let all = exports.as_array().unwrap();
            let export = all.iter().find(|it| it["name"] == name);
            export
                .and_then(|it| it["sequence"].as_str())
                .map_or(0, |it| it.parse().unwrap())
        };
        if of("otel") >= last && of("siem") > 0 {
            break (of("siem"), of("otel"));
        }
        assert!(Instant::now() < until, "{exports}");
        std::thread::sleep(POLL);
    };
    assert!(exports.0 < last, "nobody took it: {exports:?}");
    assert!(cli.ok(&["audit", "exports"]).contains("siem"));
    assert!(
        daemon.log().contains("it is kept and tried again"),
        "{}",
        daemon.log()
    );
    assert!(!daemon.log().contains("collectors-token"));
    daemon.kill();
    let syslog = place("syslog").unwrap();
    let (daemon, cli) = start(dir.path(), &program, &config(syslog.port));
    cli.ok(&["tenant", "create", "four"]);
    let all = trail(dir.path(), &cli);
    wait_for("syslog after a restart", &all, || syslog.records());
    wait_for("otlp after a restart", &all, || otlp.records());
    assert!(daemon.terminate().success());
}

#[test]
fn rsyslogd_takes_the_trail() {
    let Some(program) = metalmesh() else { return };
    if Command::new("rsyslogd").arg("-v").output().is_err() {
        println!("SKIPPED: rsyslogd (Debian package rsyslog) is missing");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (config, file) = (
        dir.path().join("rsyslog.conf"),
        dir.path().join("received.jsonl"),
    );
    let text = format!(
        "global(workDirectory=\"{0}\" maxMessageSize=\"64k\")\n\
         module(load=\"imtcp\")\ninput(type=\"imtcp\" port=\"{port}\" address=\"127.0.0.1\")\n\
         template(name=\"record\" type=\"string\" string=\"%msg%\\n\")\n\
         if $programname == \"metalmeshd\" and $syslogfacility == 13 then \
         action(type=\"omfile\" file=\"{1}\" template=\"record\")\n",
        dir.path().display(),
        file.display()
    );
    fs::write(&config, text).unwrap();
    let child = Command::new("rsyslogd")
        .args(["-n", "-iNONE", "-f"])
        .arg(&config)
        .stdout(Stdio::null())
        .stderr(File::create(dir.path().join("rsyslog.log")).unwrap())
        .spawn()
        .unwrap();
    let rsyslog = Place { child, port, file };
    let toml = format!("[[audit.export]]\nname = 'logs'\nurl = 'syslog+tcp://127.0.0.1:{port}'\n");
    let (_daemon, cli) = start(dir.path(), &program, &toml);
    cli.ok(&["tenant", "create", "one"]);
    let trail = trail(dir.path(), &cli);
    wait_for("rsyslogd", &trail, || rsyslog.records());
}
