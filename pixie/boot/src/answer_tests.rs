use proto_types::MachineId;
use proto_wire_dhcp::BOOTP_REPLY;

use super::*;
use crate::client::BmcMatch;
use crate::client::tests::{MAC, Raw, message};
use crate::network::BootFiles;
use crate::range::Range;

const US: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);
const SCRIPT: &str = "http://10.77.1.2:8080/v1/boot.ipxe?mac=52-54-00-77-01-01";
const GUID: [u8; 17] = [
    0, 0x01, 0x00, 0x1c, 0x6f, 0, 0, 0, 0x40, 0x80, 0x00, 0x52, 0x54, 0x00, 0x77, 0x01, 0x01,
];

fn network() -> Network {
    let subnet = "10.77.1.0/24".parse().unwrap();
    let range = |a, b| {
        Range::new(
            Ipv4Addr::new(10, 77, 1, a),
            Ipv4Addr::new(10, 77, 1, b),
            subnet,
        )
        .unwrap()
    };
    Network {
        address: US,
        subnet,
        machines: Some(range(100, 101)),
        bmcs: Some(range(200, 201)),
        bmc_match: BmcMatch {
            vendor_classes: vec!["iDRAC".into()],
            ..BmcMatch::default()
        },
        router: Some(US),
        dns: vec![Ipv4Addr::new(10, 0, 0, 53)],
        ntp: vec![Ipv4Addr::new(10, 0, 0, 123)],
        domain: None,
        lease_time_s: 600,
        http_port: 8080,
        files: BootFiles::default(),
    }
}

fn offer(options: Raw<'_>) -> Message {
    let request = message(Kind::Discover, options);
    network()
        .answer(&mut LeaseBook::default(), &Machines::default(), &request, 0)
        .unwrap()
        .message
}

#[test]
fn each_client_is_told_its_boot_file() {
    let pxe = b"PXEClient";
    let rows: &[(Raw, Option<&str>)] = &[
        (&[(60, pxe), (93, &[0, 0])], Some("undionly.kpxe")),
        (&[(60, pxe), (93, &[0, 7])], Some("snponly.efi")),
        (&[(60, pxe), (93, &[0, 9])], Some("snponly.efi")),
        (&[(60, pxe), (93, &[0, 6])], None),
        (&[(60, pxe), (93, &[0, 11])], None),
        (
            &[(60, b"HTTPClient"), (93, &[0, 16])],
            Some("http://10.77.1.2:8080/assets/snponly.efi"),
        ),
        (&[(60, pxe), (77, b"iPXE"), (93, &[0, 0])], Some(SCRIPT)),
        (&[(60, pxe), (77, b"iPXE"), (93, &[0, 7])], Some(SCRIPT)),
        (&[(60, b"udhcp 1.35")], None),
        (&[], None),
    ];
    for (options, file) in rows {
        let offer = offer(options);
        assert_eq!(offer.options.text(code::BOOT_FILE).as_deref(), *file);
        assert_eq!(offer.file, file.unwrap_or_default());
        assert_eq!(
            offer.yiaddr,
            Ipv4Addr::new(10, 77, 1, 100),
            "all get an address"
        );
    }
}

#[test]
fn an_offer_tells_the_network() {
    let offer = offer(&[]);
    assert_eq!(offer.op, BOOTP_REPLY);
    assert_eq!(offer.kind, Kind::Offer);
    assert_eq!(offer.options.address(code::SERVER_ID), Some(US));
    assert_eq!(
        offer.options.get(code::SUBNET_MASK),
        Some(&[255, 255, 255, 0][..])
    );
    assert_eq!(offer.options.address(code::ROUTER), Some(US));
    assert_eq!(
        offer.options.address(code::DNS),
        Some(Ipv4Addr::new(10, 0, 0, 53))
    );
    assert_eq!(
        offer.options.address(code::NTP),
        Some(Ipv4Addr::new(10, 0, 0, 123))
    );
    assert_eq!(offer.options.long(code::LEASE_TIME), Some(600));
    assert_eq!(offer.options.long(code::RENEWAL_TIME), Some(300));
    assert_eq!(offer.options.long(code::REBINDING_TIME), Some(525));
}

#[test]
fn http_boot_needs_its_vendor_class_back_and_pxe_none() {
    let http = offer(&[(60, b"HTTPClient"), (93, &[0, 16])]);
    assert_eq!(
        http.options.text(code::VENDOR_CLASS).as_deref(),
        Some("HTTPClient")
    );
    let pxe = offer(&[(60, b"PXEClient"), (93, &[0, 7])]);
    assert_eq!(pxe.options.get(code::VENDOR_CLASS), None);
    assert_eq!(pxe.siaddr, US);
    let ipxe = offer(&[(60, b"PXEClient"), (77, b"iPXE")]);
    assert_eq!(ipxe.options.get(code::IPXE_ENCAP), Some(&[176, 1, 1][..]));
}

#[test]
fn a_unified_image_goes_only_to_machines_that_boot_hammer() {
    let network = Network {
        files: BootFiles {
            http_uki: Some("h.efi".into()),
            ..BootFiles::default()
        },
        ..network()
    };
    let request = message(
        Kind::Discover,
        &[(60, b"HTTPClient"), (93, &[0, 16]), (97, &GUID)],
    );
    let id: MachineId = "6f1c0001-0000-4000-8000-525400770101".parse().unwrap();
    for (target, file) in [
        (None, Some("http://10.77.1.2:8080/assets/h.efi")),
        (
            Some(Target::Hammer),
            Some("http://10.77.1.2:8080/assets/h.efi"),
        ),
        (Some(Target::Disk), None),
        (Some(Target::Nothing), None),
    ] {
        let mut machines = Machines::default();
        if let Some(target) = target {
            machines.insert(id, [MAC], target);
        }
        let mut book = LeaseBook::default();
        let offer = network
            .answer(&mut book, &machines, &request, 0)
            .unwrap()
            .message;
        assert_eq!(
            offer.options.text(code::BOOT_FILE).as_deref(),
            file,
            "{target:?}"
        );
        // The partition names its installer by URL: the unified image is another one.
        machines.set_needs_script(true);
        let offer = network.answer(&mut book, &machines, &request, 0).unwrap();
        assert_eq!(
            offer.message.options.text(code::BOOT_FILE).as_deref(),
            Some("http://10.77.1.2:8080/assets/snponly.efi"),
            "{target:?}"
        );
    }
}

#[test]
fn bmcs_have_a_pool_of_their_own() {
    let request = message(Kind::Discover, &[(60, b"iDRAC")]);
    let mut book = LeaseBook::default();
    let answer = network()
        .answer(&mut book, &Machines::default(), &request, 0)
        .unwrap();
    assert_eq!(answer.message.yiaddr, Ipv4Addr::new(10, 77, 1, 200));
    assert_eq!(answer.message.options.get(code::BOOT_FILE), None);
    let without = Network {
        bmcs: None,
        ..network()
    };
    let refused = without.answer(&mut book, &Machines::default(), &request, 0);
    assert_eq!(refused, Err(NoAnswer::NoRange));
}

#[test]
fn a_request_is_acknowledged_written_down_and_renewed() {
    let (network, mut book) = (network(), LeaseBook::default());
    let first = Ipv4Addr::new(10, 77, 1, 100);
    let request = message(
        Kind::Request,
        &[
            (54, &US.octets()),
            (50, &first.octets()),
            (60, b"PXEClient"),
            (93, &[0, 0]),
        ],
    );
    let ack = network
        .answer(&mut book, &Machines::default(), &request, 0)
        .unwrap();
    assert!(ack.persist);
    assert_eq!((ack.message.kind, ack.message.yiaddr), (Kind::Ack, first));
    assert_eq!(
        ack.message.options.text(code::BOOT_FILE).as_deref(),
        Some("undionly.kpxe")
    );
    let mut renew = message(Kind::Request, &[]);
    renew.ciaddr = first;
    let ack = network
        .answer(&mut book, &Machines::default(), &renew, 1000)
        .unwrap();
    assert_eq!((ack.message.kind, ack.message.ciaddr), (Kind::Ack, first));
    assert_eq!(book.leases().next().unwrap().expires_ms, 601_000);
}

#[test]
fn a_foreign_address_is_refused_and_a_foreign_server_left_alone() {
    let (network, mut book) = (network(), LeaseBook::default());
    let machines = Machines::default();
    let reboot = message(Kind::Request, &[(50, &[192, 168, 0, 9])]);
    let nak = network.answer(&mut book, &machines, &reboot, 0).unwrap();
    assert_eq!(nak.message.kind, Kind::Nak);
    assert_eq!(nak.message.yiaddr, Ipv4Addr::UNSPECIFIED);
    let other = message(
        Kind::Request,
        &[(54, &[10, 77, 1, 9]), (50, &[10, 77, 1, 100])],
    );
    assert_eq!(
        network.answer(&mut book, &machines, &other, 0),
        Err(NoAnswer::OtherServer)
    );
    let mut relayed = message(Kind::Discover, &[]);
    relayed.giaddr = Ipv4Addr::new(10, 9, 9, 1);
    assert_eq!(
        network.answer(&mut book, &machines, &relayed, 0),
        Err(NoAnswer::OtherNetwork)
    );
    let mut reply = message(Kind::Offer, &[]);
    assert_eq!(
        network.answer(&mut book, &machines, &reply, 0),
        Err(NoAnswer::NotAClient)
    );
    reply.op = BOOTP_REPLY;
    assert_eq!(
        network.answer(&mut book, &machines, &reply, 0),
        Err(NoAnswer::NotAClient)
    );
}

#[test]
fn release_and_decline_end_a_lease_without_an_answer() {
    let (network, mut book) = (network(), LeaseBook::default());
    let machines = Machines::default();
    let first = [10, 77, 1, 100];
    let take = message(Kind::Request, &[(50, &first)]);
    network.answer(&mut book, &machines, &take, 0).unwrap();
    let mut release = message(Kind::Release, &[]);
    release.ciaddr = first.into();
    let noted = network.answer(&mut book, &machines, &release, 1);
    assert_eq!(noted, Err(NoAnswer::Noted { ended: true }));
    let decline = message(Kind::Decline, &[(50, &[10, 77, 1, 101])]);
    let noted = network.answer(&mut book, &machines, &decline, 1);
    assert_eq!(noted, Err(NoAnswer::Noted { ended: false }));
}

#[test]
fn a_proxy_answers_boot_clients_only_and_gives_no_address() {
    let (network, machines) = (network(), Machines::default());
    let bios = message(
        Kind::Discover,
        &[(60, b"PXEClient"), (93, &[0, 0]), (97, &GUID)],
    );
    let offer = network.answer_as_proxy(&machines, &bios).unwrap();
    assert_eq!(
        (offer.kind, offer.yiaddr),
        (Kind::Offer, Ipv4Addr::UNSPECIFIED)
    );
    assert_eq!(
        offer.options.text(code::VENDOR_CLASS).as_deref(),
        Some("PXEClient")
    );
    assert_eq!(offer.options.get(code::VENDOR), Some(&[6, 1, 8, 255][..]));
    assert_eq!(offer.options.get(code::CLIENT_UUID), Some(&GUID[..]));
    assert_eq!(offer.options.get(code::LEASE_TIME), None);
    let on_4011 = message(Kind::Request, &[(60, b"PXEClient"), (93, &[0, 7])]);
    let ack = network.answer_as_proxy(&machines, &on_4011).unwrap();
    assert_eq!((ack.kind, ack.file.as_str()), (Kind::Ack, "snponly.efi"));
    let http = message(Kind::Discover, &[(60, b"HTTPClient"), (93, &[0, 16])]);
    let offer = network.answer_as_proxy(&machines, &http).unwrap();
    assert_eq!(
        offer.options.text(code::VENDOR_CLASS).as_deref(),
        Some("HTTPClient")
    );
    for (options, reason) in [
        (&[][..], NoAnswer::NotBooting),
        (&[(60, &b"iDRAC"[..])], NoAnswer::NotBooting),
        (&[(60, b"PXEClient"), (93, &[0, 11])], NoAnswer::NoBootFile),
    ] {
        let request = message(Kind::Discover, options);
        assert_eq!(network.answer_as_proxy(&machines, &request), Err(reason));
    }
}
