//! From the place of a release to a program that could be started.

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proto_release::{
    FileDigest, PayloadMeter, ReleaseContext, ReleaseManifest, ReleaseVersion, SignedHead,
    check_release,
};
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::info;

use super::address_rule::AddressRule;
use super::files::UpdateFiles;
use super::location::ReleaseLocation;
use super::probe::probe;
use super::program::StoredProgram;
use super::reader::ReleaseReader;
use super::wanted::WantedRelease;
use super::{MESH_LEVEL, PROGRAM_NAME};
use crate::config::{Config, SourceName};

/// A release that was fetched, and whose program could be started.
#[derive(Clone, Debug)]
pub(super) struct StagedRelease {
    /// `None` if its program is the one that runs: then the head alone was fetched.
    pub(super) program: Option<StoredProgram>,
    /// Its signed head.
    pub(super) head: Vec<u8>,
}

/// Longest time for everything.
const STAGE_MAX: Duration = Duration::from_secs(900);
/// This program's own file, also after it was replaced.
const OWN_FILE: &str = "/proc/self/exe";

/// Everything that a release is fetched with.
#[derive(Clone, Debug)]
pub(super) struct StageJob {
    pub(super) wanted: WantedRelease,
    pub(super) running: ReleaseVersion,
    /// The configuration that the new program must accept.
    pub(super) config: Arc<Config>,
    /// Its text.
    pub(super) text: Arc<str>,
    pub(super) files: UpdateFiles,
}

/// Fetches, verifies, stores and probes a release. Nothing that runs is changed.
///
/// # Errors
/// The rule that the release breaks, or another problem, with a remedy.
pub(super) async fn stage(job: StageJob) -> Result<StagedRelease, String> {
    let version = job.wanted.version.clone();
    info!(%version, "fetching a release of this program");
    match timeout(STAGE_MAX, fetch_and_probe(&job)).await {
        Ok(done) => done,
        Err(_) => Err(format!(
            "time: the release was not there within {} s; use a faster server",
            STAGE_MAX.as_secs()
        )),
    }
}

async fn fetch_and_probe(job: &StageJob) -> Result<StagedRelease, String> {
    let config = &job.config.controllers.firewall;
    let rule = AddressRule::new(config.self_update.local_prefixes.clone());
    let is_static = config.source == SourceName::Static;
    let location = ReleaseLocation::parse(&job.wanted.url, is_static, &rule)?;
    let mut reader = ReleaseReader::open(&location, &config.self_update, &rule).await?;
    let head = read_head(&mut reader).await?;
    let signed = signed_manifest(&head, &job.wanted, &job.config)?;
    // The image's program, or the same one with a signature that is valid for longer. Its expiry does not
    // count: nothing is installed.
    let is_same_version = job.wanted.version == job.running && signed.version == job.running;
    if is_same_version && is_running(signed.program).await {
        return Ok(StagedRelease {
            program: None,
            head,
        });
    }
    let manifest = verify(&head, &job.wanted, &job.running, &job.config)?;
    let payload = read_payload(&mut reader, &manifest, &job.files).await?;
    // Seconds of work, which packets and answers of names must not wait for.
    let files = job.files.clone();
    let stored = spawn_blocking(move || files.store(&manifest, &payload)).await;
    let program = stored.map_err(|error| format!("payload: {error}"))??;
    if let Err(problem) = probe(&job.files.path_of(&program), &job.text, &job.config).await {
        job.files.discard(&program);
        return Err(problem);
    }
    Ok(StagedRelease {
        program: Some(program),
        head,
    })
}

/// `true` if the program that runs has this digest.
async fn is_running(program: FileDigest) -> bool {
    // To read it takes a while.
    let read = spawn_blocking(move || {
        let own = File::open(OWN_FILE).and_then(|file| FileDigest::of(BufReader::new(file)));
        own.is_ok_and(|own| own == program)
    });
    read.await.unwrap_or(false)
}

/// Reads the head. Nothing else is read before its signature and its rules were checked.
async fn read_head(reader: &mut ReleaseReader) -> Result<Vec<u8>, String> {
    let mut head = reader.exactly(SignedHead::PREFIX_BYTES).await?;
    let length = SignedHead::rest_bytes(&head).map_err(|error| error.to_string())?;
    head.extend(reader.exactly(length).await?);
    Ok(head)
}

/// Checks the head of a release by the keys and rules of a configuration, and by the clock. A fetch takes
/// long: the caller does it again with the configuration that is in force before the program runs.
///
/// # Errors
/// The rule that the release breaks, with a remedy.
pub(super) fn verify(
    head: &[u8],
    wanted: &WantedRelease,
    running: &ReleaseVersion,
    config: &Config,
) -> Result<ReleaseManifest, String> {
    let manifest = signed_manifest(head, wanted, config)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let context = ReleaseContext {
        name: PROGRAM_NAME,
        architecture: std::env::consts::ARCH,
        wanted: &wanted.version,
        running,
        mesh_level: config.sources.metal.as_ref().map(|_| MESH_LEVEL),
        now_s: since.map_or(0, |since| since.as_secs()),
    };
    check_release(&manifest, &context).map_err(|error| error.to_string())?;
    Ok(manifest)
}

/// The manifest of the head that the source names, if a trusted key has signed it.
fn signed_manifest(
    head: &[u8],
    wanted: &WantedRelease,
    config: &Config,
) -> Result<ReleaseManifest, String> {
    check_head(head, wanted)?;
    let keys = &config.controllers.firewall.self_update.keys;
    let verified = SignedHead::decode(head).and_then(|signed| signed.verify(keys));
    verified.map_err(|error| error.to_string())
}

/// Compares the head with the digest that the source names: of two releases of one version, only the
/// named one is taken.
fn check_head(head: &[u8], wanted: &WantedRelease) -> Result<(), String> {
    let Some(named) = &wanted.head_digest else {
        return Ok(());
    };
    let found = FileDigest::of(head).map_err(|error| format!("controllerDigest: {error}"))?;
    if found.digest.same_as(named) {
        return Ok(());
    }
    Err(
        "controllerDigest: the release there has another signed head; publish the named release, or \
         name this one"
            .to_owned(),
    )
}

async fn read_payload(
    reader: &mut ReleaseReader,
    manifest: &ReleaseManifest,
    files: &UpdateFiles,
) -> Result<NamedTempFile, String> {
    let disk = |error| format!("disk: cannot keep the release: {error}; make room");
    let mut payload = files.payload().map_err(disk)?;
    let mut meter = PayloadMeter::new(manifest.payload.clone());
    // A piece that is too much is refused before it is written.
    while let Some(piece) = reader.piece().await? {
        meter.update(&piece).map_err(|error| error.to_string())?;
        payload.write_all(&piece).map_err(disk)?;
    }
    meter.finish().map_err(|error| error.to_string())?;
    Ok(payload)
}
