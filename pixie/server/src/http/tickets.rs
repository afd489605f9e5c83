//! The boot ticket, with which an installer that just booted enrols as its machine, once.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper::{Request, Response, StatusCode};
use pixie_boot::TicketRefusal;
use proto_types::{MacAddr, MachineId};
use serde::Deserialize;
use tokio::time::timeout;

use super::{Body, Context, json, refusal};
use crate::clock::now_ms;
use crate::control::{ControlError, Ticket};
use crate::state::Shared;

/// Longest request body, bytes. A longer one is refused with 400.
const BODY_LEN_MAX: usize = 4096;
/// Time limit for the request body to arrive.
const BODY_WAIT: Duration = Duration::from_secs(10);
/// Time limit of the call to control. After it the installer is told to retry.
const CONTROL_WAIT: Duration = Duration::from_secs(10);
/// `Retry-After` of an installer while control is away, s.
const RETRY_S: u32 = 5;

/// The request body.
#[derive(Deserialize)]
struct TicketRequest {
    uuid: MachineId,
    mac: MacAddr,
}

/// A boot's right to one ticket, taken by a request. It is given back unless it is used up, also
/// when the installer hangs up and the request is dropped: a ticket that control may have issued
/// has a secret that nobody knows, and ends with the boot.
struct TicketRight<'a> {
    shared: &'a Shared,
    machine: MachineId,
    /// Time of the boot, ms.
    booted_ms: u64,
    is_used: bool,
}

impl TicketRight<'_> {
    fn use_up(mut self) {
        self.is_used = true;
    }
}

impl Drop for TicketRight<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            let mut boots = self.shared.boots();
            boots.give_back(self.machine, self.booted_ms);
        }
    }
}

/// Answers a request for a ticket.
pub(super) async fn ticket(context: &Context, request: Request<Incoming>) -> Response<Body> {
    let wanted = match read(request).await {
        Ok(wanted) => wanted,
        Err(reason) => return refusal(StatusCode::BAD_REQUEST, &reason, None),
    };
    let TicketRequest { uuid: machine, mac } = wanted;
    let holder = context.shared.holder(context.network, context.from);
    // The right to the ticket is taken before control is called. Two concurrent requests of one
    // boot would otherwise both get a ticket.
    let taken = context.shared.boots().take(machine, mac, holder, now_ms());
    let right = match taken {
        Ok(booted_ms) => TicketRight {
            shared: &context.shared,
            machine,
            booted_ms,
            is_used: false,
        },
        Err(reason) => {
            tracing::warn!(%machine, %mac, from = %context.from, %reason, "ticket refused");
            return refusal(status_of(reason), &reason.to_string(), None);
        }
    };
    let issued = timeout(
        CONTROL_WAIT,
        context.shared.control.issue_ticket(machine, mac),
    )
    .await;
    let issued = issued.unwrap_or_else(|_| Err(ControlError::Away("no answer in time".into())));
    match issued {
        Ok(ticket) => {
            right.use_up();
            context.shared.control_answered();
            tracing::info!(%machine, %mac, ticket = ticket.id, "ticket handed out");
            answer(context, machine, &ticket)
        }
        Err(error) => {
            tracing::warn!(%machine, %mac, %error, "no ticket");
            match error {
                ControlError::Away(_) => refusal(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "control is away; retry later",
                    Some(RETRY_S),
                ),
                ControlError::Refused(_) => {
                    refusal(StatusCode::FORBIDDEN, &error.to_string(), None)
                }
            }
        }
    }
}

fn status_of(reason: TicketRefusal) -> StatusCode {
    match reason {
        TicketRefusal::Used => StatusCode::CONFLICT,
        _ => StatusCode::FORBIDDEN,
    }
}

async fn read(request: Request<Incoming>) -> Result<TicketRequest, String> {
    let body = Limited::new(request.into_body(), BODY_LEN_MAX).collect();
    // hyper limits the wait for the headers only.
    let bytes = timeout(BODY_WAIT, body)
        .await
        .map_err(|_| "the body did not arrive in time".to_owned())?
        .map_err(|_| format!("the body is incomplete or longer than {BODY_LEN_MAX} bytes"))?
        .to_bytes();
    serde_json::from_slice(&bytes)
        .map_err(|error| format!("not {{\"uuid\", \"mac\"}} as JSON: {error}"))
}

fn answer(context: &Context, machine: MachineId, ticket: &Ticket) -> Response<Body> {
    let roots: Vec<String> = ticket
        .roots
        .iter()
        .map(|der| STANDARD.encode(der))
        .collect();
    let body = serde_json::json!({
        "ticket_id": ticket.id,
        "secret": URL_SAFE_NO_PAD.encode(&ticket.secret),
        "roots": roots,
        "control": context.shared.desired().control,
        // A machine whose clock is wrong takes every certificate for invalid.
        "time_ms": now_ms(),
        "machine_uuid": machine.to_string(),
    });
    let mut response = json(StatusCode::OK, &body);
    // The body has a secret, which no cache on the way may keep.
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
