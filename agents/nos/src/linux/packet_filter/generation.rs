//! The generation of the kernel's rules: a number that every change of nftables by anybody raises.

use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_NETFILTER;

/// Subsystem of nftables (`NFNL_SUBSYS_NFTABLES`), the upper byte of its messages' kind.
const NFTABLES: u16 = 10 << 8;
/// Asks for the generation (`NFT_MSG_GETGEN`).
const GET: u16 = NFTABLES | 16;
/// The answer (`NFT_MSG_NEWGEN`).
const NEW: u16 = NFTABLES | 15;
/// Kind of the attribute with the number (`NFTA_GEN_ID`), which is big-endian.
const ID: u16 = 1;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// Bytes of `nlmsghdr` and `nfgenmsg`.
const HEADERS: usize = 20;
/// `MSG_DONTWAIT`. The kernel has answered when the request was sent.
const DO_NOT_WAIT: i32 = 0x40;

/// The generation in this thread's network namespace. `None` if the kernel does not say it: it has no
/// nftables, for example.
pub(super) fn generation() -> Option<u32> {
    let mut socket = Socket::new(NETLINK_NETFILTER).ok()?;
    socket.bind_auto().ok()?;
    socket.send(&request(), 0).ok()?;
    let mut answer = Vec::with_capacity(256);
    socket.recv(&mut answer, DO_NOT_WAIT).ok()?;
    decode(&answer)
}

fn request() -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADERS);
    out.extend(20_u32.to_ne_bytes());
    out.extend(GET.to_ne_bytes());
    out.extend(REQUEST.to_ne_bytes());
    // Number of the request and port, both unused; family, version and resource.
    out.extend([0; 12]);
    out
}

/// The number in the kernel's answer.
fn decode(answer: &[u8]) -> Option<u32> {
    let short = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..)?.first_chunk()?;
        Some(u16::from_ne_bytes(*bytes))
    };
    if short(answer, 4)? != NEW {
        return None;
    }
    let mut attributes = answer.get(HEADERS..)?;
    loop {
        let length = usize::from(short(attributes, 0)?);
        let value = attributes.get(4..length)?;
        if short(attributes, 2)? == ID {
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
            let length = u16::try_from(4 + value.len()).unwrap();
            out.extend(length.to_ne_bytes());
            out.extend(kind.to_ne_bytes());
            out.extend(*value);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out
    }

    #[test]
    fn the_number_is_found_among_attributes() {
        let number: (u16, &[u8]) = (ID, &[0, 0, 1, 2]);
        assert_eq!(decode(&answer(NEW, &[number])), Some(258));
        assert_eq!(decode(&answer(NEW, &[(3, b"nft"), number])), Some(258));
        for wrong in [
            answer(2, &[number]),
            answer(NEW, &[]),
            answer(NEW, &[(ID, &[1, 2])]),
            answer(NEW, &[(3, b"nft")]),
            [answer(NEW, &[]), vec![0; 8]].concat(),
            [answer(NEW, &[]), vec![0xff; 4]].concat(),
            Vec::new(),
        ] {
            assert_eq!(decode(&wrong), None, "{wrong:?}");
        }
    }
}
