//! One target a decoder.

#![expect(
    clippy::let_underscore_must_use,
    reason = "that a decoder returns is the whole point"
)]

use agents_nos::frr::{FrrConfig, diff, parse, render};
use base_telemetry::traces::TraceContext;
use bmc_ipmi::CipherSuite;
use bmc_ipmi::dcmi::{ASSET_TAG_MAX, AssetTag, Piece};
use bmc_ipmi::managed::Managed;
use bmc_ipmi::packet::Response;
use bmc_ipmi::power::PowerReading;
use bmc_ipmi::rakp::Keys;
use bmc_ipmi::sdr::{Repository, SupplySensor, SupplyStates};
use bolero::check;
use proto_public::json;

#[test]
fn fuzz_ipmi_packet() {
    let keys = Keys::derive(CipherSuite::Sha1, b"a session key");
    check!().for_each(|bytes: &[u8]| {
        let _ = bmc_ipmi::packet::decode(bytes, None);
        let _ = bmc_ipmi::packet::decode(bytes, Some((7, &keys)));
        if let Some(response) = Response::decode(bytes) {
            assert_eq!(Response::decode(&response.encode()), Some(response));
        }
        let _ = bmc_ipmi::packet::Request::decode(bytes);
    });
}

#[test]
fn fuzz_ipmi_managed() {
    check!().for_each(|bytes: &[u8]| {
        let suite = [0, 4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0];
        let suite = [&suite[..], &[1, 0, 0, 8, 1, 0, 0, 0], &[0; 8]].concat();
        for open in [bytes, &suite] {
            if let Some((mut bmc, _)) = Managed::open(open, 7, [1; 16], [2; 16]) {
                let _ = bmc.message2(bytes, |_| Some(b"secret".to_vec()));
                let _ = bmc.message4(bytes);
            }
        }
    });
}

#[test]
fn fuzz_traceparent() {
    check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(context) = text.parse::<TraceContext>() {
            assert_eq!(context.to_string().parse(), Ok(context));
        }
        let _ = TraceContext::span_of(&text);
    });
}

#[test]
fn fuzz_link_notice() {
    check!().for_each(|bytes: &[u8]| {
        let _ = proto_link::notice::decode(bytes);
    });
}

#[test]
fn fuzz_ipmi_fru() {
    check!().for_each(|bytes: &[u8]| {
        let _ = bmc_ipmi::fru::decode(bytes);
    });
}

#[test]
fn fuzz_ipmi_asset_tag() {
    check!().for_each(|bytes: &[u8]| {
        if let Some(piece) = Piece::decode(bytes) {
            assert!(usize::from(piece.total) <= ASSET_TAG_MAX);
        }
        let mut tag = AssetTag::default();
        for command in [0x08, 0x06] {
            let (completion, data) = tag.answer(command, bytes);
            assert_eq!(completion == 0, Piece::decode(&data).is_some());
        }
        assert!(tag.text().chars().count() <= ASSET_TAG_MAX);
    });
}

#[test]
fn fuzz_ipmi_power_reading() {
    check!().for_each(|bytes: &[u8]| {
        if let Some(reading) = PowerReading::decode(bytes) {
            assert_eq!(PowerReading::decode(&reading.encode()), Some(reading));
            let (completion, data) = reading.answer(bytes);
            assert_eq!(completion == 0, PowerReading::decode(&data).is_some());
        }
    });
}

#[test]
fn fuzz_ipmi_sensors() {
    check!().for_each(|bytes: &[u8]| {
        let _ = Repository::decode(bytes);
        if let Some(sensor) = SupplySensor::decode(bytes) {
            assert_eq!(sensor.number, bytes[7]);
        }
        if let Some(states) = SupplyStates::decode(bytes) {
            assert_eq!(states.and(states), states);
        }
    });
}

/// Pieces that policies are made of: random bytes alone get nowhere.
const POLICY_PIECES: [&str; 40] = [
    "\n",
    " ",
    "deny ",
    "allow ",
    "allow_foreign ",
    "contains ",
    "if ",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"x\"",
    "input",
    ".a",
    ".",
    ":= ",
    "== ",
    "x",
    "y",
    "f",
    "some ",
    "every ",
    "in ",
    "not ",
    "else ",
    "default ",
    "import ",
    "data",
    "with ",
    "1",
    "0",
    "/ ",
    ", ",
    "; ",
    "| ",
    "count(",
    "test_a ",
    "sprintf(\"%v\", [",
];

#[test]
fn fuzz_policy_source() {
    check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let _ = control_policy::Compiled::new("fuzz", &text);
        let pieces = bytes
            .iter()
            .map(|it| POLICY_PIECES[usize::from(*it) % POLICY_PIECES.len()]);
        let made: String = pieces.collect();
        let begin = "package site\nimport rego.v1\nmethods := {\"*\"}\ndeny contains \"x\" if ";
        let _ = control_policy::Compiled::new("fuzz", &format!("{begin}{made}"));
    });
}

#[test]
fn fuzz_lldp_frame() {
    check!().for_each(|bytes: &[u8]| {
        let _ = proto_wire_lldp::Frame::decode(bytes);
    });
}

#[test]
fn fuzz_dhcp_message() {
    check!().for_each(|bytes: &[u8]| {
        let _ = proto_wire_dhcp::Message::decode(bytes);
    });
}

#[test]
fn fuzz_tftp_packet() {
    check!().for_each(|bytes: &[u8]| {
        let _ = proto_wire_tftp::Packet::decode(bytes);
    });
}

#[test]
fn fuzz_link_frames() {
    check!().for_each(|bytes: &[u8]| {
        let _ = proto_link::frame::decode_header(bytes);
        let _ = proto_link::frame::decode_end(bytes);
    });
}

#[test]
fn fuzz_identity_text() {
    check!().for_each(|bytes: &[u8]| {
        if let Ok(text) = str::from_utf8(bytes) {
            let _ = text.parse::<proto_identity::SpiffeId>();
            let _ = proto_identity::ticket::JoinTicket::parse(text);
        }
    });
}

#[test]
fn fuzz_certificate_request() {
    check!().for_each(|bytes: &[u8]| {
        let _ = proto_identity::CertificateRequest::verify(bytes);
    });
}

#[test]
fn fuzz_tpm() {
    check!().for_each(|bytes: &[u8]| {
        let _ = proto_identity::tpm::TpmKey::decode(bytes);
        let _ = proto_identity::tpm::fingerprint_of_certificate(bytes);
        for has_handle in [false, true] {
            let _ = agents_kit::tpm::decode_response(bytes, has_handle);
        }
    });
}

#[test]
fn fuzz_desired_cache() {
    check!().for_each(|bytes: &[u8]| {
        if let Some(body) = agents_kit::cache::decode_cache(bytes) {
            let _ = proto_mesh::sealed::before_seal(body);
        }
        let _ = proto_mesh::sealed::before_seal(bytes);
        let own = "spiffe://m/partition/p1/core/leaf1".parse().unwrap();
        let opened = proto_mesh::sealed::open::<proto_mesh::SwitchDesired>(bytes, &own, &[]);
        assert!(opened.is_err(), "nobody is trusted");
    });
}

/// The message with the most kinds of fields; from JSON and from bytes, and back.
#[test]
fn fuzz_public_message() {
    let message = proto_public::message("metalstack.api.v2.Machine").unwrap();
    check!().for_each(|bytes: &[u8]| {
        for parsed in [json::parse(&message, bytes), json::decode(&message, bytes)] {
            if let Ok(text) = parsed.and_then(|parsed| json::print(&parsed)) {
                json::parse(&message, &text).unwrap();
            }
        }
    });
}

/// Requests of our own methods: what the strict reader takes is what the other reader takes.
#[test]
fn fuzz_strict_json() {
    let name = "metalmesh.admin.v1.FirewallRulesServiceSetRequest";
    let message = proto_public::message(name).unwrap();
    check!().for_each(|bytes: &[u8]| {
        if let Ok(strict) = json::to_proto_strict(&message, bytes) {
            assert_eq!(strict, json::to_proto(&message, bytes).unwrap());
        }
    });
}

/// Words and ends of lines, of which random bytes make configurations that are nearly right.
const FRR_WORDS: [&str; 60] = [
    "\n",
    "\n ",
    "\n  ",
    "\n",
    "\n ",
    "\n  ",
    "ip",
    "ipv6",
    "prefix-list",
    "MM-a",
    "MM-b",
    "seq",
    "5",
    "10",
    "permit",
    "deny",
    "10.0.0.0/8",
    "2001:db8::/32",
    "any",
    "ge",
    "le",
    "24",
    "64",
    "bgp",
    "as-path",
    "access-list",
    "^$",
    "route-map",
    "match",
    "address",
    "interface",
    "swp1",
    "evpn",
    "vni",
    "set",
    "local-preference",
    "vrf",
    "Vrf7",
    "router",
    "65000",
    "router-id",
    "10.0.0.1",
    "neighbor",
    "peer-group",
    "remote-as",
    "external",
    "timers",
    "description",
    "shutdown",
    "address-family",
    "ipv4",
    "unicast",
    "l2vpn",
    "activate",
    "in",
    "maximum-prefix",
    "allowas-in",
    "redistribute",
    "connected",
    "exit",
];

/// A configuration that was read can be written, and is read again as the same.
fn assert_frr_canonical(text: &str) {
    let mut seen = parse(text);
    for instance in seen.config.bgp.values_mut() {
        instance.ipv4_by_default = false;
    }
    let again = parse(&render(&seen.config));
    assert_eq!(again.config, seen.config);
    assert!(again.foreign.is_empty(), "{:?}", again.foreign);
    assert!(diff(&again, &seen.config).is_empty());
    let _ = diff(&seen, &FrrConfig::default());
}

#[test]
fn fuzz_frr_configuration() {
    check!().for_each(|bytes: &[u8]| {
        assert_frr_canonical(&String::from_utf8_lossy(bytes));
        let words: Vec<&str> = bytes
            .iter()
            .map(|byte| FRR_WORDS[usize::from(*byte) % FRR_WORDS.len()])
            .collect();
        assert_frr_canonical(&words.join(" ").replace("\n ", "\n"));
        assert_frr_canonical(&words.join(" "));
    });
}

#[test]
fn fuzz_json_of_programs() {
    use agents_nos::linux::FilterConfig;
    check!().for_each(|bytes: &[u8]| {
        let _ = agents_nos::frr::sessions::decode(bytes);
        let _ = agents_nos::frr::announced::decode(bytes);
        let _ = agents_nos::frr::failures::decode(bytes);
        let _ = agents_nos::frr::vnis::decode(bytes);
        let _ = agents_nos::linux::decode_packet_filter(bytes, &FilterConfig::default());
    });
}

#[test]
fn fuzz_relay_agent_info() {
    check!().for_each(|bytes: &[u8]| {
        if let Ok(info) = proto_wire_dhcp::RelayAgentInfo::decode(bytes) {
            assert_eq!(
                proto_wire_dhcp::RelayAgentInfo::decode(&info.encode()),
                Ok(info)
            );
        }
    });
}

#[test]
fn fuzz_dhcp_client_frame() {
    check!().for_each(|bytes: &[u8]| {
        if let Some(frame) = proto_wire_dhcp::ClientFrame::decode(bytes) {
            assert!(frame.payload.len() <= bytes.len());
            let _ = proto_wire_dhcp::Message::decode(frame.payload);
        }
    });
}
