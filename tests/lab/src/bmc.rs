//! BMCs in front of chassis: OpenIPMI's `ipmi_sim`, and sushy-tools as a Redfish service.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rand::Rng as _;
use sha2::{Digest as _, Sha256};

use crate::netns::Namespace;
use crate::process::{Process, output};
use crate::state::{Record, write_private};
use crate::wait::wait_for;

/// TCP port in the BMC's namespace where the machine's KCS wire ends.
pub const KCS_PORT: u16 = 9002;
/// TCP port in the BMC's namespace where sushy-tools tells changes.
pub const NOTIFY_PORT: u16 = 9999;
pub const REDFISH_PORT: u16 = 8000;
pub const USER: &str = "metalmesh";
const SUSHY: &str = "sushy-tools==2.2.0";
/// IPMI 2.0 passwords have at most 20 bytes.
const PASSWORD_LENGTH: usize = 16;
const START: Duration = Duration::from_secs(30);

/// How the management network talks to a BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    Ipmi,
    Redfish,
}

impl Front {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipmi => "ipmi",
            Self::Redfish => "redfish",
        }
    }
}

/// What a BMC is told about its machine.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    pub name: &'a str,
    pub uuid: &'a str,
    pub mac: &'a str,
    pub address: std::net::Ipv4Addr,
    pub password: &'a str,
    /// Chassis socket.
    pub socket: &'a Path,
}

/// A password that was never used before.
#[must_use]
pub fn password() -> String {
    let mut random = rand::rng();
    (0..PASSWORD_LENGTH)
        .map(|_| char::from(random.sample(rand::distr::Alphanumeric)))
        .collect()
}

/// Starts `ipmi_sim` for one machine.
///
/// # Errors
/// It is not installed, or does not come up.
pub fn start_ipmi(
    record: &Record,
    namespace: &Namespace,
    machine: &Machine<'_>,
) -> Result<Process> {
    let dir = record.path(&format!("bmc/{}/state", machine.name))?;
    fs::create_dir_all(&dir)?;
    let path = |file: &str| record.path(&format!("bmc/{}/{file}", machine.name));
    let (control, lan, emulator) = (path("chassisctl")?, path("lan.conf")?, path("bmc.emu")?);
    let lan_control = path("lanctl")?;
    let program = record.state().program;
    let script = format!(
        "#!/bin/sh\nexec {} lab chassis-control {} \"$@\"\n",
        program.display(),
        machine.socket.display()
    );
    write_script(&control, &script)?;
    write_script(&lan_control, &lan_script(machine))?;
    write_private(&lan, lan_config(machine, &control, &lan_control).as_bytes())?;
    fs::write(&emulator, EMULATOR)?;
    let mut command = namespace.command("ipmi_sim");
    command
        .arg("-n")
        .arg("-c")
        .arg(&lan)
        .arg("-f")
        .arg(&emulator)
        .arg("-s")
        .arg(&dir);
    let process = Process::spawn(record, &format!("bmc-{}", machine.name), command)?;
    wait_for("IPMI port", START, || {
        process.check()?;
        Ok(listening(namespace, "-u", 623).then_some(()))
    })?;
    Ok(process)
}

/// A BMC with a temperature and two power supplies, each with a compact record (specification, 43.2);
/// chassis, power and boot options come from the chassis control program.
const EMULATOR: &str = "\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
sel_enable 0x20 1000 0x0a
sensor_add 0x20 0 1 0x01 0x01
sensor_set_value 0x20 0 1 0x28 1
main_sdr_add 0x20 0 0 0x51 2 0x1e 0x20 0 0x20 0x0a 1 0x67 0x40 8 0x6f 0xff 0x7f 0xff 0x7f 0xff 0x7f \
0xc0 0 0 1 0 0 0 0 0 0 0 0xc3 0x50 0x53 0x31
main_sdr_add 0x20 0 0 0x51 2 0x1e 0x20 0 0x21 0x0a 2 0x67 0x40 8 0x6f 0xff 0x7f 0xff 0x7f 0xff 0x7f \
0xc0 0 0 1 0 0 0 0 0 0 0 0xc3 0x50 0x53 0x32
sensor_add 0x20 0 0x20 0x08 0x6f
sensor_set_bit 0x20 0 0x20 0 1 0
sensor_add 0x20 0 0x21 0x08 0x6f
sensor_set_bit 0x20 0 0x21 0 1 0
mc_enable 0x20
";

fn lan_config(machine: &Machine<'_>, control: &Path, lan_control: &Path) -> String {
    let Machine {
        name,
        uuid,
        address,
        password,
        ..
    } = machine;
    format!(
        "name \"{name}\"\n\
         set_working_mc 0x20\n\
         startlan 1\n\
         addr {address} 623\n\
         priv_limit admin\n\
         allowed_auths_callback none md2 md5 straight\n\
         allowed_auths_user none md2 md5 straight\n\
         allowed_auths_operator none md2 md5 straight\n\
         allowed_auths_admin none md2 md5 straight\n\
         guid {guid}\n\
         lan_config_program \"{lan_control}\"\n\
         endlan\n\
         chassis_control \"{control}\"\n\
         serial 15 127.0.0.1 {KCS_PORT} codec VM ipmb 0x20\n\
         startnow false\n\
         poweroff_wait 2\n\
         kill_wait 2\n\
         user 1 false \"\" \"\" user 10 none md2 md5 straight\n\
         user 2 true \"{USER}\" \"{password}\" admin 10 none md2 md5 straight\n",
        guid = uuid.replace('-', ""),
        lan_control = lan_control.display(),
        control = control.display(),
    )
}

fn lan_script(machine: &Machine<'_>) -> String {
    format!(
        "#!/bin/sh\n[ \"$1\" = get ] || exit 0\nshift\nfor p; do case $p in\n\
         ip_addr) echo ip_addr:{};;\n\
         ip_addr_src) echo ip_addr_src:static;;\n\
         mac_addr) echo mac_addr:{};;\n\
         subnet_mask) echo subnet_mask:255.255.255.0;;\n\
         *) echo $p:0.0.0.0;;\nesac; done\n",
        machine.address, machine.mac
    )
}

fn write_script(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    Ok(())
}

/// The Python environment with sushy-tools, made once.
///
/// # Errors
/// It cannot be installed: without a package index the lab's machines all speak IPMI.
pub fn sushy(cache: &Path) -> Result<PathBuf> {
    crate::python::environment(cache, SUSHY)
}

/// Starts a Redfish service for one machine.
///
/// # Errors
/// It does not come up.
pub fn start_redfish(
    record: &Record,
    namespace: &Namespace,
    machine: &Machine<'_>,
    environment: &Path,
) -> Result<Process> {
    let path = |file: &str| record.path(&format!("bmc/{}/{file}", machine.name));
    let (config, users) = (path("sushy.conf")?, path("users")?);
    let (certificate, key) = (path("cert.pem")?, path("key.pem")?);
    let made = rcgen::generate_simple_self_signed(vec![machine.address.to_string()])?;
    fs::write(&certificate, made.cert.pem())?;
    let pin = hex::encode(Sha256::digest(made.cert.der()));
    fs::write(pin_file(record, machine.name)?, pin)?;
    write_private(&key, made.signing_key.serialize_pem().as_bytes())?;
    write_private(&users, &user_file(environment, machine.password)?)?;
    let text = sushy_config(machine, &config, [&users, &certificate, &key]);
    write_private(&config, text.as_bytes())?;
    // The interpreter by name: the scripts of a moved environment point to where it was made.
    let mut command = namespace.command(environment.join("bin/python"));
    command
        .args(["-c", "from sushy_tools.emulator.main import main; main()"])
        .arg("--config")
        .arg(&config);
    let process = Process::spawn(record, &format!("bmc-{}", machine.name), command)?;
    wait_for("Redfish port", START, || {
        process.check()?;
        Ok(listening(namespace, "-t", REDFISH_PORT).then_some(()))
    })?;
    Ok(process)
}

/// SHA-256 of the certificate of a machine's Redfish service, hex.
///
/// # Errors
/// It has none.
pub fn certificate_pin(record: &Record, machine: &str) -> Result<String> {
    Ok(fs::read_to_string(pin_file(record, machine)?)?)
}

fn pin_file(record: &Record, machine: &str) -> Result<PathBuf> {
    record.path(&format!("bmc/{machine}/cert.sha256"))
}

/// sushy-tools' systems have no asset tag: these take one and show it.
const ASSET_TAG: &str = "\
import flask
from sushy_tools.emulator.main import app
asset_tag = ['']
@app.before_request
def take_asset_tag():
    asked = flask.request
    body = asked.get_json(silent=True) if asked.method == 'PATCH' else None
    if isinstance(body, dict) and 'AssetTag' in body and '/Systems/' in asked.path:
        asset_tag[0] = body['AssetTag']
        return '', 204
@app.after_request
def show_asset_tag(answer):
    body = answer.get_json(silent=True) if flask.request.method == 'GET' else None
    if isinstance(body, dict) and '#ComputerSystem.' in body.get('@odata.type', ''):
        answer.set_data(flask.json.dumps({**body, 'AssetTag': asset_tag[0]}))
    return answer
";

/// The configuration is a Python program. The fake driver takes up to eleven seconds for a change
/// of power, at random; the lab's takes one.
fn sushy_config(machine: &Machine<'_>, config: &Path, files: [&PathBuf; 3]) -> String {
    let [users, certificate, key] = files.map(|f| f.display().to_string());
    let state = config.with_file_name("sushy-state");
    format!(
        "import random\n\
         random.randint = lambda low, high: low\n\
         SUSHY_EMULATOR_LISTEN_IP = '{address}'\n\
         SUSHY_EMULATOR_LISTEN_PORT = {REDFISH_PORT}\n\
         SUSHY_EMULATOR_SSL_CERT = '{certificate}'\n\
         SUSHY_EMULATOR_SSL_KEY = '{key}'\n\
         SUSHY_EMULATOR_AUTH_FILE = '{users}'\n\
         SUSHY_EMULATOR_FAKE_DRIVER = True\n\
         SUSHY_EMULATOR_STATE_DIR = '{state}'\n\
         EXTERNAL_NOTIFICATION_URL = 'http://127.0.0.1:{NOTIFY_PORT}/'\n\
         SUSHY_EMULATOR_FAKE_SYSTEMS = [{{'uuid': '{uuid}', 'name': '{name}', \
         'power_state': 'Off', 'external_notifier': True, \
         'nics': [{{'mac': '{mac}', 'ip': '{address}'}}]}}]\n\
         {ASSET_TAG}",
        address = machine.address,
        state = state.display(),
        uuid = machine.uuid,
        name = machine.name,
        mac = machine.mac,
    )
}

/// A user file in Apache's format. The password goes in on standard input, not on the command
/// line, where every process could read it.
fn user_file(environment: &Path, password: &str) -> Result<Vec<u8>> {
    use std::io::Write as _;
    use std::process::Stdio;
    const PROGRAM: &str = "import bcrypt, sys\n\
        print(bcrypt.hashpw(sys.stdin.buffer.read(), bcrypt.gensalt(4)).decode())";
    let mut child = Command::new(environment.join("bin/python"))
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child
        .stdin
        .take()
        .context("no standard input")?
        .write_all(password.as_bytes())?;
    let hashed = child.wait_with_output()?;
    if !hashed.status.success() {
        bail!("cannot hash a password");
    }
    Ok(format!("{USER}:{}", String::from_utf8(hashed.stdout)?).into_bytes())
}

pub(crate) fn listening(namespace: &Namespace, protocol: &str, port: u16) -> bool {
    let listed = output(namespace.command("ss").args(["-Hln", protocol]));
    listed.is_ok_and(|text| text.contains(&format!(":{port} ")))
}
