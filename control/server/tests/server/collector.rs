//! A collector of OpenTelemetry that reads spans with the published types.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::venv;

const OTLP_TYPES: &str = "opentelemetry-proto==1.38.0";

/// A collector; killed when dropped.
pub(crate) struct Collector {
    child: Child,
    pub(crate) port: u16,
    file: PathBuf,
}

impl Drop for Collector {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Collector {
    /// With a certificate and its key it speaks HTTPS and wants a token. None, with a printed
    /// reason, where the types are not to be had.
    pub(crate) fn start(dir: &Path, name: &str, tls: &[&Path]) -> Option<Self> {
        let python = match venv::environment(OTLP_TYPES) {
            Ok(python) => python,
            Err(reason) => {
                println!("SKIPPED: {OTLP_TYPES} cannot be installed: {reason}");
                return None;
            }
        };
        let file = dir.join(format!("{name}.jsonl"));
        let script = "../../control/server/tests/server/trace_server.py";
        let mut child = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script))
            .arg(&file)
            .args(tls)
            .stdout(Stdio::piped())
            .stderr(File::create(dir.join(format!("{name}.log"))).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        Some(Self { child, port, file })
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap_or_default()
    }

    /// What came so far.
    pub(crate) fn spans(&self) -> Vec<Value> {
        let text = self.text();
        // The last line may still be on its way.
        let whole = text.split_inclusive('\n').filter(|it| it.ends_with('\n'));
        whole.map(|it| serde_json::from_str(it).unwrap()).collect()
    }
}
