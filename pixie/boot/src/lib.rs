//! The pure decision: what a client boots.
