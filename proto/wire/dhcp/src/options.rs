//! DHCP options: a sorted map from code to bytes, with typed reading of those we use.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Option codes by name; the number is from the IANA BOOTP/DHCP registry.
pub mod code {
    /// Padding, one byte without length.
    pub const PAD: u8 = 0;
    /// Subnet mask.
    pub const SUBNET_MASK: u8 = 1;
    /// Routers.
    pub const ROUTER: u8 = 3;
    /// DNS servers.
    pub const DNS: u8 = 6;
    /// Host name of the client.
    pub const HOST_NAME: u8 = 12;
    /// Domain name.
    pub const DOMAIN_NAME: u8 = 15;
    /// Broadcast address.
    pub const BROADCAST: u8 = 28;
    /// NTP servers.
    pub const NTP: u8 = 42;
    /// Vendor-specific information.
    pub const VENDOR: u8 = 43;
    /// Address that the client requests.
    pub const REQUESTED_ADDRESS: u8 = 50;
    /// Lease time, s.
    pub const LEASE_TIME: u8 = 51;
    /// Options continue in `file`, `sname` or both.
    pub const OVERLOAD: u8 = 52;
    /// Message type.
    pub const MESSAGE_TYPE: u8 = 53;
    /// Address of the server.
    pub const SERVER_ID: u8 = 54;
    /// Options that the client requests.
    pub const PARAMETER_LIST: u8 = 55;
    /// Reason of a refusal, as text.
    pub const MESSAGE: u8 = 56;
    /// Longest message that the client accepts, bytes.
    pub const MAX_MESSAGE_SIZE: u8 = 57;
    /// Time until renewal (T1), s.
    pub const RENEWAL_TIME: u8 = 58;
    /// Time until rebinding (T2), s.
    pub const REBINDING_TIME: u8 = 59;
    /// Vendor class, as `PXEClient`.
    pub const VENDOR_CLASS: u8 = 60;
    /// Client identifier.
    pub const CLIENT_ID: u8 = 61;
    /// Name of the TFTP server.
    pub const TFTP_SERVER: u8 = 66;
    /// Name or URL of the boot file.
    pub const BOOT_FILE: u8 = 67;
    /// User class (RFC 3004); iPXE sends its name.
    pub const USER_CLASS: u8 = 77;
    /// Relay agent information (RFC 3046).
    pub const RELAY_AGENT: u8 = 82;
    /// Architecture of the client (RFC 4578).
    pub const CLIENT_ARCH: u8 = 93;
    /// Version of the client's network interface (RFC 4578).
    pub const CLIENT_NDI: u8 = 94;
    /// UUID of the client (RFC 4578).
    pub const CLIENT_UUID: u8 = 97;
    /// Options of iPXE.
    pub const IPXE_ENCAP: u8 = 175;
    /// End of the options, one byte without length.
    pub const END: u8 = 255;
}

/// The options of one message. An option in several pieces is joined (RFC 3396).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(BTreeMap<u8, Vec<u8>>);

impl Options {
    /// The bytes of an option. `None` if it is missing.
    #[must_use]
    pub fn get(&self, code: u8) -> Option<&[u8]> {
        self.0.get(&code).map(Vec::as_slice)
    }

    /// Sets or replaces an option.
    pub fn set(&mut self, code: u8, value: impl Into<Vec<u8>>) {
        self.0.insert(code, value.into());
    }

    /// Removes an option.
    pub fn remove(&mut self, code: u8) {
        self.0.remove(&code);
    }

    /// Sets an option to a list of addresses; an empty list sets nothing.
    pub fn set_addresses(&mut self, code: u8, addresses: &[Ipv4Addr]) {
        if !addresses.is_empty() {
            self.set(
                code,
                addresses
                    .iter()
                    .flat_map(Ipv4Addr::octets)
                    .collect::<Vec<u8>>(),
            );
        }
    }

    /// The value of an option of exactly one byte.
    #[must_use]
    pub fn byte(&self, code: u8) -> Option<u8> {
        match self.get(code) {
            Some(&[byte]) => Some(byte),
            _ => None,
        }
    }

    /// The first 16-bit number of the option.
    #[must_use]
    pub fn short(&self, code: u8) -> Option<u16> {
        let bytes = self.get(code)?.first_chunk::<2>()?;
        Some(u16::from_be_bytes(*bytes))
    }

    /// The value of an option of exactly four bytes.
    #[must_use]
    pub fn long(&self, code: u8) -> Option<u32> {
        let bytes: [u8; 4] = self.get(code)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    /// The first address of the option.
    #[must_use]
    pub fn address(&self, code: u8) -> Option<Ipv4Addr> {
        let bytes = self.get(code)?.first_chunk::<4>()?;
        Some(Ipv4Addr::from(*bytes))
    }

    /// Text without trailing NULs (some firmware adds one); bytes outside UTF-8 are replaced.
    #[must_use]
    pub fn text(&self, code: u8) -> Option<String> {
        let bytes = self.get(code)?;
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        bytes
            .get(..end)
            .map(|text| String::from_utf8_lossy(text).into_owned())
    }

    /// Reads options up to `END` or the end of the bytes, and adds them to the present ones.
    ///
    /// `true` if every option was complete. A truncated one is left out and the others are kept,
    /// because some firmware sends such packets.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> bool {
        while let [code, rest @ ..] = bytes {
            match *code {
                code::PAD => bytes = rest,
                code::END => return true,
                code => {
                    let Some((&len, rest)) = rest.split_first() else {
                        return false;
                    };
                    let Some((value, rest)) = rest.split_at_checked(usize::from(len)) else {
                        return false;
                    };
                    self.0.entry(code).or_default().extend_from_slice(value);
                    bytes = rest;
                }
            }
        }
        true
    }

    /// Writes all options and `END`. The message type is first, because some BIOS clients expect it
    /// there, and the relay's option last (RFC 3046 §2.1). Long options are split (RFC 3396).
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let first = self.0.get_key_value(&code::MESSAGE_TYPE);
        let last = self.0.get_key_value(&code::RELAY_AGENT);
        let middle = self.0.iter().filter(|(c, _)| {
            !matches!(
                **c,
                code::MESSAGE_TYPE | code::RELAY_AGENT | code::PAD | code::END
            )
        });
        for (code, value) in first.into_iter().chain(middle).chain(last) {
            if value.is_empty() {
                out.extend_from_slice(&[*code, 0]);
            }
            for piece in value.chunks(usize::from(u8::MAX)) {
                out.push(*code);
                out.push(u8::try_from(piece.len()).unwrap_or(u8::MAX));
                out.extend_from_slice(piece);
            }
        }
        out.push(code::END);
    }
}
