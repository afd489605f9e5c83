//! Arguments of the subcommands that print fingerprints.

use std::path::PathBuf;

use crate::error::KitError;
use crate::state_dir;
use crate::tpm::{TPM_PATH, Tpm};

/// Arguments of the `key` subcommand.
#[derive(Clone, Debug, clap::Args)]
pub struct KeyArgs {
    /// Directory for key, certificate and last-good state; mode 0700.
    #[arg(long, value_name = "DIR", env = "METALMESH_STATE_DIR")]
    pub state_dir: PathBuf,
}

/// Arguments of the `tpm` subcommand.
#[derive(Clone, Debug, clap::Args)]
pub struct TpmArgs {
    /// The host's TPM 2.0: its device, or the socket of a software TPM.
    #[arg(long, value_name = "PATH", env = "METALMESH_TPM", default_value = TPM_PATH)]
    pub tpm: PathBuf,
}

impl TpmArgs {
    /// SHA-256 of the TPM's endorsement key, for
    /// `metalmesh join create --tpm-ek`.
    pub fn fingerprint(&self) -> Result<String, KitError> {
        Tpm::open(&self.tpm)?.fingerprint()
    }
}

impl KeyArgs {
    /// SHA-256 of the agent's public key, for `metalmesh join create --key-sha256`.
    pub fn fingerprint(&self) -> Result<String, KitError> {
        state_dir::key_fingerprint(&self.state_dir)
    }
}
