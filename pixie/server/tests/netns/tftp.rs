use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use proto_wire_tftp::{Packet, Request};

use crate::running_pixie::Running;
use crate::world::*;

/// Reads a file by hand; acknowledgements whose number `lose` says are not sent the first time.
/// Returns the bytes and how many data packets came twice.
fn read(
    file: &'static str,
    options: &'static [(&'static str, &'static str)],
    lose: &'static [u16],
) -> (Vec<u8>, usize) {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let asked = options
        .iter()
        .map(|(n, v)| ((*n).into(), (*v).into()))
        .collect();
    let request = Request {
        file: file.into(),
        mode: "octet".into(),
        options: asked,
    };
    socket
        .send_to(&Packet::Read(request).encode(), (PIXIE, 69))
        .unwrap();
    let (mut block_len, mut window) = (512, 1);
    let (mut bytes, mut next, mut in_window, mut again) = (Vec::new(), 1_u16, 0, 0);
    let mut lost = Vec::new();
    let mut buffer = vec![0_u8; 4096];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).expect("a packet");
        let ack = |block| drop(socket.send_to(&Packet::Ack { block }.encode(), from));
        match Packet::decode(&buffer[..len]).unwrap() {
            Packet::OptionAck(taken) => {
                let number = |name| {
                    taken
                        .iter()
                        .find(|(n, _)| n == name)
                        .map(|(_, v)| v.parse::<usize>().unwrap())
                };
                block_len = number("blksize").unwrap_or(block_len);
                window = number("windowsize").unwrap_or(window);
                ack(0);
            }
            Packet::Data { block, bytes: data } => {
                if block != next {
                    again += 1;
                    continue;
                }
                let last = data.len() < block_len;
                bytes.extend(data);
                in_window += 1;
                if last || in_window == window {
                    in_window = 0;
                    if lose.contains(&block) && !lost.contains(&block) {
                        lost.push(block);
                        let back = bytes.len() - bytes.len() % block_len;
                        bytes.truncate(back.saturating_sub(window * block_len));
                        next = (bytes.len() / block_len) as u16 + 1;
                        continue;
                    }
                    ack(block);
                }
                if last {
                    return (bytes, again);
                }
                next = next.wrapping_add(1);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn files_come_whole_with_and_without_options() {
    if skipped() {
        return;
    }
    let world = World::new();
    world.write("large.efi", &pattern(512 * 70_000 + 9));
    let _pixie = Running::start(&world, world.server_config());
    world.set_address(Ipv4Addr::new(10, 99, 1, 50));
    let kpxe = pattern(70_000);
    let (plain, _) = world.in_client(|| read("undionly.kpxe", &[], &[]));
    assert_eq!(plain, kpxe);
    let (whole_blocks, _) = world.in_client(|| read("/snponly.efi", &[("tsize", "0")], &[]));
    assert_eq!(whole_blocks, pattern(512 * 20), "ends with an empty block");
    let (windowed, _) = world.in_client(|| {
        read(
            "undionly.kpxe",
            &[("blksize", "1408"), ("windowsize", "8"), ("tsize", "0")],
            &[],
        )
    });
    assert_eq!(windowed, kpxe);
    let (wrapped, _) = world.in_client(|| read("large.efi", &[("windowsize", "16")], &[]));
    assert_eq!(wrapped.len(), 512 * 70_000 + 9, "more than 65535 blocks");
    assert_eq!(wrapped, pattern(512 * 70_000 + 9));
}

#[test]
fn lost_acknowledgements_are_made_good() {
    if skipped() {
        return;
    }
    let world = World::new();
    let _pixie = Running::start(&world, world.server_config());
    world.set_address(Ipv4Addr::new(10, 99, 1, 50));
    let (bytes, _) = world.in_client(|| read("undionly.kpxe", &[], &[3, 50]));
    assert_eq!(bytes, pattern(70_000));
    let (bytes, _) = world.in_client(|| {
        read(
            "undionly.kpxe",
            &[("blksize", "1024"), ("windowsize", "4")],
            &[8],
        )
    });
    assert_eq!(bytes, pattern(70_000));
}

#[test]
fn errors_are_told_and_the_common_client_works() {
    if skipped() {
        return;
    }
    let world = World::new();
    let _pixie = Running::start(&world, world.server_config());
    world.set_address(Ipv4Addr::new(10, 99, 1, 50));
    let answers = world.in_client(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let request = |file: &str| Request {
            file: file.into(),
            mode: "octet".into(),
            options: Vec::new(),
        };
        [
            Packet::Read(request("nothing")),
            Packet::Read(request("../../etc/passwd")),
            Packet::Write(request("undionly.kpxe")),
        ]
        .map(|packet| {
            socket.send_to(&packet.encode(), (PIXIE, 69)).unwrap();
            let mut buffer = [0_u8; 600];
            let len = socket.recv(&mut buffer).unwrap();
            Packet::decode(&buffer[..len]).unwrap()
        })
    });
    for (answer, want) in answers.iter().zip([1, 1, 4]) {
        assert!(
            matches!(answer, Packet::Error { code, .. } if *code == want),
            "{answer:?}"
        );
    }
    if have("tftp") {
        let to = world.dir.path().join("got");
        let pixie = PIXIE.to_string();
        let to = to.to_str().unwrap();
        world.client(
            "tftp",
            &["-m", "binary", &pixie, "-c", "get", "undionly.kpxe", to],
        );
        assert_eq!(std::fs::read(to).unwrap(), pattern(70_000));
    }
}

#[test]
fn pixie_finds_out_that_its_own_sockets_answer() {
    if skipped() {
        return;
    }
    let world = World::new();
    let pixie = Running::start(&world, world.server_config());
    wait_for("an answer of its own sockets", || {
        pixie.probe.ailment().is_none()
    });
    // Without the loopback interface nothing reaches an own address.
    sh("ip", &["-n", &world.pixie_ns, "link", "set", "lo", "down"]);
    wait_long("the probes that fail", Duration::from_secs(90), || {
        pixie.probe.ailment().is_some()
    });
    let problem = pixie.probe.ailment().unwrap();
    assert!(problem.contains("TFTP at 10.99.1.2"), "{problem}");
}
