//! DCMI's power reading: a simulated BMC of ours at a UDP socket, asked by our client and by
//! ipmitool, which is not ours.

#![expect(
    clippy::expect_used,
    reason = "a test ends where its ground is missing"
)]

use std::net::SocketAddr;
use std::process::Stdio;

use bmc_ipmi::dcmi::GROUP_EXTENSION;
use bmc_ipmi::managed::Managed;
use bmc_ipmi::packet::{self, PACKET_BYTES_MAX, Payload, Protection, Request, Response};
use bmc_ipmi::power::{GET_POWER_READING, PowerReading};
use bmc_ipmi::rakp::Keys;
use bmc_ipmi::{Credentials, IpmiError, Session, Timing};
use tokio::net::UdpSocket;
use tokio::process::Command;
use tokio::task::JoinSet;

const PASSWORD: &str = "labpass";
const READING: PowerReading = PowerReading {
    current_w: 230,
    min_w: 198,
    max_w: 305,
    average_w: 241,
    period_ms: 1_200_000,
    is_active: true,
};

/// A BMC that measures power, for one session at a time.
struct Bmc {
    reading: Option<PowerReading>,
    opening: Option<Managed>,
    open: Option<(Keys, u32, u32)>,
    packets: u32,
}

impl Bmc {
    fn answer(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if let Some(answer) = self.in_session(bytes) {
            return Some(answer);
        }
        let (payload, body) = packet::decode(bytes, None)?;
        Some(match payload {
            Payload::Message => {
                let request = Request::decode(&body)?;
                let data = vec![0x01, 0x80, 0x04, 0x02, 0, 0, 0, 0];
                packet::plain_v15(&respond(&request, 0, data))
            }
            Payload::OpenRequest => {
                let (managed, answer) = Managed::open(&body, 7, [1; 16], [2; 16])?;
                self.opening = Some(managed);
                packet::plain(Payload::OpenResponse, &answer)
            }
            Payload::Rakp1 => {
                let password = |user: &str| (user == "admin").then(|| PASSWORD.into());
                let answer = self.opening.as_mut()?.message2(&body, password)?;
                packet::plain(Payload::Rakp2, &answer)
            }
            Payload::Rakp3 => {
                let managed = self.opening.as_ref()?;
                let (answer, keys) = managed.message4(&body)?;
                self.open = Some((keys, managed.id(), managed.console()));
                self.packets = 0;
                packet::plain(Payload::Rakp4, &answer)
            }
            _ => return None,
        })
    }

    fn in_session(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (keys, id, console) = self.open.as_ref()?;
        let (_, message) = packet::decode(bytes, Some((*id, keys)))?;
        let request = Request::decode(&message)?;
        let (completion, data) = match (request.netfn, request.command, &self.reading) {
            // Privilege, and the end of the session.
            (0x06, 0x3b, _) => (0, request.data.clone()),
            (0x06, 0x3c, _) => (0, Vec::new()),
            (GROUP_EXTENSION, GET_POWER_READING, Some(reading)) => reading.answer(&request.data),
            _ => (0xc1, Vec::new()),
        };
        self.packets += 1;
        let protection = Protection {
            keys,
            session: *console,
            sequence: self.packets,
            iv: rand::random(),
        };
        let answer = respond(&request, completion, data);
        Some(packet::protected(&answer, &protection))
    }
}

fn respond(request: &Request, completion: u8, data: Vec<u8>) -> Vec<u8> {
    Response {
        netfn: request.netfn | 1,
        command: request.command,
        sequence: request.sequence,
        completion,
        data,
    }
    .encode()
}

async fn serve(reading: Option<PowerReading>) -> (SocketAddr, JoinSet<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let address = socket.local_addr().expect("bound");
    let mut bmc = Bmc {
        reading,
        opening: None,
        open: None,
        packets: 0,
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut buffer = [0; PACKET_BYTES_MAX];
        while let Ok((size, from)) = socket.recv_from(&mut buffer).await {
            if let Some(answer) = bmc.answer(&buffer[..size]) {
                socket.send_to(&answer, from).await.expect("loopback");
            }
        }
    });
    (address, tasks)
}

async fn read(reading: Option<PowerReading>) -> Result<Option<PowerReading>, IpmiError> {
    let (address, _tasks) = serve(reading).await;
    let credentials = Credentials::new("admin", PASSWORD).expect("short enough");
    let mut session = Session::connect(address, &credentials, Timing::default()).await?;
    let read = session.power_reading().await;
    session.close().await?;
    read
}

#[tokio::test]
async fn a_bmc_tells_what_it_measures_or_that_it_does_not() {
    let read_back = read(Some(READING)).await.expect("a reading");
    assert_eq!(read_back, Some(READING));
    let idle = PowerReading {
        is_active: false,
        ..READING
    };
    assert_eq!(read(Some(idle)).await.expect("an answer"), None);
    let without = read(None).await;
    assert!(
        matches!(without, Err(IpmiError::Completion { code: 0xc1, .. })),
        "{without:?}"
    );
}

/// The numbers are where another project's client looks for them.
#[tokio::test]
async fn ipmitool_reads_the_same() {
    let (address, _tasks) = serve(Some(READING)).await;
    let mut ipmitool = Command::new("ipmitool");
    ipmitool
        .args(["-I", "lanplus", "-C", "17", "-H", "127.0.0.1", "-p"])
        .arg(address.port().to_string())
        .args(["-U", "admin", "-P", PASSWORD, "dcmi", "power", "reading"])
        .stdin(Stdio::null());
    let Ok(output) = ipmitool.output().await else {
        eprintln!("SKIPPED: ipmitool (Debian package of that name) is missing");
        return;
    };
    let told = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = told.split_whitespace().collect();
    let told_line = words.join(" ");
    for expected in [
        "Instantaneous power reading: 230 Watts",
        "Minimum during sampling period: 198 Watts",
        "Maximum during sampling period: 305 Watts",
        "Average power reading over sample period: 241 Watts",
        "Power reading state is: activated",
    ] {
        assert!(told_line.contains(expected), "{expected}: {output:?}");
    }
}
