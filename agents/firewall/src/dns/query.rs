use super::failure_code::FailureCode;
use super::wire::{self, EDNS_LEN, Edns, HEADER_LEN};

/// Type of IPv4 addresses, and of IPv6 addresses.
const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const CLASS_IN: u16 = 1;
/// Longest query, bytes: header, a question of the longest name, EDNS with a cookie and padding.
const QUERY_LEN_MAX: usize = 1024;
/// Flags of a client that a server should see: recursion desired, authentic data, checking disabled.
const FLAGS_PASSED: u16 = 0x0100 | 0x0020 | 0x0010;
const FLAG_RESPONSE: u16 = 0x8000;
const FLAG_TRUNCATED: u16 = 0x0200;
const FLAG_RECURSION_AVAILABLE: u16 = 0x0080;
const OPCODES: u16 = 0x7800;
const CODES: u16 = 0x000F;

/// A question of a client, which the proxy asks anew in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsQuery {
    id: u16,
    flags: u16,
    /// The question section as the client wrote it.
    question: Vec<u8>,
    name: String,
    kind: u16,
    class: u16,
    edns: Option<Edns>,
}

/// Parts of the key by which equal questions share an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct QuestionKey {
    question: Vec<u8>,
    flags: u16,
    edns: Option<Edns>,
    over_tcp: bool,
}

impl DnsQuery {
    /// Reads a client's message.
    ///
    /// # Errors
    /// The answer to a message that is no query which the proxy serves. `None` if the message must
    /// not be answered at all, for instance because it is an answer itself.
    pub fn parse(bytes: &[u8]) -> Result<Self, Option<Vec<u8>>> {
        let header = wire::header(bytes).ok_or(None)?;
        if header.flags & FLAG_RESPONSE != 0 {
            return Err(None);
        }
        let bare = |code| Err(Some(wire::bare_failure(&header, code)));
        if header.flags & OPCODES != 0 {
            return bare(FailureCode::NotImplemented);
        }
        let is_plain = (header.questions, header.answers, header.authorities) == (1, 0, 0);
        if !is_plain || header.additionals > 1 || bytes.len() > QUERY_LEN_MAX {
            return bare(FailureCode::Format);
        }
        let Some(question) = wire::question(bytes) else {
            return bare(FailureCode::Format);
        };
        let rest = bytes.get(HEADER_LEN + question.bytes.len()..);
        let edns = match header.additionals {
            0 => None,
            _ => match rest.and_then(wire::edns) {
                None => return bare(FailureCode::Format),
                edns => edns,
            },
        };
        Ok(Self {
            id: header.id,
            flags: header.flags,
            question: question.bytes.to_vec(),
            name: question.name,
            kind: question.kind,
            class: question.class,
            edns,
        })
    }

    /// The name in small letters, without a dot at the end. Empty if it has characters that no name
    /// of a rule has.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `true` if IPv4 addresses are asked for, `false` if IPv6 ones. `None` for other questions.
    #[must_use]
    pub fn asks_for_ipv4(&self) -> Option<bool> {
        match (self.class, self.kind) {
            (CLASS_IN, TYPE_A) => Some(true),
            (CLASS_IN, TYPE_AAAA) => Some(false),
            _ => None,
        }
    }

    /// Longest answer over UDP, bytes.
    #[must_use]
    pub fn udp_len_max(&self) -> usize {
        usize::from(self.edns.map_or(512, |edns| edns.clamped().size))
    }

    pub(super) fn key(&self, over_tcp: bool) -> QuestionKey {
        QuestionKey {
            question: lowercase(&self.question),
            flags: self.flags & FLAGS_PASSED,
            edns: self.edns.map(Edns::clamped),
            over_tcp,
        }
    }

    /// The proxy's own query: another id, and letters in a random case (0x20), each by a bit of
    /// `case`. Nothing of the client's EDNS but size and flags passes.
    #[must_use]
    pub fn to_server(&self, id: u16, case: &[u8; 32]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN + self.question.len() + EDNS_LEN);
        bytes.extend(id.to_be_bytes());
        bytes.extend((self.flags & FLAGS_PASSED).to_be_bytes());
        let additionals = u16::from(self.edns.is_some());
        for count in [1, 0, 0, additionals] {
            bytes.extend(u16::to_be_bytes(count));
        }
        // Type and class are after the name, and no letters.
        let name_len = self.question.len().saturating_sub(4);
        let mut labels = wire::letters(&self.question[..name_len]);
        for (index, byte) in self.question.iter().enumerate() {
            let is_letter = labels.next_if_eq(&index).is_some();
            let flips = case[(index / 8) % 32] >> (index % 8) & 1 == 1;
            bytes.push(if is_letter && flips {
                byte ^ 0x20
            } else {
                *byte
            });
        }
        bytes.extend(self.edns.iter().flat_map(|edns| edns.clamped().encode()));
        bytes
    }

    /// Compares an answer with the query that was sent. Only [`AnswerFit::Exact`] may be used when it
    /// came over UDP.
    #[must_use]
    pub fn fit(sent: &[u8], answer: &[u8]) -> AnswerFit {
        let (Some(asked), Some(header)) = (wire::header(sent), wire::header(answer)) else {
            return AnswerFit::Foreign;
        };
        let is_answer = header.flags & FLAG_RESPONSE != 0 && header.flags & OPCODES == 0;
        let (Some(own), Some(other)) = (wire::question(sent), wire::question(answer)) else {
            return AnswerFit::Foreign;
        };
        if header.id != asked.id || !is_answer || header.questions != 1 {
            return AnswerFit::Foreign;
        }
        if own.bytes == other.bytes {
            AnswerFit::Exact
        } else if lowercase(own.bytes) == lowercase(other.bytes) {
            AnswerFit::OtherCase
        } else {
            AnswerFit::Foreign
        }
    }

    /// The answer for the client: its id and its spelling of the name, and nothing else changed. An
    /// answer longer than `len_max` becomes an empty one that asks the client to use TCP.
    #[must_use]
    pub fn reply(&self, answer: &[u8], len_max: usize) -> Vec<u8> {
        let end = HEADER_LEN + self.question.len();
        let Some(header) = wire::header(answer).filter(|_| answer.len() >= end) else {
            return self.failure(FailureCode::Server);
        };
        let mut bytes = answer.to_vec();
        if bytes.len() > len_max {
            bytes.truncate(HEADER_LEN);
            bytes[2..4].copy_from_slice(&(header.flags | FLAG_TRUNCATED).to_be_bytes());
            bytes[4..].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
            bytes.extend(&self.question);
        }
        bytes[0..2].copy_from_slice(&self.id.to_be_bytes());
        bytes[HEADER_LEN..end].copy_from_slice(&self.question);
        bytes
    }

    /// An answer without records.
    #[must_use]
    pub fn failure(&self, code: FailureCode) -> Vec<u8> {
        let flags = FLAG_RESPONSE | FLAG_RECURSION_AVAILABLE | self.flags & FLAGS_PASSED;
        let flags = flags & !CODES | code as u16;
        let mut bytes = self.id.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        bytes.extend(&self.question);
        bytes
    }
}

/// How an answer fits to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFit {
    /// It is the answer.
    Exact,
    /// Id and question fit, and letters have another case: an old server, or a guess.
    OtherCase,
    /// It is no answer to the query.
    Foreign,
}

/// A question with the name in small letters. Type and class after it are numbers.
fn lowercase(question: &[u8]) -> Vec<u8> {
    let mut bytes = question.to_vec();
    let name_len = bytes.len().saturating_sub(4);
    bytes[..name_len].make_ascii_lowercase();
    bytes
}

/// `true` if a server says that its answer was cut off.
pub(super) fn is_truncated(answer: &[u8]) -> bool {
    wire::header(answer).is_some_and(|header| header.flags & FLAG_TRUNCATED != 0)
}
