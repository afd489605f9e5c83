//! LLDP on the ports of a switch: hears the neighbours, and announces switch and port to them.
//!
//! A booting machine must learn its port within seconds. So a port sends at once when it comes up
//! or hears a new neighbour, then every two seconds for a minute, then every thirty seconds.

mod neighbours;

use std::sync::Arc;
use std::time::Duration;

pub use neighbours::{NEIGHBOURS_MAX, Neighbours};
use proto_wire_lldp::{Frame, Mac, Socket, mac_of};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Interval of frames after a change.
const FAST: Duration = Duration::from_secs(2);
/// Time after a change with the fast interval.
const FAST_FOR: Duration = Duration::from_secs(60);
/// Interval of frames otherwise.
const SLOW: Duration = Duration::from_secs(30);
/// Pause before the socket of a failed interface is opened again.
const REOPEN: Duration = Duration::from_secs(1);
/// Time to live of own frames, seconds: four slow intervals.
const TTL_S: u16 = 120;

/// The content of the switch's frames on one port.
#[derive(Clone, Debug)]
pub struct Speaker {
    /// Chassis id and system name.
    pub switch: String,
    /// System description.
    pub description: String,
    /// Port id: the name of the interface.
    pub port: String,
}

impl Speaker {
    fn frame(&self, source: Mac) -> Frame {
        Frame {
            source,
            chassis_id: self.switch.clone(),
            port_id: self.port.clone(),
            system_name: self.switch.clone(),
            system_description: self.description.clone(),
            ttl_s: TTL_S,
        }
    }
}

/// Sends and listens on one port until `stop`. `came_up` is notified when the port gets its
/// carrier. If the interface disappears, waits until it is back.
pub async fn run(
    speaker: Speaker,
    neighbours: Neighbours,
    came_up: Arc<Notify>,
    stop: CancellationToken,
) {
    loop {
        let result = tokio::select! {
            () = stop.cancelled() => return,
            result = serve(&speaker, &neighbours, &came_up) => result,
        };
        if let Err(error) = result {
            tracing::debug!(port = %speaker.port, error = %error, "LLDP interrupted");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(REOPEN) => {}
            () = came_up.notified() => {}
        }
    }
}

async fn serve(
    speaker: &Speaker,
    neighbours: &Neighbours,
    came_up: &Notify,
) -> std::io::Result<()> {
    let socket = Socket::open(&speaker.port)?;
    let frame = speaker.frame(mac_of(&speaker.port)?).encode();
    let mut fast_until = Instant::now() + FAST_FOR;
    let mut next = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(next) => {
                socket.send(&frame).await?;
                let now = Instant::now();
                next = now + if now < fast_until { FAST } else { SLOW };
            }
            () = came_up.notified() => {
                next = Instant::now();
                fast_until = next + FAST_FOR;
            }
            received = socket.recv() => {
                let now = Instant::now();
                if heard(speaker, neighbours, &received?, now) {
                    next = now;
                    fast_until = now + FAST_FOR;
                }
            }
        }
    }
}

fn heard(speaker: &Speaker, neighbours: &Neighbours, bytes: &[u8], now: Instant) -> bool {
    match Frame::decode(bytes) {
        // A cable between two ports of this switch, or the echo of an own frame, leads to no
        // machine.
        Ok(frame) if frame.chassis_id == speaker.switch => false,
        Ok(frame) => neighbours.heard(&speaker.port, frame, now),
        Err(error) => {
            tracing::debug!(port = %speaker.port, error = %error, "unreadable LLDP frame");
            false
        }
    }
}
