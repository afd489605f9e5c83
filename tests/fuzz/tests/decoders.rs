//! One target a decoder.

#![expect(
    clippy::let_underscore_must_use,
    reason = "that a decoder returns is the whole point"
)]

use bmc_ipmi::CipherSuite;
use bmc_ipmi::rakp::Keys;
use bolero::check;

#[test]
fn ipmi_packet() {
    let keys = Keys::derive(CipherSuite::Sha1, b"a session key");
    check!().for_each(|bytes: &[u8]| {
        let _ = bmc_ipmi::packet::decode(bytes, None);
        let _ = bmc_ipmi::packet::decode(bytes, Some((7, &keys)));
        let _ = bmc_ipmi::packet::Response::decode(bytes);
    });
}

#[test]
fn ipmi_fru() {
    check!().for_each(|bytes: &[u8]| {
        let _ = bmc_ipmi::fru::decode(bytes);
    });
}

#[test]
fn lldp_frame() {
    check!().for_each(|bytes: &[u8]| {
        let _ = proto_lldp::Frame::decode(bytes);
    });
}

#[test]
fn dhcp_message() {
    check!().for_each(|bytes: &[u8]| {
        let _ = pixie_wire::dhcp::Message::decode(bytes);
    });
}

#[test]
fn tftp_packet() {
    check!().for_each(|bytes: &[u8]| {
        let _ = pixie_wire::tftp::Packet::decode(bytes);
    });
}

#[test]
fn link_frames() {
    check!().for_each(|bytes: &[u8]| {
        let _ = proto_link::frame::decode_header(bytes);
        let _ = proto_link::frame::decode_end(bytes);
    });
}

#[test]
fn identity_text() {
    check!().for_each(|bytes: &[u8]| {
        if let Ok(text) = str::from_utf8(bytes) {
            let _ = text.parse::<proto_identity::SpiffeId>();
            let _ = proto_identity::ticket::JoinTicket::parse(text);
        }
    });
}
