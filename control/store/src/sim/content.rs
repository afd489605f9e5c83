//! Content of a simulated file.

const SECTOR_BYTES: usize = 512;

/// Bytes of a file, as they are and as a crash may leave them.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// The bytes as they are read.
    pub(super) live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
}

impl Content {
    pub(super) fn write(&mut self, start: usize, bytes: &[u8]) {
        put(&mut self.live, start, bytes);
        self.unsynced.push((start, bytes.to_vec()));
    }

    pub(super) fn sync(&mut self) {
        for (start, bytes) in std::mem::take(&mut self.unsynced) {
            put(&mut self.durable, start, &bytes);
        }
    }

    pub(super) fn crash(&mut self, random: &mut u64) {
        self.forget_unsynced(random);
        self.live.clone_from(&self.durable);
    }

    /// Makes a random part of the unsynced writes durable and forgets the rest.
    pub(super) fn forget_unsynced(&mut self, random: &mut u64) {
        for (start, bytes) in std::mem::take(&mut self.unsynced) {
            let fate = super::next(random);
            match fate % 4 {
                0 => put(&mut self.durable, start, &bytes),
                1 => {}
                2 => {
                    let left = (super::next(random) % (bytes.len() as u64 + 1)) as usize;
                    put(&mut self.durable, start, &bytes[..left]);
                }
                _ => {
                    for (number, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                        if super::next(random) & 1 == 0 {
                            put(&mut self.durable, start + number * SECTOR_BYTES, sector);
                        }
                    }
                }
            }
        }
    }
}

fn put(content: &mut Vec<u8>, start: usize, bytes: &[u8]) {
    let end = start + bytes.len();
    if content.len() < end {
        // A lost write before a durable one leaves zeros, as the hole of a sparse file.
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
}
