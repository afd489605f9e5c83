//! Classifies a DHCP client: firmware, iPXE, a BMC, or anything else.

use proto_types::{MacAddr, MachineId};
use proto_wire_dhcp::{Message, code};
use uuid::Uuid;

/// The kind of a DHCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientClass {
    /// iPXE. It loads a script by HTTP whatever the firmware is.
    Ipxe,
    /// BIOS PXE ROM (architecture 0).
    PxeBios,
    /// 32-bit x86 UEFI (6).
    PxeEfi32,
    /// 64-bit x86 UEFI (7 in practice; 9 in the text of RFC 4578).
    PxeEfi64,
    /// 64-bit ARM UEFI (11).
    PxeArm64,
    /// UEFI HTTP boot on 64-bit x86 (16).
    HttpEfi64,
    /// UEFI HTTP boot on 64-bit ARM (19).
    HttpArm64,
    /// A boot client of an architecture without a boot file.
    UnknownBoot,
    /// A baseboard management controller.
    Bmc,
    /// Not a boot client: an installer or an installed system that requests an address.
    Other,
}

/// The rules that tell BMCs from machines on a shared network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BmcMatch {
    /// Prefixes of option 60.
    pub vendor_classes: Vec<String>,
    /// Prefixes of the Ethernet address, lower case with colons, as `0c:c4:7a`.
    pub mac_prefixes: Vec<String>,
    /// `true` if every client is a BMC: the network has BMCs only.
    pub all: bool,
}

impl BmcMatch {
    fn matches(&self, mac: MacAddr, vendor_class: &str) -> bool {
        let mac = mac.to_string();
        self.all
            || self
                .mac_prefixes
                .iter()
                // An empty prefix, as of a forgotten value, would match every client.
                .any(|p| !p.is_empty() && mac.starts_with(p.as_str()))
            || self
                .vendor_classes
                .iter()
                .any(|c| !c.is_empty() && vendor_class.starts_with(c.as_str()))
    }
}

/// The properties of a DHCP client that decide its boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub mac: MacAddr,
    /// SMBIOS UUID from option 97. `None` means that the firmware sent none or a blank one.
    pub machine: Option<MachineId>,
    /// Option 93.
    pub arch: Option<u16>,
    pub class: ClientClass,
}

impl Client {
    /// Reads the properties from a message.
    #[must_use]
    pub fn of(message: &Message, bmc: &BmcMatch) -> Self {
        let vendor_class = message.options.text(code::VENDOR_CLASS).unwrap_or_default();
        let arch = message
            .options
            .short(code::CLIENT_ARCH)
            .or_else(|| arch_of(&vendor_class));
        Self {
            mac: message.chaddr,
            machine: message.options.get(code::CLIENT_UUID).and_then(guid),
            arch,
            class: class(message, bmc, &vendor_class, arch),
        }
    }
}

fn class(message: &Message, bmc: &BmcMatch, vendor_class: &str, arch: Option<u16>) -> ClientClass {
    // iPXE repeats the vendor class and architecture of its firmware. It must be recognised first,
    // or it would be sent iPXE again, for ever.
    if is_ipxe(message) {
        return ClientClass::Ipxe;
    }
    if vendor_class.starts_with("HTTPClient") {
        return match arch {
            Some(16) => ClientClass::HttpEfi64,
            Some(19) => ClientClass::HttpArm64,
            _ => ClientClass::UnknownBoot,
        };
    }
    if vendor_class.starts_with("PXEClient") {
        return match arch {
            // A PXE 1.x ROM sends no architecture and is always a BIOS.
            None | Some(0) => ClientClass::PxeBios,
            Some(6) => ClientClass::PxeEfi32,
            Some(7 | 9) => ClientClass::PxeEfi64,
            Some(11) => ClientClass::PxeArm64,
            Some(_) => ClientClass::UnknownBoot,
        };
    }
    // After the boot clients: a machine on a network of BMCs may share their address prefix.
    if bmc.matches(message.chaddr, vendor_class) {
        return ClientClass::Bmc;
    }
    ClientClass::Other
}

/// iPXE sends its name in option 77, either bare or as an RFC 3004 list of counted strings.
fn is_ipxe(message: &Message) -> bool {
    match message.options.get(code::USER_CLASS) {
        Some(b"iPXE") => true,
        Some([4, name @ ..]) => name.starts_with(b"iPXE"),
        _ => false,
    }
}

/// The architecture in `PXEClient:Arch:00007:UNDI:003000`, for firmware without option 93.
fn arch_of(vendor_class: &str) -> Option<u16> {
    vendor_class.split_once(":Arch:")?.1.get(..5)?.parse().ok()
}

/// Decodes option 97: a type byte (0) and a GUID whose first three fields are little-endian, as in
/// SMBIOS and EFI. `None` means malformed, or all zeros or ones: the board has no UUID.
fn guid(bytes: &[u8]) -> Option<MachineId> {
    let [0, guid @ ..] = bytes else { return None };
    let uuid = Uuid::from_bytes_le(guid.try_into().ok()?);
    (!uuid.is_nil() && !uuid.is_max()).then_some(MachineId::new(uuid))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::Ipv4Addr;

    use proto_wire_dhcp::{BOOTP_REQUEST, Kind, Options};

    use super::*;

    /// Options as code and bytes.
    pub(crate) type Raw<'a> = &'a [(u8, &'a [u8])];

    pub(crate) const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 1, 1]);

    pub(crate) fn message(kind: Kind, options: Raw<'_>) -> Message {
        let mut all = Options::default();
        for (code, value) in options {
            all.set(*code, *value);
        }
        Message {
            op: BOOTP_REQUEST,
            kind,
            hops: 0,
            xid: 7,
            secs: 0,
            flags: 0,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: Ipv4Addr::UNSPECIFIED,
            chaddr: MAC,
            sname: String::new(),
            file: String::new(),
            options: all,
        }
    }

    #[test]
    fn classes_by_options_60_77_and_93() {
        let pxe = b"PXEClient:Arch:00000:UNDI:002001";
        let rows: &[(Raw, ClientClass)] = &[
            (&[(60, pxe), (93, &[0, 0])], ClientClass::PxeBios),
            (&[(60, b"PXEClient")], ClientClass::PxeBios),
            (&[(60, pxe), (93, &[0, 6])], ClientClass::PxeEfi32),
            (&[(60, pxe), (93, &[0, 7])], ClientClass::PxeEfi64),
            (&[(60, pxe), (93, &[0, 9])], ClientClass::PxeEfi64),
            (&[(60, pxe), (93, &[0, 11])], ClientClass::PxeArm64),
            (
                &[(60, b"PXEClient:Arch:00007:UNDI:003000")],
                ClientClass::PxeEfi64,
            ),
            (&[(60, pxe), (93, &[0, 99])], ClientClass::UnknownBoot),
            (
                &[(60, b"HTTPClient:Arch:00016:UNDI:003000")],
                ClientClass::HttpEfi64,
            ),
            (
                &[(60, b"HTTPClient"), (93, &[0, 16])],
                ClientClass::HttpEfi64,
            ),
            (
                &[(60, b"HTTPClient"), (93, &[0, 19])],
                ClientClass::HttpArm64,
            ),
            (
                &[(60, b"HTTPClient"), (93, &[0, 15])],
                ClientClass::UnknownBoot,
            ),
            (
                &[(60, pxe), (77, b"iPXE"), (93, &[0, 0])],
                ClientClass::Ipxe,
            ),
            (
                &[(60, pxe), (77, b"\x04iPXE"), (93, &[0, 7])],
                ClientClass::Ipxe,
            ),
            (&[(60, b"udhcp 1.35.0")], ClientClass::Other),
            (&[(60, b"iDRAC")], ClientClass::Bmc),
            (&[], ClientClass::Other),
        ];
        let bmc = BmcMatch {
            vendor_classes: vec!["iDRAC".into()],
            ..BmcMatch::default()
        };
        for (options, class) in rows {
            assert_eq!(
                Client::of(&message(Kind::Discover, options), &bmc).class,
                *class
            );
        }
    }

    #[test]
    fn bmcs_by_address_or_by_network() {
        let plain = message(Kind::Discover, &[]);
        let by_mac = BmcMatch {
            mac_prefixes: vec!["52:54:00:77".into()],
            ..BmcMatch::default()
        };
        assert_eq!(Client::of(&plain, &by_mac).class, ClientClass::Bmc);
        let other = BmcMatch {
            mac_prefixes: vec!["0c:c4:7a".into()],
            ..BmcMatch::default()
        };
        assert_eq!(Client::of(&plain, &other).class, ClientClass::Other);
        let all = BmcMatch {
            all: true,
            ..BmcMatch::default()
        };
        assert_eq!(Client::of(&plain, &all).class, ClientClass::Bmc);
    }

    #[test]
    fn the_guid_is_mixed_endian_and_a_blank_one_is_none() {
        let wire = [
            0, 0x01, 0x00, 0x1c, 0x6f, 0x34, 0x12, 0x78, 0x56, 0x80, 0x00, 0x52, 0x54, 0x00, 0x77,
            0x01, 0x01,
        ];
        let of = |option: &[u8]| {
            Client::of(
                &message(Kind::Discover, &[(97, option)]),
                &BmcMatch::default(),
            )
            .machine
        };
        assert_eq!(
            of(&wire).unwrap().to_string(),
            "6f1c0001-1234-5678-8000-525400770101"
        );
        assert_eq!(of(&[0; 17]), None);
        let mut ones = [0xff; 17];
        ones[0] = 0;
        assert_eq!(of(&ones), None);
        assert_eq!(of(&wire[..16]), None, "cut");
        assert_eq!(of(&[1; 17]), None, "another type");
    }
}
