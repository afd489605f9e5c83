//! Packets from the private host to the host outside.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::place::{INSIDE, OUTSIDE, Place};
use crate::program::ms;
use crate::sample::quantile;
use crate::workload::PORT;

/// TCP connections at once.
const CONNECTIONS: usize = 8;
/// Bytes that are written and read at once.
const CHUNK: usize = 128 * 1024;
/// Bytes of a datagram.
const DATAGRAM: [u8; 64] = [7; 64];
/// Longest wait for a datagram. One that is lost counts as so long.
const LOST: Duration = Duration::from_secs(1);
/// New flows in a round. Each stays in the kernel's table of flows for a while.
const FLOWS: u32 = 500;

/// Many connections at once, Gbit/s.
pub(crate) fn tcp(place: &Place, time: Duration) -> Result<f64> {
    let listener = place
        .outside
        .inside(|| Ok(TcpListener::bind((OUTSIDE, PORT))?))?;
    let mut pairs = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = place.inside.inside(|| {
            Ok(TcpStream::connect_timeout(
                &(OUTSIDE.parse::<std::net::IpAddr>()?, PORT).into(),
                LOST,
            )?)
        })?;
        pairs.push((client, listener.accept()?.0));
    }
    let (stop, received) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for (client, server) in &pairs {
            let (stop, received) = (&stop, &received);
            scope.spawn(move || send_all(client, stop));
            scope.spawn(move || receive_all(server, received));
        }
        let (begin, began) = (received.load(Ordering::Relaxed), Instant::now());
        std::thread::sleep(time);
        let bytes = received.load(Ordering::Relaxed) - begin;
        let seconds = began.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        Ok(float(bytes) * 8.0 / seconds / 1e9)
    })
}

fn send_all(mut to: &TcpStream, stop: &AtomicBool) {
    let chunk = vec![1; CHUNK];
    while !stop.load(Ordering::Relaxed) && to.write_all(&chunk).is_ok() {}
    // The other side ends by it.
    to.shutdown(std::net::Shutdown::Both).ok();
}

fn receive_all(mut from: &TcpStream, count: &AtomicU64) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        count.fetch_add(u64::try_from(len).unwrap_or(0), Ordering::Relaxed);
    }
}

/// A socket on each side.
fn udp_pair(place: &Place) -> Result<(UdpSocket, UdpSocket)> {
    let receiver = place
        .outside
        .inside(|| Ok(UdpSocket::bind((OUTSIDE, PORT))?))?;
    receiver.set_read_timeout(Some(LOST))?;
    Ok((udp_sender(place)?, receiver))
}

fn udp_sender(place: &Place) -> Result<UdpSocket> {
    place.inside.inside(new_sender)
}

fn new_sender() -> Result<UdpSocket> {
    let sender = UdpSocket::bind((INSIDE, 0))?;
    sender.connect((OUTSIDE, PORT))?;
    sender.set_read_timeout(Some(LOST))?;
    Ok(sender)
}

/// Small datagrams of one flow, thousands of received packets per second. The flow is established:
/// the receiver answers the first one.
pub(crate) fn udp(place: &Place, time: Duration) -> Result<f64> {
    let (sender, receiver) = udp_pair(place)?;
    round_trip(&sender, &receiver)?;
    let (stop, received) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 64];
            while !stop.load(Ordering::Relaxed) {
                if receiver.recv(&mut buffer).is_ok() {
                    received.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // A full queue is what is measured.
                sender.send(&DATAGRAM).ok();
            }
        });
        let (begin, began) = (received.load(Ordering::Relaxed), Instant::now());
        std::thread::sleep(time);
        let packets = received.load(Ordering::Relaxed) - begin;
        let seconds = began.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        Ok(float(packets) / seconds / 1e3)
    })
}

/// A datagram there and back.
fn round_trip(sender: &UdpSocket, receiver: &UdpSocket) -> Result<()> {
    let mut buffer = [0; 64];
    sender.send(&DATAGRAM)?;
    let (len, from) = receiver
        .recv_from(&mut buffer)
        .context("a packet is lost")?;
    receiver.send_to(&buffer[..len], from)?;
    sender.recv(&mut buffer).context("an answer is lost")?;
    Ok(())
}

/// Round trips of one flow, p99, microseconds.
pub(crate) fn latency(place: &Place, time: Duration) -> Result<f64> {
    let (sender, receiver) = udp_pair(place)?;
    round_trip(&sender, &receiver)?;
    let mut found = Vec::new();
    let began = Instant::now();
    // Both ends on one thread: what is measured is the way, not the scheduler.
    while began.elapsed() < time {
        let sent = Instant::now();
        if let Err(error) = round_trip(&sender, &receiver)
            && error
                .downcast_ref::<std::io::Error>()
                .is_none_or(|error| error.kind() != ErrorKind::WouldBlock)
        {
            return Err(error);
        }
        found.push(ms(sent.elapsed()) * 1000.0);
    }
    quantile(&found, 0.99).context("no round trip")
}

/// The first packet of a flow and its answer, mean, microseconds. The time of the sockets is in it.
pub(crate) fn flows(place: &Place) -> Result<f64> {
    let (first, receiver) = udp_pair(place)?;
    round_trip(&first, &receiver)?;
    place.inside.inside(|| {
        let began = Instant::now();
        for _ in 0..FLOWS {
            round_trip(&new_sender()?, &receiver)?;
        }
        Ok(ms(began.elapsed()) * 1000.0 / f64::from(FLOWS))
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes and packets of some seconds"
)]
fn float(count: u64) -> f64 {
    count as f64
}
