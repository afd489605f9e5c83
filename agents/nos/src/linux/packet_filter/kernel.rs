//! The kernel's own word on its rules, without nft: their generation, and the flags of a table.

use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_NETFILTER;

/// Subsystem of nftables (`NFNL_SUBSYS_NFTABLES`), the upper byte of its messages' kind.
const NFTABLES: u16 = 10 << 8;
/// Tells of a table (`NFT_MSG_NEWTABLE`).
const NEW_TABLE: u16 = NFTABLES;
/// Asks for a table (`NFT_MSG_GETTABLE`).
const GET_TABLE: u16 = NFTABLES | 1;
/// Tells the generation (`NFT_MSG_NEWGEN`).
const NEW_GENERATION: u16 = NFTABLES | 15;
/// Asks for the generation (`NFT_MSG_GETGEN`).
const GET_GENERATION: u16 = NFTABLES | 16;
/// Kind of the attribute with the generation (`NFTA_GEN_ID`), which is big-endian.
const GENERATION: u16 = 1;
/// Kind of the attribute with the name of a table (`NFTA_TABLE_NAME`).
const NAME: u16 = 1;
/// Kind of the attribute with the flags of a table (`NFTA_TABLE_FLAGS`), which is big-endian.
const FLAGS: u16 = 2;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// Bytes of `nlmsghdr` and `nfgenmsg`.
const HEADERS: usize = 20;
/// `MSG_DONTWAIT`. The kernel has answered when the request was sent.
const DO_NOT_WAIT: i32 = 0x40;

/// The generation of the rules in this thread's network namespace: a number that every change of
/// nftables by anybody raises. `None` if the kernel does not say it: it has no nftables, for example.
pub(super) fn generation() -> Option<u32> {
    let answer = ask(&request(GET_GENERATION, 0, &[]))?;
    number(&answer, NEW_GENERATION, GENERATION)
}

/// The flags of a table, of a family by its nft name. nft 1.0.6 does not list them: it prints other
/// bytes in their place. `None` without the table.
pub(super) fn table_flags(family: &str, table: &str) -> Option<u32> {
    // `NFPROTO_INET`, `NFPROTO_ARP`, `NFPROTO_BRIDGE`.
    let family = match family {
        "inet" => 1,
        "arp" => 3,
        "bridge" => 7,
        _ => return None,
    };
    let name = [table.as_bytes(), &[0]].concat();
    let answer = ask(&request(GET_TABLE, family, &attribute(NAME, &name)))?;
    number(&answer, NEW_TABLE, FLAGS)
}

/// Sends a request and returns the first message of the answer.
fn ask(request: &[u8]) -> Option<Vec<u8>> {
    let mut socket = Socket::new(NETLINK_NETFILTER).ok()?;
    socket.bind_auto().ok()?;
    socket.send(request, 0).ok()?;
    let mut answer = Vec::with_capacity(512);
    socket.recv(&mut answer, DO_NOT_WAIT).ok()?;
    Some(answer)
}

fn request(kind: u16, family: u8, attributes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADERS + attributes.len());
    let length = u32::try_from(HEADERS + attributes.len()).unwrap_or(u32::MAX);
    out.extend(length.to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(REQUEST.to_ne_bytes());
    // Number of the request and port, both unused.
    out.extend([0; 8]);
    // Version and resource are 0.
    out.extend([family, 0, 0, 0]);
    out.extend(attributes);
    out
}

/// An attribute, with zeros up to the next multiple of four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut out = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// The number in an attribute of the kernel's answer. `None` if the answer is of another kind, such
/// as an error.
fn number(answer: &[u8], kind: u16, of: u16) -> Option<u32> {
    let short = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..)?.first_chunk()?;
        Some(u16::from_ne_bytes(*bytes))
    };
    if short(answer, 4)? != kind {
        return None;
    }
    let mut attributes = answer.get(HEADERS..)?;
    loop {
        let length = usize::from(short(attributes, 0)?);
        let value = attributes.get(4..length)?;
        if short(attributes, 2)? == of {
            return Some(u32::from_be_bytes(*value.first_chunk()?));
        }
        // Attributes begin at multiples of four bytes.
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with these attributes.
    fn answer(kind: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut out = vec![0; HEADERS];
        out[4..6].copy_from_slice(&kind.to_ne_bytes());
        for (kind, value) in attributes {
            out.extend(attribute(*kind, value));
        }
        out
    }

    #[test]
    fn the_number_is_found_among_attributes() {
        let found: (u16, &[u8]) = (GENERATION, &[0, 0, 1, 2]);
        let decode = |answer: &[u8]| number(answer, NEW_GENERATION, GENERATION);
        assert_eq!(decode(&answer(NEW_GENERATION, &[found])), Some(258));
        let among = [(3, &b"nft"[..]), found];
        assert_eq!(decode(&answer(NEW_GENERATION, &among)), Some(258));
        for wrong in [
            answer(2, &[found]),
            answer(NEW_GENERATION, &[]),
            answer(NEW_GENERATION, &[(GENERATION, &[1, 2])]),
            answer(NEW_GENERATION, &[(3, b"nft")]),
            [answer(NEW_GENERATION, &[]), vec![0; 8]].concat(),
            [answer(NEW_GENERATION, &[]), vec![0xff; 4]].concat(),
            Vec::new(),
        ] {
            assert_eq!(decode(&wrong), None, "{wrong:?}");
        }
        let table = answer(NEW_TABLE, &[(NAME, b"metalmesh\0"), (FLAGS, &[0, 0, 0, 1])]);
        assert_eq!(number(&table, NEW_TABLE, FLAGS), Some(1));
    }

    #[test]
    fn a_request_says_its_length() {
        let asked = request(GET_TABLE, 7, &attribute(NAME, b"mine\0"));
        assert_eq!(
            asked[..4],
            u32::try_from(asked.len()).unwrap().to_ne_bytes()
        );
        assert_eq!(asked.len() % 4, 0);
        assert_eq!(asked[16], 7);
        assert_eq!(asked[HEADERS..HEADERS + 2], 9_u16.to_ne_bytes());
    }
}
