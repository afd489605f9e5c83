//! The commands and responses of a TPM 2.0 that joining needs (library specification, parts 2 and
//! 3).

/// Tag, length, code.
pub(super) const HEADER_LEN: usize = 10;
const TAG_PLAIN: u16 = 0x8001;
const TAG_SESSIONS: u16 = 0x8002;

pub(super) const CREATE_PRIMARY: u32 = 0x131;
pub(super) const ACTIVATE_CREDENTIAL: u32 = 0x147;
pub(super) const POLICY_SECRET: u32 = 0x151;
pub(super) const FLUSH_CONTEXT: u32 = 0x165;
pub(super) const START_AUTH_SESSION: u32 = 0x176;

pub(super) const HANDLE_NULL: u32 = 0x4000_0007;
const HANDLE_PASSWORD: u32 = 0x4000_0009;
const CONTINUE_SESSION: u8 = 1;

/// `TPM_SE_POLICY`, no symmetric cipher, SHA-256.
pub(super) const POLICY_SESSION: [u8; 5] = [0x01, 0x00, 0x10, 0x00, 0x0b];

/// The default EK of the TCG's EK credential profile, template L-2: P-256, a storage key guarded by
/// the policy. From this template a TPM makes the key that its manufacturer certified.
#[rustfmt::skip]
pub(super) const ENDORSEMENT: &[u8] = &[
    0x00, 0x23, 0x00, 0x0b, // ECC, SHA-256
    0x00, 0x03, 0x00, 0xb2, // fixedTPM fixedParent sensitiveDataOrigin adminWithPolicy restricted decrypt
    0x00, 0x20, // the policy: PolicySecret of the endorsement hierarchy
    0x83, 0x71, 0x97, 0x67, 0x44, 0x84, 0xb3, 0xf8, 0x1a, 0x90, 0xcc, 0x8d, 0x46, 0xa5, 0xd7, 0x24,
    0xfd, 0x52, 0xd7, 0x6e, 0x06, 0x52, 0x0b, 0x64, 0xf2, 0xa1, 0xda, 0x1b, 0x33, 0x14, 0x69, 0xaa,
    0x00, 0x06, 0x00, 0x80, 0x00, 0x43, // AES-128 CFB
    0x00, 0x10, 0x00, 0x03, 0x00, 0x10, // no scheme, P-256, no KDF
    0x00, 0x20, // x and y of zeros
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0x00, 0x20,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// A restricted signing key without a password.
#[rustfmt::skip]
pub(super) const ATTESTATION: &[u8] = &[
    0x00, 0x23, 0x00, 0x0b, // ECC, SHA-256
    0x00, 0x05, 0x00, 0x72, // fixedTPM fixedParent sensitiveDataOrigin userWithAuth restricted sign
    0x00, 0x00, // no policy
    0x00, 0x10, // no symmetric cipher
    0x00, 0x18, 0x00, 0x0b, // ECDSA with SHA-256
    0x00, 0x03, 0x00, 0x10, // P-256, no KDF
    0x00, 0x00, 0x00, 0x00, // x, y
];

/// Authorization for the use of a handle.
#[derive(Clone, Copy, Debug)]
pub(super) enum Auth {
    /// By an empty password.
    Password,
    /// By a policy session.
    Session(u32),
}

/// A command under construction.
#[derive(Debug)]
pub(super) struct Command {
    code: u32,
    handles: Vec<u8>,
    auths: Vec<u8>,
    parameters: Vec<u8>,
}

impl Command {
    pub(super) fn new(code: u32) -> Self {
        Self {
            code,
            handles: Vec::new(),
            auths: Vec::new(),
            parameters: Vec::new(),
        }
    }

    pub(super) fn handle(mut self, handle: u32) -> Self {
        self.handles.extend(handle.to_be_bytes());
        self
    }

    pub(super) fn auth(mut self, auth: Auth) -> Self {
        let handle = match auth {
            Auth::Password => HANDLE_PASSWORD,
            // The session ends with the command.
            Auth::Session(handle) => handle,
        };
        let attributes = match auth {
            Auth::Password => CONTINUE_SESSION,
            Auth::Session(_) => 0,
        };
        self.auths.extend(handle.to_be_bytes());
        // No nonce, the attributes, no password.
        self.auths.extend([0, 0, attributes, 0, 0]);
        self
    }

    /// A `TPM2B`.
    pub(super) fn sized(mut self, bytes: &[u8]) -> Self {
        let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.parameters.extend(len.to_be_bytes());
        self.bytes(bytes)
    }

    pub(super) fn number(self, number: u32) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.parameters.extend(bytes);
        self
    }

    pub(super) fn answers_with_handle(&self) -> bool {
        matches!(self.code, CREATE_PRIMARY | START_AUTH_SESSION)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = self.handles.clone();
        let tag = if self.auths.is_empty() {
            TAG_PLAIN
        } else {
            body.extend(length(self.auths.len()));
            body.extend(&self.auths);
            TAG_SESSIONS
        };
        body.extend(&self.parameters);
        let mut out = tag.to_be_bytes().to_vec();
        out.extend(length(HEADER_LEN + body.len()));
        out.extend(self.code.to_be_bytes());
        out.extend(body);
        out
    }
}

fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes()
}

/// A response of a TPM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Response code (`TPM_RC`). Zero means success.
    pub code: u32,
    /// Handle of the object that the command made. `None` for other commands.
    pub handle: Option<u32>,
    /// Parameters, without the data of sessions that follows them.
    pub parameters: Vec<u8>,
}

/// Decodes a response. `has_handle` is `true` for commands that make an object.
pub fn decode_response(bytes: &[u8], has_handle: bool) -> Option<Response> {
    let mut rest = bytes.get(HEADER_LEN..)?;
    let tag = u16::from_be_bytes(*bytes.first_chunk()?);
    if announced(bytes)? != bytes.len() || !matches!(tag, TAG_PLAIN | TAG_SESSIONS) {
        return None;
    }
    let code = u32::from_be_bytes(*bytes.get(6..)?.first_chunk()?);
    let mut response = Response {
        code,
        handle: None,
        parameters: Vec::new(),
    };
    if code != 0 {
        return Some(response);
    }
    if has_handle {
        response.handle = Some(number(&mut rest)?);
    }
    if tag == TAG_SESSIONS {
        let len = usize::try_from(number(&mut rest)?).ok()?;
        rest = rest.get(..len)?;
    }
    response.parameters = rest.to_vec();
    Some(response)
}

/// Length of a response according to its header.
pub(super) fn announced(header: &[u8]) -> Option<usize> {
    let len = u32::from_be_bytes(*header.get(2..)?.first_chunk()?);
    usize::try_from(len).ok().filter(|len| *len >= HEADER_LEN)
}

/// Takes a `TPM2B` (length and bytes) off the front.
pub(super) fn sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, others) = rest.split_first_chunk::<2>()?;
    let (first, others) = others.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    *rest = others;
    Some(first)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (first, others) = rest.split_first_chunk::<4>()?;
    *rest = others;
    Some(u32::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_responses() {
        let flush = Command::new(FLUSH_CONTEXT).number(0x8000_0000);
        assert_eq!(
            flush.encode(),
            [0x80, 1, 0, 0, 0, 14, 0, 0, 1, 0x65, 0x80, 0, 0, 0]
        );
        let with_auth = Command::new(CREATE_PRIMARY).handle(1).auth(Auth::Password);
        assert_eq!(
            with_auth.encode()[10..],
            [0, 0, 0, 1, 0, 0, 0, 9, 0x40, 0, 0, 9, 0, 0, 1, 0, 0]
        );
        let made = [
            0x80, 2, 0, 0, 0, 21, 0, 0, 0, 0, // header
            0x80, 0, 0, 1, // handle
            0, 0, 0, 2, // parameters' length
            0, 0, // one empty TPM2B
            7, // what follows from sessions
        ];
        let response = decode_response(&made, true).unwrap();
        assert_eq!(response.handle, Some(0x8000_0001));
        assert_eq!(sized(&mut response.parameters.as_slice()), Some(&[][..]));
        for len in 0..made.len() {
            assert_eq!(decode_response(&made[..len], true), None, "cut at {len}");
        }
        let refusal = [0x80, 1, 0, 0, 0, 10, 0, 0, 1, 0];
        assert_eq!(decode_response(&refusal, true).unwrap().code, 0x100);
    }
}
