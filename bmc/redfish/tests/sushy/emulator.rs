//! sushy-tools with its fake driver, over TLS on loopback.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PACKAGE: &str = "sushy-tools==2.2.0";
const WAIT: Duration = Duration::from_secs(60);
pub(crate) const PASSWORD: &str = "secret";

/// The Python environment with sushy-tools, made once under the target directory; none, with a
/// printed reason, where it cannot be had.
fn environment() -> Option<PathBuf> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE.replace("==", "-"));
    if environment.exists() {
        return Some(environment);
    }
    // Made aside and renamed, as several tests may come here at once.
    let made = environment.with_extension(format!("new{}", std::process::id()));
    let run = |program: &Path, args: &[&str]| {
        let done = Command::new(program)
            .args(args)
            .stdout(Stdio::null())
            .status();
        done.is_ok_and(|status| status.success())
    };
    let ready = run(Path::new("python3"), &["-m", "venv", made.to_str()?])
        && run(&made.join("bin/pip"), &["install", "--quiet", PACKAGE]);
    if ready && fs::rename(&made, &environment).is_err() {
        fs::remove_dir_all(&made).ok()?;
    }
    if !ready {
        eprintln!("SKIPPED: {PACKAGE} (PyPI) is not to be had");
    }
    ready.then_some(environment)
}

/// A running emulator; it ends with the test.
pub(crate) struct Emulator {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) pin: [u8; 32],
    _folder: tempfile::TempDir,
}

/// sushy-tools' chassis tell nothing of power: this adds links to them, and resources by path.
const ADD: &str = "\
import flask, json
from sushy_tools.emulator.main import app
@app.before_request
def serve_added():
    if flask.request.path in resources:
        return flask.jsonify(resources[flask.request.path])
@app.after_request
def link_added(answer):
    body = answer.get_json(silent=True) if flask.request.method == 'GET' else None
    if isinstance(body, dict) and '#Chassis.' in body.get('@odata.type', ''):
        answer.set_data(flask.json.dumps({**body, **links}))
    return answer
";

/// The resource `Power` as DSP0268 describes it: numbers of 20 minutes, two supplies, and a place for
/// a third.
#[allow(dead_code, reason = "not every test that has this module needs it")]
pub(crate) fn power() -> [Value; 2] {
    let path = "/redfish/v1/Chassis/added/Power";
    let supply = |health: Value, state: &str| json!({"Status": {"Health": health, "State": state}});
    let resource = json!({
        "@odata.type": "#Power.v1_7_0.Power",
        "PowerControl": [{
            "PowerConsumedWatts": 210,
            "PowerMetrics": {
                "IntervalInMin": 20, "MinConsumedWatts": 198,
                "MaxConsumedWatts": 305.25, "AverageConsumedWatts": 230.5,
            },
        }],
        "PowerSupplies": [
            supply(json!("OK"), "Enabled"),
            supply(json!("Critical"), "UnavailableOffline"),
            supply(json!(null), "Absent"),
        ],
    });
    [
        json!({"Power": {"@odata.id": path}}),
        json!({path: resource}),
    ]
}

impl Emulator {
    /// As sushy-tools is.
    pub(crate) fn start(uuid: &str) -> Option<Self> {
        Self::start_with(uuid, [json!({}), json!({})])
    }

    /// With links added to its chassis, and resources by path.
    pub(crate) fn start_with(uuid: &str, [links, resources]: [Value; 2]) -> Option<Self> {
        let environment = environment()?;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
        fs::write(path("cert"), made.cert.pem()).unwrap();
        fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
        fs::write(path("users"), user_line(&environment, PASSWORD)).unwrap();
        // The fake driver takes one to eleven seconds for a change of power; here one.
        let config = format!(
            "import json\nlinks = json.loads('{links}')\nresources = json.loads('{resources}')\n{ADD}\
             import random\nrandom.randint = lambda low, high: low\n\
             SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n\
             SUSHY_EMULATOR_SSL_CERT = '{cert}'\nSUSHY_EMULATOR_SSL_KEY = '{key}'\n\
             SUSHY_EMULATOR_AUTH_FILE = '{users}'\nSUSHY_EMULATOR_FAKE_DRIVER = True\n\
             SUSHY_EMULATOR_STATE_DIR = '{state}'\n\
             SUSHY_EMULATOR_FAKE_SYSTEMS = [{{'uuid': '{uuid}', 'name': 'm2', \
             'power_state': 'Off', 'nics': [{{'mac': '52:54:00:77:01:02', 'ip': '10.0.0.2'}}]}}]\n",
            port = address.port(),
            cert = path("cert"),
            key = path("key"),
            users = path("users"),
            state = path("state"),
        );
        fs::create_dir(path("state")).unwrap();
        fs::write(path("config"), config).unwrap();
        let child = Command::new(environment.join("bin/python"))
            .args(["-c", "from sushy_tools.emulator.main import main; main()"])
            .args(["--config", &path("config")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pin = proto_identity::sha256(made.cert.der());
        let mut emulator = Self {
            child,
            address,
            pin,
            _folder: folder,
        };
        let end = Instant::now() + WAIT;
        while TcpStream::connect(address).is_err() {
            assert!(
                emulator.child.try_wait().unwrap().is_none(),
                "sushy-emulator ended"
            );
            assert!(Instant::now() < end, "sushy-emulator does not listen");
            std::thread::park_timeout(Duration::from_millis(50));
        }
        Some(emulator)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A line of the user file, with the password going in by standard input.
fn user_line(environment: &Path, password: &str) -> String {
    let program = "import bcrypt, sys\n\
        print('admin:' + bcrypt.hashpw(sys.stdin.buffer.read(), bcrypt.gensalt(4)).decode())";
    let mut python = Command::new(environment.join("bin/python"))
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python
        .stdin
        .take()
        .unwrap()
        .write_all(password.as_bytes())
        .unwrap();
    String::from_utf8(python.wait_with_output().unwrap().stdout).unwrap()
}
