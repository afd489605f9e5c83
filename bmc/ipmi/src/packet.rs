//! Packets: RMCP and the session header of IPMI 2.0, with encryption and integrity.

use aes::Aes128;
use cbc::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit, block_padding::NoPadding};

use crate::rakp::Keys;

pub use crate::message::{Request, Response, request};

/// Largest datagram that is read, bytes. A longer one is cut and fails its checks. A FRU chunk with
/// headers needs far less.
pub const PACKET_BYTES_MAX: usize = 1024;

/// RMCP version 1.0, no acknowledgement, class IPMI (specification, 13.1.3).
const RMCP: [u8; 4] = [0x06, 0x00, 0xff, 0x07];
/// Authentication type of RMCP+ (table 13-8).
const RMCP_PLUS: u8 = 0x06;
const ENCRYPTED: u8 = 0x80;
const AUTHENTICATED: u8 = 0x40;
/// "Next header" of the session trailer (13.28.4).
const NEXT_HEADER: u8 = 0x07;
const BLOCK: usize = 16;

/// The payload type of a packet (table 13-16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    Message,
    OpenRequest,
    OpenResponse,
    Rakp1,
    Rakp2,
    Rakp3,
    Rakp4,
}

impl Payload {
    const ALL: [(Self, u8); 7] = [
        (Self::Message, 0x00),
        (Self::OpenRequest, 0x10),
        (Self::OpenResponse, 0x11),
        (Self::Rakp1, 0x12),
        (Self::Rakp2, 0x13),
        (Self::Rakp3, 0x14),
        (Self::Rakp4, 0x15),
    ];

    fn number(self) -> u8 {
        Self::ALL
            .iter()
            .find(|(payload, _)| *payload == self)
            .map_or(0, |(_, number)| *number)
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, n)| *n == number)
            .map(|(payload, _)| *payload)
    }
}

/// The parameters that protect one packet of an open session.
#[derive(Debug)]
pub struct Protection<'a> {
    pub keys: &'a Keys,
    /// Session id of the receiver.
    pub session: u32,
    /// Packet sequence number, not 0.
    pub sequence: u32,
    /// Initialisation vector of this packet, random.
    pub iv: [u8; BLOCK],
}

/// Encodes a packet outside of a session.
#[must_use]
pub fn plain(payload: Payload, body: &[u8]) -> Vec<u8> {
    let mut packet = RMCP.to_vec();
    packet.extend([RMCP_PLUS, payload.number()]);
    packet.extend([0; 8]);
    packet.extend(length(body));
    packet.extend(body);
    packet
}

/// Encodes a LAN message in an IPMI 1.5 packet without a session, for the capabilities request.
#[must_use]
pub fn plain_v15(message: &[u8]) -> Vec<u8> {
    let mut packet = RMCP.to_vec();
    // Authentication type "none", sequence number 0 and session id 0. With that type the header has
    // no authentication code (table 13-8).
    packet.extend([0; 9]);
    packet.push(length(message)[0]);
    packet.extend(message);
    packet
}

/// Encodes a packet of a session, encrypted and authenticated (13.28).
#[must_use]
pub fn protected(message: &[u8], protection: &Protection<'_>) -> Vec<u8> {
    let sealed = encrypt(message, protection.keys.encryption(), &protection.iv);
    let mut packet = RMCP.to_vec();
    packet.extend([
        RMCP_PLUS,
        Payload::Message.number() | ENCRYPTED | AUTHENTICATED,
    ]);
    packet.extend(protection.session.to_le_bytes());
    packet.extend(protection.sequence.to_le_bytes());
    packet.extend(length(&sealed));
    packet.extend(sealed);
    // The specification pads the part from the authentication type to the next header to a multiple
    // of four bytes. BMCs compute the HMAC over the padded part and drop a packet that differs.
    let pad = (4 - (packet.len() - RMCP.len() + 2) % 4) % 4;
    packet.extend(std::iter::repeat_n(0xff, pad));
    packet.push(u8::try_from(pad).unwrap_or(0));
    packet.push(NEXT_HEADER);
    let code = protection.keys.integrity_code(&packet[RMCP.len()..]);
    packet.extend(code);
    packet
}

fn length(body: &[u8]) -> [u8; 2] {
    u16::try_from(body.len()).unwrap_or(u16::MAX).to_le_bytes()
}

/// Decodes a received packet to its payload type and decrypted body.
///
/// `None` means that the packet must be dropped: it is not RMCP+, cut short, not authentic, or of
/// another session.
#[must_use]
pub fn decode(packet: &[u8], session: Option<(u32, &Keys)>) -> Option<(Payload, Vec<u8>)> {
    let rest = packet.strip_prefix(&RMCP[..])?;
    if rest.first() == Some(&0x00) {
        // An IPMI 1.5 packet is not authenticated. Within a session it could be forged by anyone.
        return decode_v15(rest).filter(|_| session.is_none());
    }
    let (head, rest_of) = rest.split_at_checked(12)?;
    if head[0] != RMCP_PLUS {
        return None;
    }
    let payload = Payload::from_number(head[1] & 0x3f)?;
    let size = usize::from(u16::from_le_bytes([head[10], head[11]]));
    let body = rest_of.get(..size)?;
    // Before the keys exist nothing can be checked. A packet that claims protection is of an older
    // session.
    let Some((id, keys)) = session else {
        return (head[1] & (ENCRYPTED | AUTHENTICATED) == 0).then(|| (payload, body.to_vec()));
    };
    let sender = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
    if sender != id || head[1] & (ENCRYPTED | AUTHENTICATED) != ENCRYPTED | AUTHENTICATED {
        return None;
    }
    // The HMAC is verified before decryption: forged bytes never reach the cipher, and their
    // padding is no oracle.
    let signed = rest.len().checked_sub(keys.suite().integrity_len())?;
    // The payload must lie within the authenticated part.
    if signed < 12 + size || !keys.verify(&rest[..signed], &rest[signed..]) {
        return None;
    }
    Some((payload, decrypt(body, keys.encryption())?))
}

fn decode_v15(rest: &[u8]) -> Option<(Payload, Vec<u8>)> {
    let size = usize::from(*rest.get(9)?);
    Some((Payload::Message, rest.get(10..10 + size)?.to_vec()))
}

fn encrypt(message: &[u8], key: &[u8; BLOCK], iv: &[u8; BLOCK]) -> Vec<u8> {
    // The padding bytes count up from 1; the last byte is their number (13.29).
    let pad = (BLOCK - (message.len() + 1) % BLOCK) % BLOCK;
    let mut clear = message.to_vec();
    clear.extend((1u8..).take(pad));
    clear.push(u8::try_from(pad).unwrap_or(0));
    let cipher = cbc::Encryptor::<Aes128>::new(key.into(), iv.into());
    let mut sealed = iv.to_vec();
    sealed.extend(cipher.encrypt_padded_vec_mut::<NoPadding>(&clear));
    sealed
}

fn decrypt(sealed: &[u8], key: &[u8; BLOCK]) -> Option<Vec<u8>> {
    let (iv, body) = sealed.split_at_checked(BLOCK)?;
    let cipher = cbc::Decryptor::<Aes128>::new_from_slices(key, iv).ok()?;
    let mut clear = cipher.decrypt_padded_vec_mut::<NoPadding>(body).ok()?;
    // The padding is authenticated, so a length that does not fit is an error of the BMC itself.
    let pad = usize::from(clear.pop()?);
    let size = clear.len().checked_sub(pad)?;
    clear.truncate(size);
    Some(clear)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CipherSuite;
    use crate::message::checksum;

    #[test]
    fn a_protected_packet_comes_back() {
        for suite in CipherSuite::PREFERRED {
            let keys = Keys::derive(suite, b"session integrity key");
            for size in 0..40u8 {
                let message: Vec<u8> = (0..size).collect();
                let protection = Protection {
                    keys: &keys,
                    session: 7,
                    sequence: 1,
                    iv: [size; BLOCK],
                };
                let packet = protected(&message, &protection);
                let got = decode(&packet, Some((7, &keys)));
                assert_eq!(got, Some((Payload::Message, message)), "{suite:?} {size}");
                assert_eq!(
                    decode(&packet, Some((8, &keys))),
                    None,
                    "of another session"
                );
            }
        }
    }

    #[test]
    fn a_changed_packet_is_dropped() {
        let keys = Keys::derive(CipherSuite::Sha256, b"key");
        let protection = Protection {
            keys: &keys,
            session: 7,
            sequence: 1,
            iv: [3; BLOCK],
        };
        let packet = protected(b"power off", &protection);
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 0x01;
            assert_eq!(decode(&changed, Some((7, &keys))), None, "byte {at}");
            assert_eq!(decode(&packet[..at], Some((7, &keys))), None, "cut at {at}");
        }
    }

    #[test]
    fn a_session_takes_no_packet_without_proof() {
        let keys = Keys::derive(CipherSuite::Sha256, b"key");
        for packet in [plain_v15(b"power on"), plain(Payload::Message, b"power on")] {
            assert!(decode(&packet, None).is_some());
            assert_eq!(decode(&packet, Some((0, &keys))), None);
        }
    }

    #[test]
    fn a_request_has_the_documented_form() {
        // Get Device ID, as figure 13-4 lays it out.
        let message = request(0x06, 0x01, 1, &[]);
        assert_eq!(message, [0x20, 0x18, 0xc8, 0x81, 0x04, 0x01, 0x7a]);
        let got = Request::decode(&message).expect("it is whole");
        assert_eq!((got.netfn, got.command, got.sequence), (6, 1, 1));
        assert_eq!(got.data, []);
    }

    #[test]
    fn a_response_is_checked() {
        let mut message = vec![0x81, 0x1c, 0x63, 0x20, 0x04, 0x01, 0x00, 0x20];
        message.push(checksum(&message[3..]));
        let got = Response::decode(&message).expect("it is whole");
        assert_eq!(
            (got.netfn, got.command, got.sequence, got.completion),
            (7, 1, 1, 0)
        );
        assert_eq!(got.data, [0x20]);
        assert_eq!(got.encode(), message);
        message[6] = 0xc1;
        assert_eq!(Response::decode(&message), None);
        assert_eq!(Response::decode(&message[..5]), None);
    }
}
