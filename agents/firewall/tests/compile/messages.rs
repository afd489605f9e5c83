//! DNS messages: what the proxy reads, asks, believes and passes on.

use std::net::IpAddr;

use agents_firewall::dns::{AnswerFit, DnsQuery, FailureCode, resolved_addresses};

/// A query for `a.example.com` with an id, a type and what comes after the question.
fn query(kind: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![
        0x12,
        0x34,
        0x01,
        0x20,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        u8::from(!rest.is_empty()),
    ];
    bytes.extend(b"\x01A\x07example\x03com\0");
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(rest);
    bytes
}

/// EDNS with a size of 4096, the flag of DNSSEC and a cookie.
const EDNS: &[u8] = &[
    0, 0, 41, 0x10, 0, 0, 0, 0x80, 0, 0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8,
];
/// Every letter changes its case.
const ALL: [u8; 32] = [0xFF; 32];

#[test]
fn the_proxy_asks_in_its_own_words() {
    let own = DnsQuery::parse(&query(1, EDNS)).unwrap();
    assert_eq!(own.name(), "a.example.com");
    assert_eq!(own.asks_for_ipv4(), Some(true));
    assert_eq!(own.udp_len_max(), 1232);
    let sent = own.to_server(0xABCD, &ALL);
    let mut expected = vec![0xAB, 0xCD, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, 1];
    expected.extend(b"\x01a\x07EXAMPLE\x03COM\0\0\x01\0\x01");
    // No option of the client passes, and the size is one that needs no fragments.
    expected.extend([0, 0, 41, 0x04, 0xD0, 0, 0, 0x80, 0, 0, 0]);
    assert_eq!(sent, expected);
    let plain = DnsQuery::parse(&query(28, &[])).unwrap();
    assert_eq!(plain.asks_for_ipv4(), Some(false));
    assert_eq!(plain.udp_len_max(), 512);
    assert_eq!(plain.to_server(0x1234, &[0; 32]), query(28, &[]));
}

#[test]
fn messages_that_are_no_queries_are_refused_or_ignored() {
    let change = |at: usize, value: u8| {
        let mut bytes = query(1, &[]);
        bytes[at] = value;
        DnsQuery::parse(&bytes)
    };
    let refused = |parsed: Result<DnsQuery, Option<Vec<u8>>>| {
        let answer = parsed.unwrap_err().unwrap();
        assert_eq!(answer[..2], [0x12, 0x34]);
        answer[3] & 0xF
    };
    assert_eq!(change(2, 0x81).unwrap_err(), None, "an answer");
    assert_eq!(DnsQuery::parse(&[0; 11]).unwrap_err(), None, "no header");
    assert_eq!(refused(change(2, 0x29)), FailureCode::NotImplemented as u8);
    for (at, value) in [
        (5, 0),
        (5, 2),
        (7, 1),
        (9, 1),
        (11, 2),
        (11, 1),
        (12, 0xC0),
        (12, 64),
    ] {
        assert_eq!(
            refused(change(at, value)),
            FailureCode::Format as u8,
            "{at} {value}"
        );
    }
    let whole = query(1, EDNS);
    for cut in 12..whole.len() {
        assert!(DnsQuery::parse(&whole[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn only_the_answer_to_the_own_question_fits() {
    let own = DnsQuery::parse(&query(1, &[])).unwrap();
    let sent = own.to_server(7, &ALL);
    let mut answer = sent.clone();
    answer[2] |= 0x80;
    let fit = |at: usize, value: u8| {
        let mut other = answer.clone();
        other[at] = value;
        DnsQuery::fit(&sent, &other)
    };
    assert_eq!(DnsQuery::fit(&sent, &answer), AnswerFit::Exact);
    assert_eq!(DnsQuery::fit(&sent, &sent), AnswerFit::Foreign, "a query");
    assert_eq!(fit(13, b'A'), AnswerFit::OtherCase);
    let last = answer.len() - 1;
    // Id, number of questions, name, type and class.
    for (at, value) in [
        (0, 9),
        (1, 9),
        (5, 0),
        (5, 2),
        (13, b'b'),
        (last - 2, 28),
        (last, 3),
    ] {
        assert_eq!(fit(at, value), AnswerFit::Foreign, "{at} {value}");
    }
    assert_eq!(DnsQuery::fit(&sent, &answer[..last]), AnswerFit::Foreign);
}

#[test]
fn the_client_gets_its_own_id_and_spelling() {
    let own = DnsQuery::parse(&query(1, &[])).unwrap();
    let mut answer = own.to_server(7, &ALL);
    answer[2] |= 0x80;
    answer.extend([1, 2, 3]);
    let reply = own.reply(&answer, 512);
    assert_eq!(reply[..2], [0x12, 0x34]);
    assert_eq!(reply[12..14], *b"\x01A");
    assert_eq!(reply[reply.len() - 3..], [1, 2, 3]);
    answer.extend([0; 600]);
    let short = own.reply(&answer, 512);
    assert_eq!(short.len(), query(1, &[]).len());
    assert_eq!(short[2] & 2, 2, "it was cut off");
    assert_eq!(
        own.reply(&answer[..5], 512)[3] & 0xF,
        FailureCode::Server as u8
    );
}

/// A record of a name on the wire.
fn record(name: &[u8], kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = name.to_vec();
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(ttl.to_be_bytes());
    bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
    bytes.extend(data);
    bytes
}

const OWN: &[u8] = b"\x01a\x07example\x03com\0";
const OTHER: &[u8] = b"\x01b\x07example\x03com\0";
const THIRD: &[u8] = b"\x01c\x07example\x03com\0";

fn found(kind: u16, flags: [u8; 2], records: &[Vec<u8>]) -> Vec<(String, u64)> {
    let own = DnsQuery::parse(&query(kind, &[])).unwrap();
    let mut answer = query(kind, &[]);
    answer[2..4].copy_from_slice(&flags);
    answer[7] = u8::try_from(records.len()).unwrap();
    answer.extend(records.concat());
    let resolved = resolved_addresses(&own, &answer);
    let texts = resolved.iter();
    texts
        .map(|own| (own.address.to_string(), own.lifetime.as_secs()))
        .collect()
}

#[test]
fn addresses_are_those_of_the_name_that_was_asked_for() {
    let one = |text: &str, ttl: u64| vec![(text.to_owned(), ttl)];
    let good = [0x81, 0x80];
    let a = |name: &[u8], last: u8, ttl: u32| record(name, 1, ttl, &[192, 0, 2, last]);
    let alias = |name: &[u8], target: &[u8], ttl: u32| record(name, 5, ttl, target);
    assert_eq!(
        found(1, good, &[a(b"\xC0\x0C", 1, 300)]),
        one("192.0.2.1", 300)
    );
    // The highest bit makes a TTL 0 (RFC 2181, 8), also of an alias.
    for (ttl, expected) in [(0x7FFF_FFFF, 0x7FFF_FFFF), (0x8000_0000, 0), (u32::MAX, 0)] {
        let answer = [a(b"\xC0\x0C", 1, ttl)];
        assert_eq!(found(1, good, &answer), one("192.0.2.1", expected));
        let aliased = [alias(OWN, OTHER, ttl), a(OTHER, 1, u32::MAX / 2)];
        assert_eq!(found(1, good, &aliased), one("192.0.2.1", expected));
    }
    assert_eq!(found(1, good, &[a(OTHER, 1, 300)]), [], "another name");
    let chain = [
        alias(OWN, OTHER, 50),
        alias(OTHER, THIRD, 70),
        a(THIRD, 2, 300),
    ];
    assert_eq!(
        found(1, good, &chain),
        one("192.0.2.2", 50),
        "the shortest lifetime"
    );
    let stray = [alias(OWN, OTHER, 50), a(THIRD, 2, 300)];
    assert_eq!(found(1, good, &stray), [], "the chain does not lead there");
    let ring = [alias(OWN, OTHER, 50), alias(OTHER, OWN, 70)];
    assert_eq!(found(1, good, &ring), [], "a ring ends");
    assert_eq!(found(28, good, &[a(OWN, 1, 300)]), [], "the other family");
    let v6: IpAddr = "2001:db8::1".parse().unwrap();
    let IpAddr::V6(octets) = v6 else { panic!() };
    let v6 = record(OWN, 28, 9, &octets.octets());
    assert_eq!(found(28, good, &[v6]), one("2001:db8::1", 9));
    assert_eq!(found(1, [0x81, 0x83], &[a(OWN, 1, 300)]), [], "an error");
    assert_eq!(found(1, [0x83, 0x80], &[a(OWN, 1, 300)]), [], "cut off");
    assert_eq!(
        found(1, good, &[record(OWN, 1, 300, &[1, 2, 3])]),
        [],
        "damaged"
    );
    assert_eq!(found(16, good, &[a(OWN, 1, 300)]), [], "not asked for");
}
