//! A reader that stops decompression bombs. The digest is known only at the end of the stream, so
//! until then the image may come from an attacker.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Bounds on the growth of a stream by decompression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expansion {
    /// Bytes that any image may have.
    pub(super) free: u64,
    /// Beyond these, decompressed bytes per received byte. Operating systems reach 3 to 5, zeros
    /// some 30,000.
    pub(super) ratio: u64,
}

/// The output of a decompressor. Reading fails if the stream is a decompression bomb.
pub(super) struct Expanded<R> {
    stream: R,
    arrived: Rc<Cell<u64>>,
    limit: Expansion,
    bytes: u64,
}

impl<R> Expanded<R> {
    /// `arrived` counts the bytes that the decompressor has read.
    pub(super) fn new(stream: R, arrived: Rc<Cell<u64>>, limit: Expansion) -> Self {
        Self {
            stream,
            arrived,
            limit,
            bytes: 0,
        }
    }
}

impl<R: Read> Read for Expanded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        self.bytes = self.bytes.saturating_add(read as u64);
        let Expansion { free, ratio } = self.limit;
        let arrived = self.arrived.get();
        if self.bytes > free.saturating_add(arrived.saturating_mul(ratio)) {
            let bytes = self.bytes;
            let message = format!(
                "decompression bomb: {arrived} bytes become {bytes} or more, which no operating \
                 system does"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bomb_ends_and_a_dense_image_does_not() {
        let limit = Expansion {
            free: 1000,
            ratio: 10,
        };
        let arrived = Rc::new(Cell::new(100));
        let expanded = |bytes| Expanded::new(io::repeat(0).take(bytes), Rc::clone(&arrived), limit);
        let whole = io::copy(&mut expanded(2000), &mut io::sink());
        assert_eq!(whole.unwrap(), 2000);
        let bomb = io::copy(&mut expanded(2001), &mut io::sink());
        assert_eq!(bomb.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
