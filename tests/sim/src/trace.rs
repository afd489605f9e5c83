//! A checksum over everything that a run did, in order: equal for equal seeds.

use std::fmt::{self, Write};

/// The checksum so far (FNV-1a).
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    /// Are the lines printed, too?
    is_loud: bool,
}

impl Trace {
    pub(crate) fn new(is_loud: bool) -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            is_loud,
        }
    }

    /// Adds one line.
    pub(crate) fn line(&mut self, at_ms: u64, line: fmt::Arguments<'_>) {
        // Writing into a checksum does not fail.
        writeln!(self, "{at_ms} {line}").ok();
        if self.is_loud {
            eprintln!("{:>9.3} {line}", at_ms as f64 / 1000.0);
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }
}

impl Write for Trace {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}
