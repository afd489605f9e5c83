//! A DHCP client in the clients' namespace, down to single messages.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use proto_wire_dhcp::{BOOTP_REQUEST, Kind, Message, Options, code};

use crate::world::{MAC, PIXIE, World};

/// Options as code and bytes.
pub(crate) type Raw<'a> = &'a [(u8, &'a [u8])];

/// A client's message.
pub(crate) fn message(kind: Kind, options: Raw<'_>) -> Message {
    let mut all = Options::default();
    for (code, value) in options {
        all.set(*code, *value);
    }
    Message {
        op: BOOTP_REQUEST,
        kind,
        hops: 0,
        xid: 0x1234_0000 | kind as u32,
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

/// Sends a message from the client's namespace and waits for the answer. `None` means that no answer
/// came within `wait`.
pub(crate) fn ask(world: &World, request: Message, port: u16, wait: Duration) -> Option<Message> {
    world.in_client(move || {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.set_broadcast(true).unwrap();
        socket.bind_device(Some(b"c0")).unwrap();
        socket
            .bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 68)).into())
            .unwrap();
        let socket = UdpSocket::from(socket);
        let to = if port == 67 {
            Ipv4Addr::BROADCAST
        } else {
            PIXIE
        };
        socket.send_to(&request.encode(), (to, port)).unwrap();
        let end = Instant::now() + wait;
        let mut buffer = [0_u8; 2048];
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            socket
                .set_read_timeout(Some(left.max(Duration::from_millis(1))))
                .unwrap();
            let Ok((len, _)) = socket.recv_from(&mut buffer) else {
                break;
            };
            match Message::decode(&buffer[..len]) {
                Ok(answer) if answer.xid == request.xid && answer.op != BOOTP_REQUEST => {
                    return Some(answer);
                }
                _ => {}
            }
        }
        None
    })
}

/// Sends a message until it is answered, as clients do (RFC 2131 §4.1): a datagram may be lost.
fn ask_again(world: &World, request: &Message) -> Option<Message> {
    (0..5).find_map(|_| ask(world, request.clone(), 67, Duration::from_secs(4)))
}

/// The whole exchange of a client: discover, offer, request, acknowledgement.
pub(crate) fn lease(world: &World, options: Raw<'_>) -> Message {
    let offer = ask_again(world, &message(Kind::Discover, options)).expect("an offer");
    assert_eq!(offer.kind, Kind::Offer);
    let server = offer.options.address(code::SERVER_ID).unwrap().octets();
    let address = offer.yiaddr.octets();
    let more = [
        options,
        &[
            (code::SERVER_ID, &server[..]),
            (code::REQUESTED_ADDRESS, &address),
        ],
    ];
    let ack = ask_again(world, &message(Kind::Request, &more.concat())).expect("an answer");
    assert_eq!((ack.kind, ack.yiaddr), (Kind::Ack, offer.yiaddr));
    ack
}
