//! Errors of a TPM.

use std::io;

/// A failure of the TPM.
#[derive(Debug, thiserror::Error)]
pub enum TpmError {
    /// The device or socket failed.
    #[error("cannot use it")]
    Io(#[from] io::Error),
    /// The response is not a valid one.
    #[error("its response is malformed")]
    Malformed,
    /// The TPM refused a command.
    #[error("it refuses {command}: response code {code:#x}{}", hint(*.code))]
    Refused {
        /// Name of the command.
        command: &'static str,
        /// Response code (`TPM_RC`).
        code: u32,
    },
}

/// Advice for frequent response codes.
fn hint(code: u32) -> &'static str {
    match code {
        0x100 => "; it was not started: let the firmware start it",
        0x9a2 => "; the endorsement hierarchy has a password, which agents do not know",
        0x921 => "; it is locked out after wrong passwords: clear the lockout",
        _ => "",
    }
}
