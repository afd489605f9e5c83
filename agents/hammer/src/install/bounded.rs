//! A reader that bounds the memory that an archive's headers may take. The digest is known only at
//! the end of the stream, so until then the archive may come from an attacker.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes between the contents of two entries at most: headers, long names, extended attributes and
/// lists of holes, all of which the tar reader keeps in memory. More is an error. Linux takes
/// 64 KiB of one attribute.
const HEADERS_LEN_MAX: u64 = 1 << 20;

/// The position of the tar reader: in headers or in content.
#[derive(Debug, Clone)]
pub(super) struct ArchivePosition(Rc<Cell<u64>>);

impl ArchivePosition {
    pub(super) fn new() -> Self {
        Self(Rc::new(Cell::new(HEADERS_LEN_MAX)))
    }

    /// At an entry's headers: the tar reader keeps them in memory, so their length is bounded.
    pub(super) fn headers(&self) {
        self.0.set(HEADERS_LEN_MAX);
    }

    /// In an entry's content, which goes to the disk piece by piece and is not bounded here.
    pub(super) fn content(&self) {
        self.0.set(u64::MAX);
    }
}

/// The archive's stream. Reading fails if an entry's headers exceed [`HEADERS_LEN_MAX`].
pub(super) struct BoundedHeaders<R> {
    stream: R,
    left: Rc<Cell<u64>>,
}

impl<R> BoundedHeaders<R> {
    pub(super) fn new(stream: R, position: &ArchivePosition) -> Self {
        let left = Rc::clone(&position.0);
        Self { stream, left }
    }
}

impl<R: Read> Read for BoundedHeaders<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        // On 32 bits a larger remainder does not limit the buffer; saturation says just that.
        let wanted = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        // An empty read would mean the end of the archive: it would pass for complete, without the
        // files that follow.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_end_and_contents_do_not() {
        let position = ArchivePosition::new();
        let mut stream = BoundedHeaders::new(io::repeat(7), &position);
        let read = io::copy(&mut stream, &mut io::sink());
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData);
        position.content();
        let mut content = stream.take(3 * HEADERS_LEN_MAX);
        assert_eq!(
            io::copy(&mut content, &mut io::sink()).unwrap(),
            3 * HEADERS_LEN_MAX
        );
    }
}
