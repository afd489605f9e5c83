//! Every bound of the link, named.

use std::time::Duration;

/// Largest request message, bytes.
pub const REQUEST_LEN_MAX: usize = 1024 * 1024;
/// Largest request message of a caller without a certificate, bytes.
pub const ANONYMOUS_REQUEST_LEN_MAX: usize = 32 * 1024;
/// Largest message from control, bytes: desired state is sent whole.
pub const RESPONSE_LEN_MAX: usize = 16 * 1024 * 1024;
/// Largest header frame, bytes.
pub const HEADER_LEN_MAX: usize = 256;
/// Largest end frame, bytes.
pub const END_LEN_MAX: usize = 4096;

/// Calls in flight on one session.
pub const STREAMS_PER_SESSION_MAX: u32 = 64;
/// Calls in flight on a session at its begin: room for each costs memory as long as it lasts, and
/// most never have more than two. Half of them at once make it [`STREAMS_PER_SESSION_MAX`].
pub const STREAMS_AT_FIRST: u32 = 8;
/// Calls in flight on one session without a certificate.
pub const ANONYMOUS_STREAMS_MAX: u32 = 4;
/// Sessions of one identity; a further one ends the oldest. Renewal needs two.
pub const SESSIONS_PER_PEER_MAX: usize = 4;
/// Sessions without a certificate, of all callers together.
pub const ANONYMOUS_SESSIONS_MAX: usize = 2048;
/// ... of one IPv4 address, or of one network of 2^64 IPv6 addresses. Behind one address a hall of
/// machines may join at once, each in a second or two.
pub const ANONYMOUS_SESSIONS_PER_ADDRESS_MAX: usize = 256;
/// Life of a session without a certificate.
pub const ANONYMOUS_SESSION_LIFE: Duration = Duration::from_secs(60);
/// A session without a certificate on which no call begins for this long is closed: whoever wants
/// to join calls at once.
pub const ANONYMOUS_FIRST_CALL: Duration = Duration::from_secs(10);
/// Sessions of one server.
pub const SESSIONS_MAX: usize = 20_000;
/// Handshakes in progress before callers must prove their address.
pub const HANDSHAKES_UNPROVED_MAX: usize = 256;
/// ... of one address.
pub const HANDSHAKES_UNPROVED_PER_ADDRESS_MAX: usize = 64;
/// Handshakes in progress. Two slow cores finish as many before the first caller gives up: more at
/// once would all be given up, and come again.
pub const HANDSHAKES_MAX: usize = 2048;
/// ... of one IPv4 address, or of one network of 2^64 IPv6 addresses.
pub const HANDSHAKES_PER_ADDRESS_MAX: usize = 256;
/// A handshake that takes longer is given up: by then its caller has left.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// Callers whose first packet has come and was not looked at yet.
pub const INCOMING_MAX: usize = 4096;
/// Time for header and request of a call to arrive.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// Flow-control window of one stream, bytes.
pub const STREAM_WINDOW: u32 = 256 * 1024;
/// Flow-control window of one session, bytes.
pub const SESSION_WINDOW: u32 = 1024 * 1024;
/// Pings of the client: about half of [`IDLE_TIMEOUT`], which leaves time to send a lost one again
/// a few times (RFC 9000 §10.1.2, RFC 9002 §6.2), and often enough for NATs, which forget UDP after
/// 30 s. They are most of what an idle session costs its server.
pub const KEEP_ALIVE: Duration = Duration::from_secs(7);
/// A session that answers no ping for this long is over, and the client goes on to the next
/// address: the node died, or nothing gets through.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// [`KEEP_ALIVE`] of clients that only wait, of which there are more than of all others. A node
/// that was killed and came back can tell them so only when they speak (RFC 9000 §10.3): for as
/// long as this, nobody gets a machine that waits.
pub const PATIENT_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// [`IDLE_TIMEOUT`] of these.
pub const PATIENT_IDLE_TIMEOUT: Duration = Duration::from_secs(40);
/// First guess of the round trip; quinn's own is 333 ms.
pub const INITIAL_RTT: Duration = Duration::from_millis(20);

/// Room for packets that have arrived at a socket of many sessions, bytes.
pub const RECEIVE_BUFFER_LEN: usize = 8 * 1024 * 1024;
/// Less room is worth a warning: a thousand agents that speak at once fill it.
pub const RECEIVE_BUFFER_LEN_MIN: usize = 1024 * 1024;
/// Idle streams of a session that are kept for the next calls.
pub const STREAMS_KEPT_MAX: usize = 8;

/// Deadline of a call that names none.
pub const CALL_TIME: Duration = Duration::from_secs(30);
/// Longest deadline that a server keeps.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(600);
/// One attempt to open a session.
pub const DIAL_TIME_MAX: Duration = Duration::from_secs(4);
/// First pause between attempts.
pub const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// Longest pause between attempts.
pub const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// A session that lived this long was a good one: the next pause starts small again.
pub const SESSION_GOOD: Duration = Duration::from_secs(10);
/// Time that a replaced session has to finish its calls.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(30);
/// Time that a server gives its sessions when it stops.
pub const STOP_TIME_MAX: Duration = Duration::from_secs(2);

/// Sessions with a certificate that a server lets in in a second, for as long as it takes. A full
/// handshake costs about half a millisecond of each side.
pub const ADMISSIONS_PER_SECOND: u32 = 2_000;
/// ... and at once, after a time in which few came.
pub const ADMISSIONS_AT_ONCE: u32 = 4_000;
/// Shortest time after which a caller that found no place is to come back.
pub const BUSY_MIN: Duration = Duration::from_millis(250);
/// Longest.
pub const BUSY_MAX: Duration = Duration::from_secs(30);
/// When a caller without a certificate is to come back that found no place among the others.
pub const ANONYMOUS_BUSY: Duration = Duration::from_secs(5);
/// First pause of a caller whose handshake was not begun: there were too many.
pub const CROWDED_MIN: Duration = Duration::from_secs(2);
/// Longest. A node that refuses ten thousand callers as often is busy with it for a third of the
/// time of one core.
pub const CROWDED_MAX: Duration = Duration::from_secs(4);
