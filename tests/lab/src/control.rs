//! The control node.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use crate::artefacts::{Artefacts, Program};
use crate::cli::Person;
use crate::datacentre::DataCentre;
use crate::process::Process;
use crate::services::MESH_PORT;
use crate::state::{Record, write_private};
use crate::topology::{self, Topology};
use crate::wait::wait_for;

/// TCP port of the public API.
const API_PORT: u16 = 4443;
/// TCP port of Ironic's API.
const IRONIC_PORT: u16 = 6385;
/// Name of the cluster, and of everybody's context.
const CONTEXT: &str = "lab";
const START: Duration = Duration::from_secs(30);

/// Starts metalmeshd, which gives the admin a context with a token at its first start.
///
/// # Errors
/// It does not come up.
pub(crate) fn start(
    record: &Record,
    topology: &Topology,
    artefacts: &Artefacts,
    admin: &Person,
) -> Result<Process> {
    configure(record)?;
    let process = spawn(record, topology, artefacts)?;
    let token = token(record)?;
    wait_for("the first admin token", START, || {
        process.check()?;
        Ok(token.exists().then_some(()))
    })?;
    add_context(record, admin, &token, None)?;
    answers(&process, admin)?;
    Ok(process)
}

/// Starts a control that was killed, on the data that it left.
///
/// # Errors
/// It does not come up.
pub(crate) fn restart(lab: &DataCentre) -> Result<()> {
    let admin = &lab.people.admin;
    let process = spawn(&lab.record, &lab.topology, &lab.artefacts)?;
    answers(&process, admin)
}

/// Starts metalmeshd on the data that is there, or a fresh one.
///
/// # Errors
/// It cannot be started.
pub(crate) fn spawn(
    record: &Record,
    topology: &Topology,
    artefacts: &Artefacts,
) -> Result<Process> {
    let mut command = topology
        .control
        .command(artefacts.program(Program::Control));
    command
        .arg("--config")
        .arg(record.path("control/metalmeshd.toml")?);
    command.arg("--token-file").arg(token(record)?);
    Process::spawn(record, "control", command)
}

fn answers(process: &Process, admin: &Person) -> Result<()> {
    wait_for("control's answer", START, || {
        process.check()?;
        admin.run("health").map(|_| Some(()))
    })
}

fn token(record: &Record) -> Result<PathBuf> {
    record.path("control/admin-token")
}

/// Writes metalmeshd's configuration and the certificate of its public API.
fn configure(record: &Record) -> Result<()> {
    let address = topology::CONTROL;
    let [certificate, key] = write_certificate(record, &[address])?;
    let text = format!(
        "cluster = \"{CONTEXT}\"\ndata_dir = \"{}\"\n\
         [api]\nlisten = \"{address}:{API_PORT}\"\n\
         tls_certificate = \"{}\"\ntls_key = \"{}\"\n\
         [ironic]\nlisten = \"{address}:{IRONIC_PORT}\"\n\
         [mesh]\nlisten = \"{address}:{MESH_PORT}\"\n",
        record.path("control/data")?.display(),
        certificate.display(),
        key.display(),
    );
    fs::write(record.path("control/metalmeshd.toml")?, text)?;
    Ok(())
}

/// Makes the certificate of the public API for these addresses; paths of the certificate and its key.
///
/// # Errors
/// A file cannot be written.
pub fn write_certificate(record: &Record, addresses: &[Ipv4Addr]) -> Result<[PathBuf; 2]> {
    let (certificate, key) = (certificate(record)?, record.path("control/api-key.pem")?);
    let names: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let made = rcgen::generate_simple_self_signed(names)?;
    fs::write(&certificate, made.cert.pem())?;
    write_private(&key, made.signing_key.serialize_pem().as_bytes())?;
    Ok([certificate, key])
}

/// The certificate of the public API, which signs itself.
pub(crate) fn certificate(record: &Record) -> Result<PathBuf> {
    record.path("control/api.pem")
}

/// Where people reach the public API.
pub(crate) fn api_url() -> String {
    format!("https://{}:{API_PORT}", topology::CONTROL)
}

/// Where people reach Ironic's API.
pub(crate) fn ironic_url() -> String {
    format!("https://{}:{IRONIC_PORT}", topology::CONTROL)
}

/// Gives somebody a context of the lab.
///
/// # Errors
/// The command line refuses.
pub(crate) fn add_context(
    record: &Record,
    person: &Person,
    token: &Path,
    project: Option<&str>,
) -> Result<()> {
    let url = api_url();
    let token = token.display().to_string();
    let ca = certificate(record)?.display().to_string();
    let project = project
        .map(|p| format!("--default-project {p}"))
        .unwrap_or_default();
    let line = format!(
        "context add {CONTEXT} --api-url {url} --token-file {token} --ca-file {ca} --activate \
         {project}"
    );
    person.run(&line).map(|_| ())
}
