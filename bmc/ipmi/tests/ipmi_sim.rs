//! The client against a BMC that is not ours: OpenIPMI's simulator, on loopback.

#![expect(
    clippy::expect_used,
    reason = "a test ends where its ground is missing"
)]

use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bmc_ipmi::sdr::{SensorWalk, SupplySensor, SupplyStates};
use bmc_ipmi::{
    BootDevice, BootOverride, Credentials, IpmiError, PowerControl, Session, SystemGuid, Timing,
};

const GUID: &str = "01001c6f2d1c0f4e8a5b0123456789ab";
const PASSWORD: &str = "labpass";

/// Longest wait for the simulator, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at a condition, which leaves the processors to the one that is waited for.
const POLL: Duration = Duration::from_millis(10);

/// A running simulator; it ends with the test.
struct Simulator {
    child: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Simulator {
    /// `None`, with a printed reason, where OpenIPMI is missing.
    fn start() -> Option<Self> {
        if Command::new("ipmi_sim")
            .arg("-h")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_err()
        {
            eprintln!("skipped: ipmi_sim (Debian package openipmi) is missing");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let address = free_address();
        write_config(folder.path(), address);
        let child = Command::new("ipmi_sim")
            .arg("-c")
            .arg(folder.path().join("lan.conf"))
            .arg("-f")
            .arg(folder.path().join("commands.emu"))
            .arg("-s")
            .arg(folder.path().join("state"))
            .arg("-n")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("errors")).expect("a file"))
            .spawn()
            .expect("ipmi_sim starts");
        let mut simulator = Self {
            child,
            address,
            folder,
        };
        simulator.until_it_listens();
        Some(simulator)
    }

    /// Looks from outside: a client that asked again and again would take up ports, in the end the
    /// simulator's own.
    fn until_it_listens(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !listens(self.address) {
            let ended = self.child.try_wait().expect("it is ours");
            let errors = fs::read_to_string(self.folder.path().join("errors"));
            assert!(
                ended.is_none(),
                "the simulator ended: {ended:?}, {errors:?}"
            );
            assert!(Instant::now() < deadline, "it never listened: {errors:?}");
            std::thread::sleep(POLL);
        }
    }

    async fn connect(&self) -> Session {
        let patient = Timing {
            answer: PATIENCE / 4,
            tries: 4,
        };
        let password = credentials(PASSWORD);
        let session = Session::connect(self.address, &password, patient);
        session.await.expect("a session")
    }

    fn control_log(&self) -> String {
        fs::read_to_string(self.folder.path().join("control.log")).unwrap_or_default()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.child.kill().expect("the simulator was ours");
        self.child.wait().expect("and ends");
    }
}

/// Whether somebody has this UDP port of loopback.
fn listens(address: SocketAddr) -> bool {
    let wanted = format!("0100007F:{:04X}", address.port());
    let sockets = fs::read_to_string("/proc/net/udp").expect("Linux tells its sockets");
    let mut locals = sockets
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    locals.any(|local| local == wanted)
}

fn free_address() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    socket.local_addr().expect("bound")
}

fn credentials(password: &str) -> Credentials {
    Credentials::new("admin", password).expect("short enough")
}

fn timing() -> Timing {
    Timing {
        answer: Duration::from_millis(500),
        tries: 3,
    }
}

fn write_config(folder: &Path, address: SocketAddr) {
    let state = folder.display();
    let (ip, port) = (address.ip(), address.port());
    // The program that the simulator asks to switch the machine: here it keeps files.
    let control = format!(
        "#!/bin/sh\ncd {state}\necho \"$@\" >>control.log\n\
         case \"$1 $2\" in\n\
         'get power') echo \"power:$(cat power 2>/dev/null || echo 0)\";;\n\
         'get boot') echo \"boot:$(cat boot 2>/dev/null || echo none)\";;\n\
         'set power') echo \"$3\" >power;;\n\
         'set boot') echo \"$3\" >boot;;\n\
         esac\nexit 0\n"
    );
    let program = folder.join("control");
    fs::write(&program, control).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    let lan = format!(
        "name \"test\"\nset_working_mc 0x20\n  startlan 1\n    addr {ip} {port}\n    priv_limit admin\n\
         \x20   allowed_auths_callback none md2 md5 straight\n    allowed_auths_user none md2 md5 straight\n\
         \x20   allowed_auths_operator none md2 md5 straight\n    allowed_auths_admin none md2 md5 straight\n\
         \x20   guid {GUID}\n  endlan\n  chassis_control \"{}\"\n  user 1 false \"\" \"test\" user 10 none md2 md5 straight\n\
         \x20 user 2 true \"admin\" \"{PASSWORD}\" admin 10 none md2 md5 straight\n",
        program.display()
    );
    fs::write(folder.join("lan.conf"), lan).expect("written");
    fs::write(folder.join("commands.emu"), COMMANDS).expect("written");
}

/// A BMC with a temperature, two power supplies of which the second has lost its input, and one that
/// has a record but no sensor. Compact records (specification, 43.2), in hexadecimal.
const COMMANDS: &str = "\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
main_sdr_add 0x20 0x00 0x00 0x51 0x02 0x1d 0x20 0x00 0x01 0x07 0x01 0x67 0x40 0x01 0x6f 0xff 0x7f 0xff 0x7f 0xff 0x7f 0xc0 0x00 0x00 0x01 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0xc2 0x54 0x31
main_sdr_add 0x20 0x00 0x00 0x51 0x02 0x1e 0x20 0x00 0x20 0x0a 0x01 0x67 0x40 0x08 0x6f 0xff 0x7f 0xff 0x7f 0xff 0x7f 0xc0 0x00 0x00 0x01 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0xc3 0x50 0x53 0x31
main_sdr_add 0x20 0x00 0x00 0x51 0xc0 0x03 0x01 0x02 0x03
main_sdr_add 0x20 0x00 0x00 0x51 0x02 0x1e 0x20 0x00 0x21 0x0a 0x02 0x67 0x40 0x08 0x6f 0xff 0x7f 0xff 0x7f 0xff 0x7f 0xc0 0x00 0x00 0x01 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0xc3 0x50 0x53 0x32
main_sdr_add 0x20 0x00 0x00 0x51 0x02 0x1e 0x20 0x00 0x22 0x0a 0x03 0x67 0x40 0x08 0x6f 0xff 0x7f 0xff 0x7f 0xff 0x7f 0xc0 0x00 0x00 0x01 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0xc3 0x50 0x53 0x33
sensor_add 0x20 0 0x20 0x08 0x6f
sensor_set_bit 0x20 0 0x20 0 1 0
sensor_add 0x20 0 0x21 0x08 0x6f
sensor_set_bit 0x20 0 0x21 0 1 0
sensor_set_bit 0x20 0 0x21 3 1 0
mc_enable 0x20
";

#[tokio::test]
async fn a_chassis_is_switched_and_read() {
    let Some(simulator) = Simulator::start() else {
        return;
    };
    let mut session = simulator.connect().await;

    let id = session.device_id().await.expect("it tells its id");
    assert_eq!((id.firmware.as_str(), id.product), ("9.8", 0xf02));
    let guid: SystemGuid = session.system_guid().await.expect("it tells its GUID");
    assert_eq!(guid.uuid(), "6f1c0001-1c2d-4e0f-8a5b-0123456789ab");

    assert!(!session.chassis_status().await.expect("a status").power_on);
    session.power(PowerControl::On).await.expect("it goes on");
    assert!(session.chassis_status().await.expect("a status").power_on);
    session.power(PowerControl::Reset).await.expect("it resets");
    session.power(PowerControl::Off).await.expect("it goes off");
    assert!(!session.chassis_status().await.expect("a status").power_on);

    for (device, name) in [(BootDevice::Pxe, "pxe"), (BootDevice::Disk, "default")] {
        let boot = BootOverride {
            device,
            persistent: true,
            efi: false,
        };
        session
            .set_boot(boot)
            .await
            .expect("it takes a boot device");
        // The simulator tells the device on to the machine, though never back as valid flags.
        let log = simulator.control_log();
        assert!(log.contains(&format!("set boot {name}")), "{log}");
    }
    session.close().await.expect("it closes");
}

#[tokio::test]
async fn a_bmc_without_dcmi_says_so() {
    let Some(simulator) = Simulator::start() else {
        return;
    };
    let mut session = simulator.connect().await;
    let written = session.set_asset_tag("mm-a").await;
    let read = session.asset_tag().await.map(|_| ());
    for answer in [written, read] {
        assert!(
            matches!(answer, Err(IpmiError::Completion { .. })),
            "{answer:?}"
        );
    }
    let long = session.set_asset_tag(&"a".repeat(64)).await;
    assert!(
        matches!(long, Err(IpmiError::TooLong { max: 63, .. })),
        "{long:?}"
    );
    assert!(
        !session
            .chassis_status()
            .await
            .expect("it is there")
            .power_on
    );
    session.close().await.expect("it closes");
}

#[tokio::test]
async fn power_supplies_are_found_and_read() {
    let Some(simulator) = Simulator::start() else {
        return;
    };
    let mut session = simulator.connect().await;
    let repository = session.repository().await.expect("it keeps records");
    assert_eq!(repository.records, 5);
    let mut walk = SensorWalk::default();
    let walked = session.walk_sensors(&mut walk).await;
    walked.expect("the records are readable");
    assert!(walk.is_over());
    let sensor = |number, supply| SupplySensor {
        number,
        supply: Some(supply),
    };
    let [first, second, missing] = [sensor(0x20, 1), sensor(0x21, 2), sensor(0x22, 3)];
    assert_eq!(walk.sensors(), [first, second, missing]);
    let fine = session.supply_states(first).await.expect("a reading");
    let lost = session.supply_states(second).await.expect("a reading");
    assert!(fine.is_some_and(|states| states.is_present() && !states.has_lost_input()));
    assert!(lost.is_some_and(SupplyStates::has_lost_input));
    let none = session.supply_states(missing).await;
    assert!(
        matches!(none, Err(IpmiError::Completion { .. })),
        "{none:?}"
    );
    let undrawn = session.power_reading().await;
    assert!(
        matches!(undrawn, Err(IpmiError::Completion { code: 0xc1, .. })),
        "it has no DCMI: {undrawn:?}"
    );
    session.close().await.expect("it closes");
}

#[tokio::test]
async fn a_wrong_password_is_told_apart_from_silence() {
    let Some(simulator) = Simulator::start() else {
        return;
    };
    simulator.connect().await.close().await.expect("it closes");

    let wrong = Session::connect(simulator.address, &credentials("wrong"), timing()).await;
    assert!(matches!(wrong, Err(IpmiError::WrongPassword)), "{wrong:?}");
    let user = Credentials::new("nobody", "x").expect("short enough");
    let unknown = Session::connect(simulator.address, &user, timing()).await;
    assert!(
        matches!(unknown, Err(IpmiError::Refused { status: 0x0d, .. })),
        "{unknown:?}"
    );

    let quick = Timing {
        answer: Duration::from_millis(50),
        tries: 2,
    };
    let silent = Session::connect(free_address(), &credentials(PASSWORD), quick).await;
    assert!(
        matches!(silent, Err(IpmiError::Silent { tries: 2, .. })),
        "{silent:?}"
    );
}
