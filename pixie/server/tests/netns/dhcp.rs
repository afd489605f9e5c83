use std::net::Ipv4Addr;
use std::time::Duration;

use proto_wire_dhcp::{Kind, code};

use crate::dhcp_client::*;
use crate::running_pixie::Running;
use crate::world::*;

#[test]
fn each_kind_of_client_gets_an_address_and_its_boot_file() {
    if skipped() {
        return;
    }
    let world = World::new();
    let _pixie = Running::start(&world, world.server_config());
    let script = "http://10.99.1.2:8080/v1/boot.ipxe?mac=52-54-00-99-01-01";
    let rows: [(Raw, Option<&str>); 6] = [
        (
            &[(60, b"PXEClient:Arch:00000:UNDI:002001"), (93, &[0, 0])],
            Some("undionly.kpxe"),
        ),
        (
            &[(60, b"PXEClient:Arch:00007:UNDI:003000"), (93, &[0, 7])],
            Some("snponly.efi"),
        ),
        (
            &[(60, b"HTTPClient:Arch:00016:UNDI:003000"), (93, &[0, 16])],
            Some("http://10.99.1.2:8080/assets/snponly.efi"),
        ),
        (
            &[(60, b"PXEClient:Arch:00000"), (77, b"iPXE"), (93, &[0, 0])],
            Some(script),
        ),
        (
            &[(60, b"PXEClient:Arch:00007"), (77, b"iPXE"), (93, &[0, 7])],
            Some(script),
        ),
        (&[], None),
    ];
    for (options, file) in rows {
        let ack = lease(&world, options);
        assert_eq!(
            ack.yiaddr,
            Ipv4Addr::new(10, 99, 1, 100),
            "one address per card"
        );
        assert_eq!(ack.options.text(code::BOOT_FILE).as_deref(), file);
    }
}

#[test]
fn leases_survive_a_restart_and_bmc_leases_are_reported() {
    if skipped() {
        return;
    }
    let world = World::new();
    let address = {
        let pixie = Running::start(&world, world.server_config());
        let ack = lease(&world, &[(60, b"iDRAC 9")]);
        assert_eq!(ack.yiaddr, Ipv4Addr::new(10, 99, 1, 200));
        wait_for("the lease report", || {
            pixie
                .control
                .leases
                .lock()
                .unwrap()
                .iter()
                .any(|l| l.address == ack.yiaddr)
        });
        lease(&world, &[]).yiaddr
    };
    let _again = Running::start(&world, world.server_config());
    // Init-reboot: no discover, the client asks for what it had.
    let request = message(
        Kind::Request,
        &[(code::REQUESTED_ADDRESS, &address.octets())],
    );
    let ack = ask(&world, request, 67, Duration::from_secs(10)).unwrap();
    assert_eq!((ack.kind, ack.yiaddr), (Kind::Ack, address));
    let mut other = message(
        Kind::Request,
        &[(code::REQUESTED_ADDRESS, &address.octets())],
    );
    other.chaddr.0[5] = 99;
    let nak = ask(&world, other, 67, Duration::from_secs(10)).unwrap();
    assert_eq!(
        nak.kind,
        Kind::Nak,
        "it is held, as the first pixie wrote down"
    );
}

#[test]
fn udhcpc_takes_a_lease() {
    if skipped() || !have("busybox") {
        return;
    }
    let world = World::new();
    let _pixie = Running::start(&world, world.server_config());
    let script = world.dir.path().join("script");
    world.write("script", b"#!/bin/sh\nset > \"$0.$1\"\n");
    sh("chmod", &["755", script.to_str().unwrap()]);
    let args = [
        "udhcpc",
        "-i",
        "c0",
        "-f",
        "-q",
        "-n",
        "-s",
        script.to_str().unwrap(),
    ];
    let output = world.client("busybox", &args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let bound = std::fs::read_to_string(script.with_extension("bound")).unwrap();
    for fact in [
        "ip='10.99.1.100'",
        "subnet='255.255.255.0'",
        "router='10.99.1.2'",
        "lease='600'",
    ] {
        assert!(bound.contains(fact), "{fact} is missing in {bound}");
    }
}

#[test]
fn a_proxy_leaves_addresses_to_the_other_server() {
    if skipped() {
        return;
    }
    let world = World::new();
    let _pixie = Running::start(&world, world.config("mode = \"proxy\""));
    let pxe: Raw = &[(60, b"PXEClient:Arch:00007:UNDI:003000"), (93, &[0, 7])];
    let offer = ask(
        &world,
        message(Kind::Discover, pxe),
        67,
        Duration::from_secs(10),
    )
    .unwrap();
    assert_eq!(
        (offer.kind, offer.yiaddr),
        (Kind::Offer, Ipv4Addr::UNSPECIFIED)
    );
    assert_eq!(
        offer.options.text(code::VENDOR_CLASS).as_deref(),
        Some("PXEClient")
    );
    assert_eq!(
        offer.options.text(code::BOOT_FILE).as_deref(),
        Some("snponly.efi")
    );
    world.set_address(Ipv4Addr::new(10, 99, 1, 50));
    let mut request = message(Kind::Request, pxe);
    request.ciaddr = Ipv4Addr::new(10, 99, 1, 50);
    let ack = ask(&world, request, 4011, Duration::from_secs(10)).unwrap();
    assert_eq!((ack.kind, ack.file.as_str()), (Kind::Ack, "snponly.efi"));
    let plain = ask(
        &world,
        message(Kind::Discover, &[]),
        67,
        Duration::from_millis(500),
    );
    assert_eq!(plain, None, "not a boot client");
}

#[test]
fn a_solicitation_is_answered_by_an_advertisement() {
    if skipped() {
        return;
    }
    let world = World::new();
    let _pixie = Running::start(&world, world.server_config());
    let heard = world.in_client(|| {
        use socket2::{Domain, Protocol, Socket, Type};
        let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6)).unwrap();
        socket.bind_device(Some(b"c0")).unwrap();
        socket.set_multicast_hops_v6(255).unwrap();
        let index = nix::net::if_::if_nametoindex("c0").unwrap();
        let socket = std::net::UdpSocket::from(socket);
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let routers = std::net::SocketAddrV6::new("ff02::2".parse().unwrap(), 0, 0, index);
        let mut heard = None;
        // The link-local address is not there at once, so the first may not leave.
        wait_for("an advertisement", || {
            drop(socket.send_to(&[133, 0, 0, 0, 0, 0, 0, 0], routers));
            let mut buffer = [0_u8; 512];
            if let Ok((len, _)) = socket.recv_from(&mut buffer)
                && buffer[0] == 134
            {
                heard = Some(buffer[..len].to_vec());
            }
            heard.is_some()
        });
        heard.unwrap()
    });
    assert_eq!(&heard[6..8], &[0, 0], "no default router");
}
