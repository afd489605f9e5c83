use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use proto_public::metalmesh::admin::v1::AgentRelease;
use proto_release::ReleaseKey;

use crate::cmd::release::{VerifiedRelease, verified};

/// A signed release in a file, and the place where agents find it.
#[derive(Debug, Args)]
pub(crate) struct ReleaseFileArgs {
    /// The release, as `metalmesh release sign` wrote it. It is verified here, and not uploaded.
    pub(crate) file: PathBuf,
    /// Place from which the agents fetch the same file, https.
    #[arg(long)]
    pub(crate) url: String,
    /// Public key that the agents trust. Repeatable.
    #[arg(long, value_name = "KEY", required = true)]
    pub(crate) key: Vec<ReleaseKey>,
}

impl ReleaseFileArgs {
    /// The release of the file, at the place, for agents with this program.
    ///
    /// # Errors
    /// The file cannot be read, is no release of the program, or breaks a rule.
    pub(crate) fn release(&self, program: &str) -> Result<AgentRelease> {
        let file = self.file.display();
        let found = verified(&self.file, &self.key).with_context(|| file.to_string())?;
        let VerifiedRelease {
            manifest,
            head_digest,
        } = found;
        ensure!(
            manifest.name == program,
            "{file} is a release of {}; name one of {program}",
            manifest.name
        );
        Ok(AgentRelease {
            version: manifest.version.to_string(),
            url: self.url.clone(),
            head_digest: head_digest.to_string(),
        })
    }
}
