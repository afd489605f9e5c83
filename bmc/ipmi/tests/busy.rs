//! A BMC that is too busy to tell its capabilities.

use std::time::Duration;

use bmc_ipmi::packet::{self, PACKET_BYTES_MAX, Request, Response};
use bmc_ipmi::{Credentials, IpmiError, Session, Timing};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// Completion code "node busy" (specification, table 5-2).
const BUSY: u8 = 0xc0;

fn busy(packet: &[u8]) -> Option<Vec<u8>> {
    let (_, message) = packet::decode(packet, None)?;
    let request = Request::decode(&message)?;
    let answer = Response {
        netfn: request.netfn | 1,
        command: request.command,
        sequence: request.sequence,
        completion: BUSY,
        data: Vec::new(),
    };
    Some(packet::plain_v15(&answer.encode()))
}

#[tokio::test]
async fn a_busy_bmc_is_not_taken_for_an_old_one() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let address = socket.local_addr().expect("bound");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut buffer = [0; PACKET_BYTES_MAX];
        while let Ok((size, from)) = socket.recv_from(&mut buffer).await {
            if let Some(answer) = busy(&buffer[..size]) {
                socket.send_to(&answer, from).await.expect("loopback");
            }
        }
    });
    let credentials = Credentials::new("admin", "labpass").expect("short enough");
    let timing = Timing {
        answer: Duration::from_secs(5),
        tries: 3,
    };
    let opened = Session::connect(address, &credentials, timing).await;
    assert!(
        matches!(opened, Err(IpmiError::Completion { code: BUSY, .. })),
        "{opened:?}"
    );
}
