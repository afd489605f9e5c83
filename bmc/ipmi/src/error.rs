//! The errors of IPMI requests.

use std::io;

/// The reason why a request to a BMC failed.
#[derive(Debug, thiserror::Error)]
pub enum IpmiError {
    /// The local socket failed.
    #[error("cannot use the network")]
    Io(#[from] io::Error),
    /// Every attempt went unanswered.
    #[error("no answer to {what} after {tries} tries")]
    Silent { what: &'static str, tries: u32 },
    /// The BMC supports IPMI 1.5 only.
    #[error("the BMC does not speak IPMI 2.0")]
    NoVersion2,
    /// The BMC refused to open a session, with an RMCP+ status code (specification, table 13-15).
    #[error("the BMC refused {what}: {} (status {status:#04x})", status_text(*.status))]
    Refused { what: &'static str, status: u8 },
    /// The proof in a RAKP message does not match our password.
    #[error("the BMC proved a different password: check user and password")]
    WrongPassword,
    /// The BMC supports none of our cipher suites.
    #[error("the BMC accepts none of the cipher suites 17 and 3")]
    NoSuite,
    /// A command ended with a completion code other than 0 (specification, table 5-2).
    #[error("{what} failed: {} (completion code {code:#04x})", completion_text(*.code))]
    Completion { what: &'static str, code: u8 },
    /// The answer is shorter than the specification requires.
    #[error("the answer to {what} is malformed")]
    Malformed { what: &'static str },
    /// A user name, password or asset tag does not fit into its field.
    #[error("the {field} is longer than {max} bytes")]
    TooLong { field: &'static str, max: usize },
}

fn status_text(status: u8) -> &'static str {
    match status {
        0x01 => "it has no resources for another session",
        0x02 => "it does not know the session",
        0x09 | 0x0a => "it does not grant that role",
        0x0d => "it does not know the user name",
        0x0f => "the integrity check failed, mostly because of a wrong password",
        0x11 => "it does not support the cipher suite",
        0x12 => "a parameter is invalid",
        _ => "the specification does not name this status",
    }
}

fn completion_text(code: u8) -> &'static str {
    match code {
        0x80 => "the parameter is not supported",
        0xc0 => "the BMC is busy",
        0xc1 => "the command is unknown",
        0xc3 => "the BMC timed out",
        0xc7 | 0xc8 => "the request has a wrong length",
        0xc9 => "a parameter is out of range",
        0xcb => "the requested object does not exist",
        0xcc => "a field is invalid",
        0xd4 => "the user's privilege is too low",
        0xd5 => "not possible in the present state",
        _ => "the specification does not name this code",
    }
}
