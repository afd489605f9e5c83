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
/// Calls in flight on one session without a certificate.
pub const ANONYMOUS_STREAMS_MAX: u32 = 4;
/// Sessions of one identity; a further one ends the oldest. Renewal needs two.
pub const SESSIONS_PER_PEER_MAX: usize = 4;
/// Sessions without a certificate, of all callers together.
pub const ANONYMOUS_SESSIONS_MAX: usize = 512;
/// Life of a session without a certificate.
pub const ANONYMOUS_SESSION_LIFE: Duration = Duration::from_secs(60);
/// Sessions of one server.
pub const SESSIONS_MAX: usize = 20_000;
/// Handshakes in progress before callers must prove their address.
pub const HANDSHAKES_UNPROVED_MAX: usize = 256;
/// Handshakes in progress.
pub const HANDSHAKES_MAX: usize = 4096;
/// A handshake that takes longer is given up.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Time for header and request of a call to arrive.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// Flow-control window of one stream, bytes.
pub const STREAM_WINDOW: u32 = 256 * 1024;
/// Flow-control window of one session, bytes.
pub const SESSION_WINDOW: u32 = 1024 * 1024;
/// Pings of the client; NATs forget UDP after 30 s.
pub const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// A session without a packet for this long is over, and the client goes on to the next address:
/// three pings in a row were lost, or the node died.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
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
