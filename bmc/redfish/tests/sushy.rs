//! The client against a BMC that is not ours: OpenStack's sushy-tools over TLS, on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends where its ground is missing"
)]

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bmc_redfish::{
    BootOverride, BootTarget, Credentials, Endpoint, Led, PowerState, RedfishError, Reset, Session,
    System, Timing, Trust,
};
use sha2::{Digest, Sha256};

const PACKAGE: &str = "sushy-tools==2.2.0";
const UUID: &str = "6f1c0001-0000-4000-8000-525400770102";
const WAIT: Duration = Duration::from_secs(60);

/// The Python environment with sushy-tools, made once under the target directory; none, with a
/// printed reason, where it cannot be had.
fn environment() -> Option<PathBuf> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE.replace("==", "-"));
    if environment.join("ready").exists() {
        return Some(environment);
    }
    let run = |program: &Path, args: &[&str]| {
        let done = Command::new(program)
            .args(args)
            .stdout(Stdio::null())
            .status();
        done.is_ok_and(|status| status.success())
    };
    let made = run(Path::new("python3"), &["-m", "venv", environment.to_str()?])
        && run(
            &environment.join("bin/pip"),
            &["install", "--quiet", PACKAGE],
        )
        && fs::write(environment.join("ready"), b"").is_ok();
    if !made {
        eprintln!("SKIPPED: {PACKAGE} (PyPI) is not to be had");
    }
    made.then_some(environment)
}

/// A running emulator; it ends with the test.
struct Emulator {
    child: Child,
    address: SocketAddr,
    pin: [u8; 32],
    _folder: tempfile::TempDir,
}

impl Emulator {
    fn start() -> Option<Self> {
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
        fs::write(path("users"), user_line(&environment, "secret")).unwrap();
        // The fake driver takes one to eleven seconds for a change of power; here one.
        let config = format!(
            "import random\nrandom.randint = lambda low, high: low\n\
             SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n\
             SUSHY_EMULATOR_SSL_CERT = '{cert}'\nSUSHY_EMULATOR_SSL_KEY = '{key}'\n\
             SUSHY_EMULATOR_AUTH_FILE = '{users}'\nSUSHY_EMULATOR_FAKE_DRIVER = True\n\
             SUSHY_EMULATOR_STATE_DIR = '{state}'\n\
             SUSHY_EMULATOR_FAKE_SYSTEMS = [{{'uuid': '{UUID}', 'name': 'm2', \
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
        let pin = Sha256::digest(made.cert.der()).into();
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

    fn session(&self, trust: Trust, password: &str) -> Session {
        let endpoint = Endpoint {
            address: self.address,
            trust,
        };
        let credentials = Credentials::new("admin", password);
        Session::new(endpoint, credentials, Timing::default()).unwrap()
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

async fn power_becomes(session: &mut Session, system: &System, want: PowerState) {
    let end = Instant::now() + WAIT;
    while session.refresh(system).await.unwrap().power != want {
        assert!(Instant::now() < end, "the power does not become {want:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn inventory_power_boot_and_light() {
    let Some(emulator) = Emulator::start() else {
        return;
    };
    let mut session = emulator.session(Trust::Pin(emulator.pin), "secret");
    let inventory = session.inventory().await.unwrap();
    let system = inventory.system;
    assert_eq!(system.uuid, UUID);
    assert_eq!(system.manufacturer, "Sushy Emulator");
    assert_eq!(system.power, PowerState::Off);
    assert_eq!(inventory.chassis.manufacturer, "Contoso");
    assert!(
        !inventory.manager.firmware_version.is_empty(),
        "{:?}",
        inventory.manager
    );

    session.reset(&system, Reset::On).await.unwrap();
    power_becomes(&mut session, &system, PowerState::On).await;
    session.reset(&system, Reset::ForceRestart).await.unwrap();
    power_becomes(&mut session, &system, PowerState::On).await;
    let no_cycle = session.reset(&system, Reset::PowerCycle).await.unwrap_err();
    assert!(
        matches!(no_cycle, RedfishError::Unsupported { .. }),
        "{no_cycle}"
    );
    session.reset(&system, Reset::ForceOff).await.unwrap();
    power_becomes(&mut session, &system, PowerState::Off).await;

    for target in [BootTarget::Pxe, BootTarget::Disk] {
        let boot = BootOverride {
            target,
            persistent: true,
        };
        assert!(session.set_boot(&system, boot).await.unwrap(), "it lasts");
    }
    let bios = BootOverride {
        target: BootTarget::BiosSetup,
        persistent: false,
    };
    let refused = session.set_boot(&system, bios).await.unwrap_err();
    assert!(
        refused.to_string().contains("it allows Pxe, Cd, Hdd"),
        "{refused}"
    );

    for (on, led) in [(true, Led::On), (false, Led::Off)] {
        session.set_led(&system, on).await.unwrap();
        assert_eq!(session.refresh(&system).await.unwrap().led, Some(led));
    }
}

#[tokio::test]
async fn a_foreign_certificate_and_a_wrong_password_are_refused() {
    let Some(emulator) = Emulator::start() else {
        return;
    };
    let mut foreign = emulator.session(Trust::Pin([7; 32]), "secret");
    let error = foreign.system().await.unwrap_err();
    assert!(matches!(error, RedfishError::Tls(_)), "{error}");
    let mut unknown_ca = emulator.session(Trust::Roots(Vec::new()), "secret");
    let error = unknown_ca.system().await.unwrap_err();
    assert!(matches!(error, RedfishError::Tls(_)), "{error}");
    let mut wrong = emulator.session(Trust::Pin(emulator.pin), "wrong");
    let error = wrong.system().await.unwrap_err();
    assert!(
        matches!(error, RedfishError::Denied { status: 401, .. }),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("wrong\""));
}
