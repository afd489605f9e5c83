//! VXLAN packets byte by byte, also those that no kernel sends.

use std::net::{Ipv4Addr, Ipv6Addr};

/// EtherType of the inner frame, for experiments (IEEE 802.3): no protocol of the kernel sends it.
pub(crate) const PROBE: [u8; 2] = [0x88, 0xb5];
const VXLAN_PORT: u16 = 4789;

/// A VXLAN packet whose inner frame goes to everybody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vxlan {
    pub(crate) vni: u32,
    /// The first word of the header.
    pub(crate) flags: u32,
    /// The last eight bits.
    pub(crate) reserved: u32,
    pub(crate) outer: Outer,
    /// Tags of VLAN 0 in front of the IP header.
    pub(crate) tags: usize,
}

/// The outer IP header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outer {
    V4 {
        from: Ipv4Addr,
        to: Ipv4Addr,
        has_options: bool,
        is_fragmented: bool,
    },
    V6 {
        from: Ipv6Addr,
        to: Ipv6Addr,
        /// A header of destination options before UDP.
        has_options: bool,
        /// A fragment header that says that there is one fragment.
        is_fragment: bool,
    },
}

impl Vxlan {
    /// The frames from one MAC address to another; the inner frame carries `mark`.
    pub(crate) fn frames(&self, to: [u8; 6], from: [u8; 6], mark: u32) -> Vec<Vec<u8>> {
        let inner = [&[0xff; 6][..], &from, &PROBE, &mark.to_be_bytes(), &[0; 46]].concat();
        self.carry(to, from, &inner)
    }

    /// The frames that carry another one.
    pub(crate) fn carry(&self, to: [u8; 6], from: [u8; 6], inner: &[u8]) -> Vec<Vec<u8>> {
        let vxlan = [self.flags, self.vni << 8 | self.reserved].map(u32::to_be_bytes);
        let length = u16::try_from(16 + inner.len()).unwrap();
        let udp = [5555, VXLAN_PORT, length, 0].map(u16::to_be_bytes).concat();
        let payload = [&udp[..], &vxlan.concat(), inner].concat();
        let (kind, packets) = match self.outer {
            Outer::V4 { .. } => ([0x08, 0x00], self.v4(&payload)),
            Outer::V6 { .. } => ([0x86, 0xdd], vec![self.v6(&payload)]),
        };
        let tags = [0x81, 0x00, 0, 0].repeat(self.tags);
        let head = [&to[..], &from, &tags, &kind].concat();
        let frames = packets
            .into_iter()
            .map(|packet| [&head[..], &packet].concat());
        frames.collect()
    }

    fn v4(&self, payload: &[u8]) -> Vec<Vec<u8>> {
        let Outer::V4 {
            from,
            to,
            has_options,
            is_fragmented,
        } = self.outer
        else {
            return Vec::new();
        };
        // "No operation" and the end of the list.
        let options: &[u8] = if has_options { &[1, 1, 1, 0] } else { &[] };
        let packet = |part: &[u8], fragment: u16| {
            let words = u8::try_from(5 + options.len() / 4).unwrap();
            let length = u16::try_from(20 + options.len() + part.len()).unwrap();
            let mut head = vec![0x40 | words, 0];
            head.extend(length.to_be_bytes());
            head.extend(77_u16.to_be_bytes());
            head.extend(fragment.to_be_bytes());
            head.extend([64, 17, 0, 0]);
            head.extend(from.octets());
            head.extend(to.octets());
            head.extend(options);
            let sum = checksum(&head);
            head[10..12].copy_from_slice(&sum.to_be_bytes());
            [&head[..], part].concat()
        };
        if is_fragmented {
            let (first, rest) = payload.split_at(40);
            return vec![packet(first, 0x2000), packet(rest, 5)];
        }
        vec![packet(payload, 0)]
    }

    fn v6(&self, payload: &[u8]) -> Vec<u8> {
        let Outer::V6 {
            from,
            to,
            has_options,
            is_fragment,
        } = self.outer
        else {
            return Vec::new();
        };
        let (mut next, mut body) = (17, payload.to_vec());
        if is_fragment {
            body = [&[next, 0, 0, 0, 0, 0, 0, 7][..], &body].concat();
            next = 44;
        }
        if has_options {
            // Padding alone.
            body = [&[next, 0, 1, 4, 0, 0, 0, 0][..], &body].concat();
            next = 60;
        }
        let length = u16::try_from(body.len()).unwrap();
        let mut out = vec![0x60, 0, 0, 0];
        out.extend(length.to_be_bytes());
        out.extend([next, 64]);
        out.extend(from.octets());
        out.extend(to.octets());
        out.extend(body);
        out
    }
}

pub(crate) fn checksum(head: &[u8]) -> u16 {
    let words = head
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap()
}
