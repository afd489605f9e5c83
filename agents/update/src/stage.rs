//! From the place of a release to a program that could be started.

use std::fs::File;
use std::io::{BufReader, Write as _};
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
use super::probe::{ProbeJob, probe};
use super::program::StoredProgram;
use super::reader::ReleaseReader;
use super::settings::UpdateSettings;
use super::updating_program::UpdatingProgram;
use super::wanted::WantedRelease;

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
    pub(super) program: UpdatingProgram,
    pub(super) settings: UpdateSettings,
    /// The configuration that the new program must accept.
    pub(super) probe: ProbeJob,
    pub(super) files: UpdateFiles,
}

/// The rules by which the head of a release is checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadRules<'a> {
    pub(super) program: &'a UpdatingProgram,
    pub(super) wanted: &'a WantedRelease,
    /// Version of the program that runs.
    pub(super) running: &'a ReleaseVersion,
    pub(super) settings: &'a UpdateSettings,
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
    let settings = &job.settings;
    let rule = AddressRule::new(settings.local_prefixes.clone());
    let (url, field) = (&job.wanted.url, job.program.fields.url);
    let location = ReleaseLocation::parse(url, field, settings.may_be_file, &rule)?;
    let mut reader = ReleaseReader::open(&location, settings, &rule).await?;
    let head = read_head(&mut reader).await?;
    let rules = job.head_rules();
    let signed = rules.signed_manifest(&head)?;
    // The image's program, or the same one with a signature that is valid for longer. Its expiry does not
    // count: nothing is installed.
    let is_same_version = job.wanted.version == job.running && signed.version == job.running;
    let is_same_program = is_same_version && signed.name == job.program.name;
    if is_same_program && is_running(signed.program).await {
        return Ok(StagedRelease {
            program: None,
            head,
        });
    }
    let manifest = rules.verify(&head)?;
    let payload = read_payload(&mut reader, &manifest, &job.files).await?;
    // Seconds of work, which packets and answers of names must not wait for.
    let files = job.files.clone();
    let stored = spawn_blocking(move || files.store(&manifest, &payload)).await;
    let program = stored.map_err(|error| format!("payload: {error}"))??;
    if let Err(problem) = probe(&job.files.path_of(&program), &job.probe).await {
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

impl StageJob {
    fn head_rules(&self) -> HeadRules<'_> {
        HeadRules {
            program: &self.program,
            wanted: &self.wanted,
            running: &self.running,
            settings: &self.settings,
        }
    }
}

impl HeadRules<'_> {
    /// Checks the head of a release by the keys and rules of a configuration, and by the clock. A fetch
    /// takes long: the caller does it again with the configuration that is in force before the program
    /// runs.
    ///
    /// # Errors
    /// The rule that the release breaks, with a remedy.
    pub(super) fn verify(&self, head: &[u8]) -> Result<ReleaseManifest, String> {
        let manifest = self.signed_manifest(head)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let context = ReleaseContext {
            name: self.program.name,
            architecture: std::env::consts::ARCH,
            wanted: &self.wanted.version,
            running: self.running,
            mesh_level: self.settings.mesh_level,
            now_s: since.map_or(0, |since| since.as_secs()),
        };
        check_release(&manifest, &context).map_err(|error| error.to_string())?;
        Ok(manifest)
    }

    /// The manifest of the head that the source names, if a trusted key has signed it.
    fn signed_manifest(&self, head: &[u8]) -> Result<ReleaseManifest, String> {
        self.check_head(head)?;
        let keys = &self.settings.keys;
        let verified = SignedHead::decode(head).and_then(|signed| signed.verify(keys));
        verified.map_err(|error| error.to_string())
    }

    /// Compares the head with the digest that the source names: of two releases of one version, only the
    /// named one is taken.
    fn check_head(&self, head: &[u8]) -> Result<(), String> {
        let Some(named) = &self.wanted.head_digest else {
            return Ok(());
        };
        let field = self.program.fields.digest;
        let found = FileDigest::of(head).map_err(|error| format!("{field}: {error}"))?;
        if found.digest.same_as(named) {
            return Ok(());
        }
        Err(format!(
            "{field}: the release there has another signed head; publish the named release, or name \
             this one"
        ))
    }
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
