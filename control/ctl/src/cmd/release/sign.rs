//! `metalmesh release sign`.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use prost_types::Timestamp;
use proto_release::{
    FileDigest, PayloadEncoding, ReleaseManifest, ReleaseSigner, ReleaseVersion, pack,
};
use serde_json::json;

use super::program;
use crate::output::OutputFormat;
use crate::text::{from_now, parse_duration};

/// Longest file of a key that is read, bytes.
const KEY_BYTES_MAX: u64 = 16 << 10;

#[derive(Debug, Args)]
pub(crate) struct ReleaseSignArgs {
    /// The program.
    program: PathBuf,
    /// Its version, as 1.2.3.
    #[arg(value_name = "VERSION")]
    release: ReleaseVersion,
    /// File of the secret key, as `metalmesh release keygen` has written it.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// New file for the release.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Name of the program: metalmesh-core, metalmesh-bmc, metalmesh-pixie or metalmesh-firewall.
    #[arg(long, default_value = "metalmesh-firewall")]
    name: String,
    /// Processors that it runs on: x86_64, aarch64 [default: those of the program].
    #[arg(long, value_name = "NAME")]
    architecture: Option<String>,
    /// Level of the mesh protocol that it needs from control.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    mesh_level: u32,
    /// Begin of its validity, as 2026-01-31T00:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    valid_from: Option<Timestamp>,
    /// Time after which it is refused: 12h, 90d.
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = parse_duration)]
    valid_for: Duration,
    /// Newer version that it may replace. Repeatable. Without it a release never replaces a newer
    /// one.
    #[arg(long, value_name = "VERSION")]
    allow_downgrade_from: Vec<ReleaseVersion>,
    /// Do not compress the program.
    #[arg(long)]
    plain: bool,
}

/// Signs a program.
///
/// # Errors
/// A file cannot be read or written, the key is readable by others, or a field is wrong.
pub(super) fn sign(output: &OutputFormat, args: &ReleaseSignArgs) -> Result<()> {
    let signer = read_key(&args.key)?;
    let program = program::read(&args.program)?;
    let encoding = if args.plain {
        PayloadEncoding::Plain
    } else {
        PayloadEncoding::Zstd
    };
    let payload = pack(&program, encoding).context("cannot compress the program")?;
    let manifest = manifest(args, &program, encoding, &payload)?;
    let head = signer.sign(&manifest)?.encode();
    write_new(&args.out, &[head, payload].concat())?;
    let key = signer.public().id().to_string();
    if !output.is_table() {
        return output.value(&json!({ "file": args.out, "key": key, "manifest": manifest }));
    }
    outln!("release: {}", args.out.display());
    outln!("key:     {key}");
    outln!("sha256:  {}", manifest.program.digest.hex());
    Ok(())
}

fn manifest(
    args: &ReleaseSignArgs,
    program: &[u8],
    encoding: PayloadEncoding,
    payload: &[u8],
) -> Result<ReleaseManifest> {
    let own = program::architecture(program);
    let architecture = match (&args.architecture, own) {
        (Some(named), Some(own)) => {
            ensure!(
                named == own,
                "the program is for {own}, and not for {named}"
            );
            named.clone()
        }
        (Some(named), None) => named.clone(),
        (None, own) => own
            .context("the program does not say its architecture; name it with --architecture")?
            .to_owned(),
    };
    let begin = args.valid_from.unwrap_or_else(|| from_now(Duration::ZERO));
    let not_before_s =
        u64::try_from(begin.seconds).context("--valid-from is before 1970; use a later time")?;
    Ok(ReleaseManifest {
        name: args.name.clone(),
        version: args.release.clone(),
        architecture,
        mesh_level: args.mesh_level,
        not_before_s,
        expires_s: not_before_s.saturating_add(args.valid_for.as_secs()),
        allow_downgrade_from: args.allow_downgrade_from.clone(),
        encoding,
        payload: FileDigest::of(payload)?,
        program: FileDigest::of(program)?,
    })
}

/// Reads a secret key, which nobody else may be able to read.
fn read_key(path: &Path) -> Result<ReleaseSigner> {
    let named = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(named)?;
    let mode = file.metadata().with_context(named)?.permissions().mode();
    ensure!(
        mode & 0o077 == 0,
        "others can read the key {path}; run `chmod 600 {path}`, and use another key if anybody may \
         have read it",
        path = path.display()
    );
    let mut text = String::new();
    file.take(KEY_BYTES_MAX)
        .read_to_string(&mut text)
        .with_context(named)?;
    ReleaseSigner::parse(&text).with_context(|| format!("{}", path.display()))
}

/// Writes a new file, which everybody may read.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .with_context(|| format!("cannot create {}", path.display()))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .with_context(|| format!("cannot write {}", path.display()))
}
