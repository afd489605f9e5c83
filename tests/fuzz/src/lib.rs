//! Fuzz targets of every decoder that reads bytes from a wire or from a disk.
//!
//! The targets are the tests of this crate, and those called `fuzz_…` beside decoders that their
//! crate keeps to itself: `cargo test` gives each a second of random input,
//! `./dev fuzz 60s` as long as is asked, and cargo-bolero runs them under libFuzzer.
//! Invariant: a decoder answers or refuses; it never panics, hangs or reads out of bounds, and
//! what it accepts it can encode again to something that it accepts.
