//! The boot ticket: pixie vouches that the caller is the machine that it has just booted.

use std::fmt;
use std::time::Duration;

use agents_kit::BootClaim;
use anyhow::{Context, Result, bail};
use base_runtime::Backoff;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::net::http::Http;

/// Pauses between requests, first and longest.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));
/// Longest time without a ticket. The machine reboots then, which may bring a newer boot image or
/// another pixie.
const ASK_LIMIT: Duration = Duration::from_secs(600);
/// Refusals (4xx) until hammer gives up. A few are normal: pixie may learn the machine's address
/// shortly after the first request.
const REFUSALS_MAX: u32 = 5;

#[derive(Serialize)]
struct Question<'a> {
    uuid: &'a str,
    mac: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    ticket_id: String,
    secret: String,
    roots: Vec<String>,
    control: Vec<String>,
    #[serde(default)]
    time_ms: u64,
    #[serde(default)]
    machine_uuid: String,
}

/// A ticket, and everything needed to redeem it.
pub struct Ticket {
    /// The claim to redeem at control.
    pub claim: BootClaim,
    /// Root certificates of control, DER.
    pub roots: Vec<Vec<u8>>,
    /// Control nodes, host:port.
    pub control: Vec<String>,
    /// Pixie's clock at its answer, milliseconds since the epoch. 0 means unknown.
    pub time_ms: u64,
}

// By hand: a derived one would print the ticket with everything in it.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (claim, control) = (&self.claim, &self.control);
        f.debug_struct("Ticket")
            .field("claim", claim)
            .field("control", control)
            .finish_non_exhaustive()
    }
}

/// Requests a ticket from pixie until it has one. Pixie may have to wait for control itself.
///
/// # Errors
/// When pixie refuses `REFUSALS_MAX` times, or gives no ticket for ten minutes.
pub async fn ask(http: &Http, pixie: &str, uuid: &str, mac: &str) -> Result<Ticket> {
    let url = format!("{pixie}/v1/ticket");
    let question = serde_json::to_string(&Question { uuid, mac })?;
    let deadline = tokio::time::Instant::now() + ASK_LIMIT;
    let mut failures = 0_u32;
    let mut refusals = 0;
    loop {
        let answer = http.post_json(&url, question.clone()).await;
        let reason = match answer {
            Ok((200, body)) => return parse(&body, uuid, mac),
            Ok((status, body)) => {
                let text = String::from_utf8_lossy(&body).trim().to_string();
                // 4xx is pixie's own decision; 429 and 5xx (control unreachable) only cost time.
                if (400..500).contains(&status) && status != 429 {
                    refusals += 1;
                    if refusals >= REFUSALS_MAX {
                        bail!("pixie refuses a ticket for {mac} ({status}): {text}");
                    }
                }
                format!("{status} {text}")
            }
            Err(error) => format!("{error:#}"),
        };
        // After a power failure whole racks boot at once: the growing, jittered pauses keep them
        // from asking pixie in step.
        let pause = BACKOFF.pause(failures);
        failures = failures.saturating_add(1);
        if tokio::time::Instant::now() + pause > deadline {
            bail!("no ticket from {pixie}: {reason}");
        }
        tracing::warn!(pixie, reason, "no ticket yet");
        tokio::time::sleep(pause).await;
    }
}

/// Parses pixie's answer to the machine with this UUID and MAC address.
///
/// # Errors
/// When the answer is not JSON of a ticket, or has no roots or no control nodes.
pub fn parse(body: &[u8], uuid: &str, mac: &str) -> Result<Ticket> {
    let answer: Answer = serde_json::from_slice(body).context("pixie's answer is not a ticket")?;
    // Encoders differ in base64 alphabet and padding; all three variants are accepted.
    let decode = |text: &str| {
        BASE64_URL_SAFE_NO_PAD
            .decode(text)
            .or_else(|_| BASE64_URL_SAFE.decode(text))
            .or_else(|_| BASE64_STANDARD.decode(text))
            .context("pixie's answer is not a ticket")
    };
    let roots = answer
        .roots
        .iter()
        .map(|r| decode(r))
        .collect::<Result<Vec<_>>>()?;
    if roots.is_empty() || answer.control.is_empty() {
        // Without roots the first handshake with control could not be authenticated.
        bail!("pixie's ticket names no root certificates or no control nodes");
    }
    let machine_uuid = if answer.machine_uuid.is_empty() {
        uuid.to_string()
    } else {
        answer.machine_uuid
    };
    Ok(Ticket {
        claim: BootClaim {
            ticket_id: answer.ticket_id,
            secret: decode(&answer.secret)?,
            machine_uuid,
            mac: mac.to_string(),
            nonce: None,
        },
        roots,
        control: answer.control,
        time_ms: answer.time_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_in_both_alphabets() {
        let body = br#"{"ticket_id":"t1","secret":"-_8","roots":["+/8="],
            "control":["10.90.0.1:4443"],"time_ms":5,"machine_uuid":"u"}"#;
        let ticket = parse(body, "u", "m").unwrap();
        assert_eq!(ticket.claim.secret, [0xfb, 0xff]);
        assert_eq!(ticket.roots, [vec![0xfb, 0xff]]);
        assert_eq!((ticket.time_ms, ticket.claim.mac.as_str()), (5, "m"));
        assert!(!format!("{ticket:?}").contains("251"));
    }

    #[test]
    fn what_is_no_ticket() {
        for body in [
            "",
            "{}",
            r#"{"ticket_id":"t","secret":"*","roots":["AA=="],"control":["c:1"]}"#,
            r#"{"ticket_id":"t","secret":"AA","roots":[],"control":["c:1"]}"#,
            r#"{"ticket_id":"t","secret":"AA","roots":["AA=="],"control":[]}"#,
        ] {
            assert!(parse(body.as_bytes(), "u", "m").is_err(), "{body}");
        }
    }
}
