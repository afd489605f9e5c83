//! `metalmesh release`: keys of releases and signed releases, without a server.

mod program;
mod sign;
mod verify;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;
use proto_release::ReleaseSigner;
use serde_json::json;

use crate::files;
use crate::output::OutputFormat;

pub(crate) use verify::{VerifiedRelease, verified};

#[derive(Debug, Subcommand)]
pub(crate) enum ReleaseCommand {
    /// Generate a key that signs releases, and print its public half.
    ///
    /// The file is secret and gets mode 0600. Agents trust the public half: put it into
    /// controllers.firewall.selfUpdate.keys of a firewall's configuration, or into the file release-keys
    /// beside it; and into the file that [self_update] names in the configuration of other agents.
    Keygen {
        /// New file for the secret key.
        file: PathBuf,
    },
    /// Sign a program, and write program and signature into one new file.
    Sign(sign::ReleaseSignArgs),
    /// Verify a release with public keys, and show its manifest.
    Verify(verify::ReleaseVerifyArgs),
}

/// Runs a command, which needs no server.
///
/// # Errors
/// A file cannot be read or written, or a release breaks a rule.
pub(crate) fn run(output: &OutputFormat, command: ReleaseCommand) -> Result<()> {
    match command {
        ReleaseCommand::Keygen { file } => generate(output, &file),
        ReleaseCommand::Sign(args) => sign::sign(output, &args),
        ReleaseCommand::Verify(args) => verify::verify(output, &args),
    }
}

/// `true` if the command writes files.
pub(crate) fn writes(command: &ReleaseCommand) -> bool {
    !matches!(command, ReleaseCommand::Verify(_))
}

fn generate(output: &OutputFormat, file: &Path) -> Result<()> {
    let signer = ReleaseSigner::generate()?;
    files::write_private(file, &signer.secret_text())?;
    let public = signer.public();
    if !output.is_table() {
        return output.value(&json!({
            "file": file, "id": public.id().to_string(), "public_key": public,
        }));
    }
    outln!("{public}");
    noteln!(
        "hint:  {} is secret; keep it offline, and a copy in another place",
        file.display()
    );
    Ok(())
}
