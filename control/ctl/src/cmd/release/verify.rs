//! `metalmesh release verify`.

use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use prost_types::Timestamp;
use proto_release::{
    FileDigest, PayloadMeter, ReleaseContext, ReleaseKey, ReleaseManifest, SignedHead,
    check_release, unpack,
};
use proto_types::Digest;
use serde_json::json;

use crate::output::OutputFormat;
use crate::text::{from_now, moment};

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

#[derive(Debug, Args)]
pub(crate) struct ReleaseVerifyArgs {
    /// The release.
    file: PathBuf,
    /// Public key that is trusted. Repeatable.
    #[arg(long, value_name = "KEY", required = true)]
    key: Vec<ReleaseKey>,
}

/// A release that keeps every rule.
#[derive(Debug)]
pub(crate) struct VerifiedRelease {
    pub(crate) manifest: ReleaseManifest,
    /// SHA-256 of its signed head.
    pub(crate) head_digest: Digest,
}

/// Verifies a release as an agent does that runs an older version, on a host of its architecture.
///
/// # Errors
/// The file cannot be read, or the release breaks a rule.
pub(super) fn verify(output: &OutputFormat, args: &ReleaseVerifyArgs) -> Result<()> {
    let found = verified(&args.file, &args.key);
    let VerifiedRelease {
        manifest,
        head_digest,
    } = found.with_context(|| format!("{}", args.file.display()))?;
    if !output.is_table() {
        return output.value(&json!({
            "file": args.file, "manifest": manifest, "head_digest": head_digest,
        }));
    }
    let time = |seconds: u64| {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        moment(Some(&Timestamp { seconds, nanos: 0 }))
    };
    let downgrades: Vec<String> = manifest
        .allow_downgrade_from
        .iter()
        .map(ToString::to_string)
        .collect();
    outln!("program:         {} {}", manifest.name, manifest.version);
    outln!("architecture:    {}", manifest.architecture);
    outln!("mesh level:      {}", manifest.mesh_level);
    outln!(
        "valid:           {} to {}",
        time(manifest.not_before_s),
        time(manifest.expires_s)
    );
    if !downgrades.is_empty() {
        outln!("may replace:     {}", downgrades.join(", "));
    }
    outln!("sha256:          {}", manifest.program.digest.hex());
    outln!("head:            {head_digest}");
    Ok(())
}

/// Reads a release to its end, and checks every rule but those of a host.
///
/// # Errors
/// The file cannot be read, or the release breaks a rule.
pub(crate) fn verified(path: &Path, keys: &[ReleaseKey]) -> Result<VerifiedRelease> {
    let mut file = File::open(path).context("cannot be read")?;
    let mut head = Vec::new();
    take(&mut file, SignedHead::PREFIX_BYTES, &mut head)?;
    let rest = SignedHead::rest_bytes(&head)?;
    take(&mut file, rest, &mut head)?;
    let manifest = SignedHead::decode(&head)?.verify(keys)?;
    let now_s = u64::try_from(from_now(std::time::Duration::ZERO).seconds)?;
    check_release(
        &manifest,
        &ReleaseContext {
            name: &manifest.name,
            architecture: &manifest.architecture,
            wanted: &manifest.version,
            running: &manifest.version,
            mesh_level: None,
            now_s,
        },
    )?;
    let mut meter = PayloadMeter::new(manifest.payload.clone());
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        meter.update(piece.get(..length).unwrap_or_default())?;
    }
    meter.finish()?;
    // The payload again, to see whether it is the program of the manifest.
    file.seek(SeekFrom::Start(head.len() as u64))?;
    unpack(&manifest, BufReader::new(file), std::io::sink())?;
    Ok(VerifiedRelease {
        manifest,
        head_digest: FileDigest::of(head.as_slice())?.digest,
    })
}

/// Reads so many bytes more, or what is there.
fn take(file: &mut File, length: usize, into: &mut Vec<u8>) -> Result<()> {
    file.take(length as u64).read_to_end(into)?;
    Ok(())
}
