//! TFTP packets: decoding and encoding.

const OP_READ: u16 = 1;
const OP_WRITE: u16 = 2;
const OP_DATA: u16 = 3;
const OP_ACK: u16 = 4;
const OP_ERROR: u16 = 5;
const OP_OPTIONS: u16 = 6;

/// Longest request, bytes: a path and a few short options. A longer one is refused.
const REQUEST_LEN_MAX: usize = 1024;
/// Most options of a request, more than any client sends. A request with more is refused.
const OPTIONS_MAX: usize = 16;

/// Error codes of RFC 1350 §5 and RFC 2347.
pub mod error_code {
    /// Not defined; the message explains.
    pub const UNDEFINED: u16 = 0;
    /// The file does not exist.
    pub const NOT_FOUND: u16 = 1;
    /// Access violation.
    pub const ACCESS: u16 = 2;
    /// Illegal operation.
    pub const ILLEGAL: u16 = 4;
    /// Unknown transfer id: the packet belongs to no transfer.
    pub const UNKNOWN_TRANSFER: u16 = 5;
    /// An option is not acceptable.
    pub const OPTION: u16 = 8;
}

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// Read request.
    Read(Request),
    /// Write request.
    Write(Request),
    /// A block of the file. The last one is shorter than the block size.
    Data {
        /// Number of the block. It starts at 1 and wraps.
        block: u16,
        /// Content of the block.
        bytes: Vec<u8>,
    },
    /// Acknowledgement.
    Ack {
        /// Number of the block. 0 acknowledges options.
        block: u16,
    },
    /// An error, which ends the transfer.
    Error {
        /// One of [`error_code`].
        code: u16,
        /// Text for people.
        message: String,
    },
    /// The options that the server accepts, in answer to a request with options.
    OptionAck(Vec<(String, String)>),
}

/// A read or write request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Path of the file, as sent by the client.
    pub file: String,
    /// "octet" or "netascii", in lower case.
    pub mode: String,
    /// Options in the order of the client, names in lower case.
    pub options: Vec<(String, String)>,
}

/// The reason why bytes are not a TFTP packet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The packet is truncated.
    #[error("the packet is cut")]
    Short,
    /// Unknown opcode.
    #[error("unknown opcode {0}")]
    Op(u16),
    /// A string is not terminated by NUL.
    #[error("a string is not terminated")]
    Unterminated,
    /// The request is longer than 1024 bytes.
    #[error("the request is {0} bytes long, more than any client sends")]
    Long(usize),
    /// The request has too many options.
    #[error("more than {OPTIONS_MAX} options")]
    Options,
}

impl Packet {
    /// Decodes a packet.
    ///
    /// # Errors
    /// The packet is truncated, has an unknown opcode, or exceeds a bound of requests.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (op, rest) = take_u16(bytes)?;
        match op {
            OP_READ => decode_request(rest).map(Self::Read),
            OP_WRITE => decode_request(rest).map(Self::Write),
            OP_DATA => {
                let (block, bytes) = take_u16(rest)?;
                Ok(Self::Data {
                    block,
                    bytes: bytes.to_vec(),
                })
            }
            OP_ACK => Ok(Self::Ack {
                block: take_u16(rest)?.0,
            }),
            OP_ERROR => {
                let (code, rest) = take_u16(rest)?;
                // The text is only for people, so a missing terminator is not an error.
                let end = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
                let message = String::from_utf8_lossy(&rest[..end.min(REQUEST_LEN_MAX)]);
                Ok(Self::Error {
                    code,
                    message: message.into_owned(),
                })
            }
            OP_OPTIONS => decode_options(rest).map(Self::OptionAck),
            other => Err(DecodeError::Op(other)),
        }
    }

    /// Encodes the packet.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Read(request) => encode_request(OP_READ, request),
            Self::Write(request) => encode_request(OP_WRITE, request),
            Self::Data { block, bytes } => {
                let mut out = header(OP_DATA, *block);
                out.extend_from_slice(bytes);
                out
            }
            Self::Ack { block } => header(OP_ACK, *block),
            Self::Error { code, message } => {
                let mut out = header(OP_ERROR, *code);
                push_string(&mut out, message);
                out
            }
            Self::OptionAck(options) => {
                let mut out = OP_OPTIONS.to_be_bytes().to_vec();
                push_options(&mut out, options);
                out
            }
        }
    }
}

impl Request {
    /// The value of an option, as a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.options.iter().find(|(n, _)| n == name)?.1.parse().ok()
    }
}

fn take_u16(bytes: &[u8]) -> Result<(u16, &[u8]), DecodeError> {
    let (head, rest) = bytes.split_first_chunk::<2>().ok_or(DecodeError::Short)?;
    Ok((u16::from_be_bytes(*head), rest))
}

fn take_string(bytes: &[u8]) -> Result<(String, &[u8]), DecodeError> {
    let end = bytes
        .iter()
        .position(|&b| b == 0)
        .ok_or(DecodeError::Unterminated)?;
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    Ok((text, bytes.get(end + 1..).unwrap_or_default()))
}

fn decode_request(bytes: &[u8]) -> Result<Request, DecodeError> {
    let (file, rest) = take_string(bounded(bytes)?)?;
    let (mode, rest) = take_string(rest)?;
    // Some ROMs pad the request with NULs after the options.
    let options = decode_options(rest)?;
    Ok(Request {
        file,
        mode: mode.to_ascii_lowercase(),
        options,
    })
}

fn decode_options(bytes: &[u8]) -> Result<Vec<(String, String)>, DecodeError> {
    let mut rest = bounded(bytes)?;
    let mut options = Vec::new();
    while !rest.is_empty() {
        let (name, after_name) = take_string(rest)?;
        if name.is_empty() {
            break;
        }
        if options.len() == OPTIONS_MAX {
            return Err(DecodeError::Options);
        }
        let (value, after_value) = take_string(after_name)?;
        options.push((name.to_ascii_lowercase(), value));
        rest = after_value;
    }
    Ok(options)
}

fn bounded(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    if bytes.len() > REQUEST_LEN_MAX {
        Err(DecodeError::Long(bytes.len()))
    } else {
        Ok(bytes)
    }
}

fn header(op: u16, second: u16) -> Vec<u8> {
    let mut out = op.to_be_bytes().to_vec();
    out.extend_from_slice(&second.to_be_bytes());
    out
}

fn encode_request(op: u16, request: &Request) -> Vec<u8> {
    let mut out = op.to_be_bytes().to_vec();
    push_string(&mut out, &request.file);
    push_string(&mut out, &request.mode);
    push_options(&mut out, &request.options);
    out
}

fn push_options(out: &mut Vec<u8>, options: &[(String, String)]) {
    for (name, value) in options {
        push_string(out, name);
        push_string(out, value);
    }
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|&b| b != 0));
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read() -> Packet {
        Packet::Read(Request {
            file: "ipxe.efi".into(),
            mode: "octet".into(),
            options: vec![
                ("tsize".into(), "0".into()),
                ("blksize".into(), "1468".into()),
            ],
        })
    }

    #[test]
    fn what_is_written_is_read_back() {
        for packet in [
            read(),
            Packet::Data {
                block: 65535,
                bytes: vec![1, 2, 3],
            },
            Packet::Ack { block: 7 },
            Packet::Error {
                code: 1,
                message: "no such file".into(),
            },
            Packet::OptionAck(vec![("windowsize".into(), "8".into())]),
        ] {
            assert_eq!(Packet::decode(&packet.encode()).unwrap(), packet);
        }
    }

    #[test]
    fn option_names_and_mode_are_case_blind_and_padding_is_ignored() {
        let mut bytes = b"\x00\x01a\0OCTET\0BLKSIZE\x001024\0".to_vec();
        bytes.extend_from_slice(&[0; 40]);
        let Packet::Read(request) = Packet::decode(&bytes).unwrap() else {
            panic!("not a read")
        };
        assert_eq!(request.mode, "octet");
        assert_eq!(request.number("blksize"), Some(1024));
        assert_eq!(request.number("tsize"), None);
    }

    #[test]
    fn bad_packets_are_refused_by_reason() {
        assert_eq!(Packet::decode(&[]), Err(DecodeError::Short));
        assert_eq!(Packet::decode(&[0]), Err(DecodeError::Short));
        assert_eq!(Packet::decode(&[0, 9, 0, 0]), Err(DecodeError::Op(9)));
        assert_eq!(
            Packet::decode(b"\x00\x01abc"),
            Err(DecodeError::Unterminated)
        );
        let long = [&b"\x00\x01"[..], &[b'a'; 2000]].concat();
        assert_eq!(Packet::decode(&long), Err(DecodeError::Long(2000)));
        let many = [&b"\x00\x01a\0octet\0"[..], &b"x\0y\0".repeat(20)].concat();
        assert_eq!(Packet::decode(&many), Err(DecodeError::Options));
    }

    #[test]
    fn no_prefix_panics() {
        let good = read().encode();
        for len in 0..good.len() {
            drop(Packet::decode(&good[..len]));
        }
    }
}
