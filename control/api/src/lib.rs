//! The public services: decode, authorise, propose or read, encode.
