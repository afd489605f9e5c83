//! The host's TPM 2.0, as far as joining needs it: which one it is, and that it is here.
//!
//! Seven commands over the kernel's resource manager (`/dev/tpmrm0`), or over the socket of a
//! software TPM, without a C library: agents are static binaries, and nothing else of a TPM is
//! needed. The keys are made anew from the TPM's own seed each time, so that none is kept.

mod wire;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proto_identity::tpm::TpmKey;

use crate::error::KitError;
use wire::{Auth, Command};

pub use wire::decode_response;

/// Where Linux has the TPM of a host.
pub const TPM_PATH: &str = "/dev/tpmrm0";
/// Largest response, bytes; the kernel's own buffer has as many.
const RESPONSE_LEN_MAX: usize = 4096;
/// Making keys takes a hardware TPM seconds.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// `TPM_RC_RETRY`, `_YIELDED`, `_TESTING`: it did not begin, and wants to be asked again.
const BUSY: [u32; 3] = [0x922, 0x908, 0x90a];
const BUSY_MAX: u32 = 250;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

const OWNER_OF_ENDORSEMENTS: u32 = 0x4000_000b;

/// Why a TPM is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TpmError {
    /// The device or socket.
    #[error("cannot use it")]
    Io(#[from] io::Error),
    /// What it says is no response.
    #[error("its response is malformed")]
    Malformed,
    /// It refused a command.
    #[error("it refuses {command}: response code {code:#x}{}", hint(*.code))]
    Refused {
        /// Which command.
        command: &'static str,
        /// `TPM_RC`.
        code: u32,
    },
}

fn hint(code: u32) -> &'static str {
    match code {
        0x100 => "; it was not started: let the firmware start it",
        0x9a2 => "; the endorsement hierarchy has a password, which agents have not",
        0x921 => "; it is locked out after wrong passwords: clear the lockout",
        _ => "",
    }
}

/// An open TPM.
#[derive(Debug)]
pub struct Tpm {
    path: PathBuf,
    channel: Channel,
}

#[derive(Debug)]
enum Channel {
    Device(File),
    Socket(UnixStream),
}

/// Two keys of the TPM, loaded.
#[derive(Debug)]
pub struct Loaded {
    /// `TPMT_PUBLIC` of the endorsement key.
    pub endorsement: Vec<u8>,
    /// `TPMT_PUBLIC` of a signing key that never leaves this TPM.
    pub attestation: Vec<u8>,
    endorsement_handle: u32,
    attestation_handle: u32,
}

impl Tpm {
    /// Opens a TPM's device or socket.
    ///
    /// # Errors
    /// It is not there, or not ours to use.
    pub fn open(path: &Path) -> Result<Self, KitError> {
        let open = || -> io::Result<Channel> {
            if fs::metadata(path)?.file_type().is_socket() {
                let socket = UnixStream::connect(path)?;
                socket.set_read_timeout(Some(ANSWER_TIME_MAX))?;
                return Ok(Channel::Socket(socket));
            }
            let device = OpenOptions::new().read(true).write(true).open(path)?;
            Ok(Channel::Device(device))
        };
        let channel = open().map_err(|e| of(path, e.into()))?;
        Ok(Self {
            path: path.to_owned(),
            channel,
        })
    }

    /// SHA-256 of the endorsement key (SubjectPublicKeyInfo), hex.
    ///
    /// # Errors
    /// The TPM refuses.
    pub fn fingerprint(&mut self) -> Result<String, KitError> {
        let (handle, area) = self.create(wire::ENDORSEMENT, "CreatePrimary of the EK")?;
        self.flush(handle)?;
        Ok(TpmKey::decode(&area)?.fingerprint())
    }

    /// Makes both keys.
    ///
    /// # Errors
    /// The TPM refuses.
    pub fn load(&mut self) -> Result<Loaded, KitError> {
        let (endorsement_handle, endorsement) =
            self.create(wire::ENDORSEMENT, "CreatePrimary of the EK")?;
        let (attestation_handle, attestation) =
            self.create(wire::ATTESTATION, "CreatePrimary of the AK")?;
        Ok(Loaded {
            endorsement,
            attestation,
            endorsement_handle,
            attestation_handle,
        })
    }

    /// Gives the keys' places in the TPM back.
    ///
    /// # Errors
    /// The TPM refuses.
    pub fn unload(&mut self, loaded: &Loaded) -> Result<(), KitError> {
        self.flush(loaded.attestation_handle)?;
        self.flush(loaded.endorsement_handle)
    }

    /// The secret in a challenge that was made for these keys.
    ///
    /// # Errors
    /// The challenge is for another TPM, or the TPM refuses.
    pub fn activate(
        &mut self,
        loaded: &Loaded,
        credential: &[u8],
        encrypted_seed: &[u8],
    ) -> Result<Vec<u8>, KitError> {
        let session = self.policy_session()?;
        let command = Command::new(wire::ACTIVATE_CREDENTIAL)
            .handle(loaded.attestation_handle)
            .handle(loaded.endorsement_handle)
            .auth(Auth::Password)
            .auth(Auth::Session(session))
            .sized(credential)
            .sized(encrypted_seed);
        let answer = self.call(&command, "ActivateCredential");
        if answer.is_err() {
            // It would have ended with the command.
            self.flush(session)?;
        }
        let answer = answer?;
        let mut rest = answer.parameters.as_slice();
        let secret = wire::sized(&mut rest).ok_or_else(|| self.malformed())?;
        Ok(secret.to_vec())
    }

    fn create(&mut self, template: &[u8], what: &'static str) -> Result<(u32, Vec<u8>), KitError> {
        let command = Command::new(wire::CREATE_PRIMARY)
            .handle(OWNER_OF_ENDORSEMENTS)
            .auth(Auth::Password)
            // No password and no data of ours in the key.
            .sized(&[0, 0, 0, 0])
            .sized(template)
            // No outside info, no PCRs.
            .sized(&[])
            .number(0);
        let answer = self.call(&command, what)?;
        let mut rest = answer.parameters.as_slice();
        let area = wire::sized(&mut rest).ok_or_else(|| self.malformed())?;
        let handle = answer.handle.ok_or_else(|| self.malformed())?;
        Ok((handle, area.to_vec()))
    }

    /// What the EK's policy wants: that the endorsement hierarchy's password, which is empty, was
    /// shown.
    fn policy_session(&mut self) -> Result<u32, KitError> {
        let start = Command::new(wire::START_AUTH_SESSION)
            .handle(wire::HANDLE_NULL)
            .handle(wire::HANDLE_NULL)
            // A nonce: the session protects nothing that it could be repeated against.
            .sized(&[0; 16])
            .sized(&[])
            .bytes(&wire::POLICY_SESSION);
        let answer = self.call(&start, "StartAuthSession")?;
        let session = answer.handle.ok_or_else(|| self.malformed())?;
        let secret = Command::new(wire::POLICY_SECRET)
            .handle(OWNER_OF_ENDORSEMENTS)
            .handle(session)
            .auth(Auth::Password)
            .sized(&[])
            .sized(&[])
            .sized(&[])
            .number(0);
        self.call(&secret, "PolicySecret")?;
        Ok(session)
    }

    fn flush(&mut self, handle: u32) -> Result<(), KitError> {
        let command = Command::new(wire::FLUSH_CONTEXT).number(handle);
        self.call(&command, "FlushContext").map(drop)
    }

    fn call(&mut self, command: &Command, what: &'static str) -> Result<wire::Response, KitError> {
        let bytes = command.encode();
        let mut again = 0;
        loop {
            let answer = self.exchange(&bytes);
            let answer = answer.map_err(|e| of(&self.path, e.into()))?;
            let answer = decode_response(&answer, command.answers_with_handle());
            let answer = answer.ok_or_else(|| self.malformed())?;
            match answer.code {
                0 => return Ok(answer),
                code if BUSY.contains(&code) && again < BUSY_MAX => {
                    again += 1;
                    std::thread::sleep(BUSY_PAUSE);
                }
                code => {
                    let command = what;
                    return Err(of(&self.path, TpmError::Refused { command, code }));
                }
            }
        }
    }

    /// A device hands out a response with one read; on a socket its length says where it ends.
    fn exchange(&mut self, command: &[u8]) -> io::Result<Vec<u8>> {
        let mut answer = vec![0; RESPONSE_LEN_MAX];
        let len = match &mut self.channel {
            Channel::Device(device) => {
                device.write_all(command)?;
                device.read(&mut answer)?
            }
            Channel::Socket(socket) => {
                socket.write_all(command)?;
                socket.read_exact(&mut answer[..wire::HEADER_LEN])?;
                let len = wire::announced(&answer).filter(|len| *len <= RESPONSE_LEN_MAX);
                let len =
                    len.ok_or_else(|| io::Error::other("a response of no sensible length"))?;
                socket.read_exact(&mut answer[wire::HEADER_LEN..len])?;
                len
            }
        };
        answer.truncate(len);
        Ok(answer)
    }

    fn malformed(&self) -> KitError {
        of(&self.path, TpmError::Malformed)
    }
}

fn of(path: &Path, source: TpmError) -> KitError {
    KitError::Tpm {
        path: path.to_owned(),
        source,
    }
}
