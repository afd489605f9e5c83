//! Streams that end in an error before their content costs more than an image may cost: what they
//! say is not checked against the digest before their end.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes of the archive that may lie between the contents of two entries: headers, long names,
/// extended attributes and lists of holes, all of which tar's reader keeps in memory. Linux takes
/// 64 KiB of one attribute.
const HEADERS_LEN_MAX: u64 = 1 << 20;

/// Says where in the archive its reader is.
#[derive(Debug, Clone)]
pub(super) struct Position(Rc<Cell<u64>>);

impl Position {
    pub(super) fn new() -> Self {
        Self(Rc::new(Cell::new(HEADERS_LEN_MAX)))
    }

    /// At an entry's headers: what is read from here on is kept in memory.
    pub(super) fn headers(&self) {
        self.0.set(HEADERS_LEN_MAX);
    }

    /// In an entry's content, which is written as it comes.
    pub(super) fn content(&self) {
        self.0.set(u64::MAX);
    }
}

/// The archive; an error where an entry's headers are longer than [`HEADERS_LEN_MAX`].
pub(super) struct Headers<R> {
    stream: R,
    left: Rc<Cell<u64>>,
}

impl<R> Headers<R> {
    pub(super) fn new(stream: R, position: &Position) -> Self {
        let left = Rc::clone(&position.0);
        Self { stream, left }
    }
}

impl<R: Read> Read for Headers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        let wanted = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        if wanted == 0 && !buffer.is_empty() {
            let message =
                format!("the headers of one entry have more than {HEADERS_LEN_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let buffer = buffer.get_mut(..wanted).unwrap_or_default();
        let read = self.stream.read(buffer)?;
        self.left.set(left.saturating_sub(read as u64));
        Ok(read)
    }
}

/// How far a stream may grow by decompression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expansion {
    /// Bytes that any image may have.
    pub(super) free: u64,
    /// Beyond these, bytes for each byte that arrived. Systems come to three or five, and zeros to
    /// thirty thousand.
    pub(super) ratio: u64,
}

/// The output of a decompressor; an error where it is a bomb.
pub(super) struct Expanded<R> {
    stream: R,
    arrived: Rc<Cell<u64>>,
    limit: Expansion,
    bytes: u64,
}

impl<R> Expanded<R> {
    /// `arrived` counts what went into the decompressor.
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
            let message = format!("{arrived} bytes become {bytes} and more: this is no system");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_end_and_contents_do_not() {
        let position = Position::new();
        let mut stream = Headers::new(io::repeat(7), &position);
        let read = io::copy(&mut stream, &mut io::sink());
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData);
        position.content();
        let mut content = stream.take(3 * HEADERS_LEN_MAX);
        assert_eq!(
            io::copy(&mut content, &mut io::sink()).unwrap(),
            3 * HEADERS_LEN_MAX
        );
    }

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
