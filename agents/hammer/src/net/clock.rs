//! The system clock. Certificates are checked against it, and a machine's battery may be empty.
//!
//! Pixie's time comes first, exact to about a second; then an NTP server if DHCP names one (SNTP,
//! RFC 4330).

use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_settime};
use tokio::net::UdpSocket;

/// Longest wait for the answer of one NTP server.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// NTP servers that are asked at most; further ones of DHCP's list are ignored.
const SERVERS_MAX: usize = 3;
/// Smallest error of the clock that is corrected.
const STEP_MIN: Duration = Duration::from_millis(500);
/// Seconds from 1900 to 1970.
const NTP_TO_UNIX_S: u64 = 2_208_988_800;
/// Bytes of an SNTP packet without authentication.
const PACKET_LEN: usize = 48;

/// Milliseconds since the epoch. 0 if the clock is before it.
#[must_use]
pub fn now_ms() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // Saturates in 584 million years.
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Steps the clock to `time_ms` if it is off by half a second or more. Returns `true` if it did.
///
/// # Errors
/// When the kernel refuses to set the clock.
pub fn set(time_ms: u64) -> Result<bool> {
    if u128::from(now_ms().abs_diff(time_ms)) < STEP_MIN.as_millis() {
        return Ok(false);
    }
    let time = TimeSpec::from_duration(Duration::from_millis(time_ms));
    clock_settime(ClockId::CLOCK_REALTIME, time).context("cannot set the clock")?;
    Ok(true)
}

/// Asks the servers in turn and sets the clock by the first that answers. A failure is only logged:
/// pixie's time is good enough for certificates.
pub async fn sync(servers: &[Ipv4Addr]) {
    for server in servers.iter().take(SERVERS_MAX) {
        match ask(*server).await.and_then(set) {
            Ok(stepped) => return tracing::info!(%server, stepped, "clock checked by NTP"),
            Err(error) => {
                tracing::warn!(%server, error = format!("{error:#}"), "no time from NTP server");
            }
        }
    }
}

async fn ask(server: Ipv4Addr) -> Result<u64> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect((server, 123)).await?;
    let cookie: u64 = rand::random();
    socket.send(&question(cookie)).await?;
    let mut buffer = [0; PACKET_LEN];
    let read = tokio::time::timeout(ANSWER_LIMIT, socket.recv(&mut buffer)).await??;
    answer(cookie, buffer.get(..read).unwrap_or_default())
}

/// A request of version 4, mode client. The cookie is the transmit timestamp, which the server
/// echoes: without it any host could set the clock by a forged answer.
fn question(cookie: u64) -> [u8; PACKET_LEN] {
    let mut packet = [0; PACKET_LEN];
    packet[0] = 0x23;
    packet[40..].copy_from_slice(&cookie.to_be_bytes());
    packet
}

/// The server's transmit time, milliseconds since the epoch.
fn answer(cookie: u64, bytes: &[u8]) -> Result<u64> {
    let packet: &[u8; PACKET_LEN] = bytes.try_into().context("not an NTP answer")?;
    ensure!(packet[0] & 7 == 4, "not an answer of a server");
    // Leap indicator 3 and strata outside 1 to 15 mean an unsynchronised server.
    ensure!(
        packet[0] >> 6 != 3 && (1..16).contains(&packet[1]),
        "the server's clock is not synchronised"
    );
    ensure!(
        packet[24..32] == cookie.to_be_bytes(),
        "an answer to another request"
    );
    let word = |at: usize| {
        packet[at..]
            .first_chunk()
            .map_or(0, |b| u32::from_be_bytes(*b))
    };
    let seconds = u64::from(word(40));
    // RFC 4330 §3: the 32-bit count of seconds wraps in 2036; a clear top bit means after that.
    let era = if seconds & 0x8000_0000 == 0 {
        1 << 32
    } else {
        0
    };
    let unix = (seconds + era)
        .checked_sub(NTP_TO_UNIX_S)
        .context("a time before 1970")?;
    Ok(unix * 1000 + ((u64::from(word(44)) * 1000) >> 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(cookie: u64, seconds: u32) -> Vec<u8> {
        let mut p = vec![0; PACKET_LEN];
        p[0] = 0x24;
        p[1] = 2;
        p[24..32].copy_from_slice(&cookie.to_be_bytes());
        p[40..44].copy_from_slice(&seconds.to_be_bytes());
        p[44..48].copy_from_slice(&0x8000_0000_u32.to_be_bytes());
        p
    }

    #[test]
    fn answers() {
        // 2026-11-21 00:00:00 UTC is 1795219200.
        let p = reply(7, u32::try_from(1_795_219_200 + NTP_TO_UNIX_S).unwrap());
        assert_eq!(answer(7, &p).unwrap(), 1_795_219_200_500);
        // In the era after 2036.
        assert_eq!(
            answer(7, &reply(7, 0)).unwrap(),
            ((1 << 32) - NTP_TO_UNIX_S) * 1000 + 500
        );
        assert!(answer(8, &p).is_err());
        assert!(answer(7, &p[..47]).is_err());
        let mut unsynchronised = p;
        unsynchronised[1] = 16;
        assert!(answer(7, &unsynchronised).is_err());
    }
}
