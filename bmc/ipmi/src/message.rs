//! The LAN message inside a packet (specification, 13.8, figure 13-4).

/// Slave address of the BMC.
const BMC: u8 = 0x20;
/// Software id of the remote console.
const CONSOLE: u8 = 0x81;

/// Encodes a request to the BMC.
#[must_use]
pub fn request(netfn: u8, command: u8, sequence: u8, data: &[u8]) -> Vec<u8> {
    let mut message = vec![BMC, netfn << 2];
    message.push(checksum(&message));
    let body = message.len();
    message.extend([CONSOLE, sequence << 2, command]);
    message.extend(data);
    message.push(checksum(&message[body..]));
    message
}

/// A request, decoded on a simulated BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub netfn: u8,
    pub command: u8,
    pub sequence: u8,
    pub data: Vec<u8>,
}

impl Request {
    /// Decodes it. `None` means that the message is cut short or a checksum is wrong.
    #[must_use]
    pub fn decode(message: &[u8]) -> Option<Self> {
        let body = checked(message)?;
        Some(Self {
            netfn: message[1] >> 2,
            command: *body.get(2)?,
            sequence: body[1] >> 2,
            data: body.get(3..)?.to_vec(),
        })
    }
}

/// An answer of the BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub netfn: u8,
    pub command: u8,
    pub sequence: u8,
    pub completion: u8,
    pub data: Vec<u8>,
}

impl Response {
    /// Decodes it. `None` means that the message is cut short or a checksum is wrong.
    #[must_use]
    pub fn decode(message: &[u8]) -> Option<Self> {
        // An answer has the layout of a request, with the completion code before the data.
        let Request {
            netfn,
            command,
            sequence,
            data,
        } = Request::decode(message)?;
        let (&completion, data) = data.split_first()?;
        Some(Self {
            netfn,
            command,
            sequence,
            completion,
            data: data.to_vec(),
        })
    }

    /// Encodes the answer, for simulated BMCs.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut message = vec![CONSOLE, self.netfn << 2];
        message.push(checksum(&message));
        let body = message.len();
        message.extend([BMC, self.sequence << 2, self.command, self.completion]);
        message.extend(&self.data);
        message.push(checksum(&message[body..]));
        message
    }
}

/// Checks both checksums and returns the second part of the message. `None` means one is wrong.
fn checked(message: &[u8]) -> Option<&[u8]> {
    // Before a session is open the checksums are the only protection against damaged packets.
    if message.len() < 7 || checksum(&message[..2]) != message[2] {
        return None;
    }
    let (&last, body) = message[3..].split_last()?;
    (checksum(body) == last).then_some(body)
}

/// Two's complement of the sum of the bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u8 {
    bytes
        .iter()
        .fold(0u8, |sum, byte| sum.wrapping_add(*byte))
        .wrapping_neg()
}
