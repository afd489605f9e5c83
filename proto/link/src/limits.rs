//! Every bound of the link, named.

use std::time::Duration;

/// Largest request message, bytes. A longer one is refused with [`crate::Code::ResourceExhausted`].
pub const REQUEST_LEN_MAX: usize = 1024 * 1024;
/// Largest request message of a caller without a certificate, bytes. A longer one is refused as
/// above.
pub const ANONYMOUS_REQUEST_LEN_MAX: usize = 32 * 1024;
/// Largest response message, bytes. A longer one ends the call with
/// [`crate::Code::ResourceExhausted`]. The desired state is sent as one message.
pub const RESPONSE_LEN_MAX: usize = 16 * 1024 * 1024;
/// Largest payload of a header frame, bytes. A longer one ends the call with
/// [`crate::Code::ResourceExhausted`].
pub const HEADER_LEN_MAX: usize = 256;
/// Largest payload of an end frame, bytes. A longer status message is cut.
pub const END_LEN_MAX: usize = 4096;

/// Calls in flight on one session. QUIC's stream limit makes the next call wait at its caller.
pub const STREAMS_PER_SESSION_MAX: u32 = 64;
/// Stream limit of a new session. Each permitted stream costs memory for the life of the session,
/// and most agents never have more than two calls in flight. When half of them are in use, the
/// limit becomes [`STREAMS_PER_SESSION_MAX`].
pub const STREAMS_AT_FIRST: u32 = 8;
/// Calls in flight on one session without a certificate. The next call waits at its caller.
pub const ANONYMOUS_STREAMS_MAX: u32 = 4;
/// Sessions of one identity. A further session closes the oldest one. Renewal needs two.
pub const SESSIONS_PER_PEER_MAX: usize = 4;
/// Sessions without a certificate, of all callers together. The next caller is told to come back
/// after [`ANONYMOUS_BUSY`].
pub const ANONYMOUS_SESSIONS_MAX: usize = 2048;
/// Sessions without a certificate of one IPv4 address or one IPv6 /64. The next caller is told to
/// come back after [`ANONYMOUS_BUSY`]. All machines of a site may join from behind one address,
/// each within a second or two.
pub const ANONYMOUS_SESSIONS_PER_ADDRESS_MAX: usize = 256;
/// Lifetime of a session without a certificate. After it the server closes the session.
pub const ANONYMOUS_SESSION_LIFE: Duration = Duration::from_secs(60);
/// A session without a certificate is closed if no call begins within this time. A joining agent
/// calls at once.
pub const ANONYMOUS_FIRST_CALL: Duration = Duration::from_secs(10);
/// Sessions of one server. The next caller is told to come back after [`BUSY_MAX`].
pub const SESSIONS_MAX: usize = 20_000;
/// Handshakes in progress above which new callers must prove their address (QUIC Retry).
pub const HANDSHAKES_UNPROVED_MAX: usize = 256;
/// The same bound for one IPv4 address or one IPv6 /64.
pub const HANDSHAKES_UNPROVED_PER_ADDRESS_MAX: usize = 64;
/// Handshakes in progress. Further callers are refused. Two slow cores finish this many before the
/// first caller gives up; with more, every caller would time out and dial again.
pub const HANDSHAKES_MAX: usize = 2048;
/// Handshakes in progress of one IPv4 address or one IPv6 /64. Further callers are refused.
pub const HANDSHAKES_PER_ADDRESS_MAX: usize = 256;
/// Time limit of one handshake on the server. Beyond it the connection is dropped. It exceeds
/// [`DIAL_TIME_MAX`], so the caller has given up already by then.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// Incoming connections queued in quinn before the server looks at them. quinn refuses further
/// ones.
pub const INCOMING_MAX: usize = 4096;
/// Time limit for header and request of a call to arrive. Beyond it the call ends with
/// [`crate::Code::DeadlineExceeded`].
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// Flow-control window of one stream, bytes. The sender waits when it is full of unread bytes.
pub const STREAM_WINDOW: u32 = 256 * 1024;
/// Flow-control window of one session, over all its streams, bytes. It also bounds the answers that
/// a server keeps for a peer that stops reading.
pub const SESSION_WINDOW: u32 = 1024 * 1024;
/// Interval of the client's pings. About half of [`IDLE_TIMEOUT`] leaves time to retransmit a lost
/// ping a few times (RFC 9000 §10.1.2, RFC 9002 §6.2), and NATs forget a UDP flow after 30 s. Pings
/// are most of the cost of an idle session on the server.
pub const KEEP_ALIVE: Duration = Duration::from_secs(7);
/// Idle timeout of a session. After it the client dials the next address.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// [`KEEP_ALIVE`] of waiting machines, the most numerous clients. A restarted node can reset an old
/// session only in answer to a packet (RFC 9000 §10.3), so no waiting machine can be allocated for
/// up to this time after a restart.
pub const PATIENT_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// [`IDLE_TIMEOUT`] of waiting machines.
pub const PATIENT_IDLE_TIMEOUT: Duration = Duration::from_secs(40);
/// Initial estimate of the round-trip time. A lost first packet is sent again after about three
/// times as long (RFC 9002 §6.2.1): with quinn's default of 333 ms, after a second.
pub const INITIAL_RTT: Duration = Duration::from_millis(20);

/// Requested receive buffer of a socket that many sessions share, bytes. The kernel drops packets
/// that do not fit.
pub const RECEIVE_BUFFER_LEN: usize = 8 * 1024 * 1024;
/// A smaller receive buffer is logged as a warning, bytes. A thousand agents that send at once
/// fill it.
pub const RECEIVE_BUFFER_LEN_MIN: usize = 1024 * 1024;
/// Idle streams kept per session for the next calls. Further ones are closed.
pub const STREAMS_KEPT_MAX: usize = 8;

/// Default deadline of a call. Beyond it the call ends with [`crate::Code::DeadlineExceeded`].
pub const CALL_TIME: Duration = Duration::from_secs(30);
/// Longest deadline that a server honours. A longer one is cut to it.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(600);
/// Time limit of one attempt to open a session with one socket address, and of the look-up of a
/// name. Beyond it the client dials the next address.
pub const DIAL_TIME_MAX: Duration = Duration::from_secs(4);
/// First backoff between attempts to open a session.
pub const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// Longest backoff between attempts to open a session.
pub const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// A session that lived at least this long resets the backoff.
pub const SESSION_GOOD: Duration = Duration::from_secs(10);
/// Grace period of a replaced session for its unary calls in flight. Beyond it they end with
/// [`crate::Code::Unavailable`].
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(30);
/// Time limit of a stopping server for sending the closes of its sessions. Beyond it the clients
/// notice by their idle timeout.
pub const STOP_TIME_MAX: Duration = Duration::from_secs(2);

/// Default rate limit of new sessions with a certificate, per second. A full handshake costs about
/// half a millisecond of CPU on each side.
pub const ADMISSIONS_PER_SECOND: u32 = 2_000;
/// Default burst allowance of [`ADMISSIONS_PER_SECOND`], sessions.
pub const ADMISSIONS_AT_ONCE: u32 = 4_000;
/// Shortest wait that a caller above the rate limit is told.
pub const BUSY_MIN: Duration = Duration::from_millis(250);
/// Longest wait that a caller above the rate limit is told, and that a client accepts.
pub const BUSY_MAX: Duration = Duration::from_secs(30);
/// Wait that a caller without a certificate is told when all anonymous sessions, or those of its
/// network, are taken.
pub const ANONYMOUS_BUSY: Duration = Duration::from_secs(5);
/// First backoff of a client whose handshake was refused because too many were in progress.
pub const CROWDED_MIN: Duration = Duration::from_secs(2);
/// Longest such backoff. Refusing ten thousand callers at this interval costs a node a third of one
/// core.
pub const CROWDED_MAX: Duration = Duration::from_secs(4);
