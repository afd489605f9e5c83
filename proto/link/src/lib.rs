//! The mTLS QUIC session: calls, streams, deadlines and fencing.
