//! An open file of the simulated disk.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::content::Content;
use super::disk::{SimDisk, lock};
use crate::disk::DiskFile;

/// An open file. Clones of the disk share its content.
#[derive(Debug)]
pub(super) struct FileHandle {
    disk: SimDisk,
    content: Arc<Mutex<Content>>,
}

impl FileHandle {
    pub(super) fn new(disk: SimDisk, content: Arc<Mutex<Content>>) -> Self {
        Self { disk, content }
    }
}

impl DiskFile for FileHandle {
    fn bytes(&self) -> io::Result<u64> {
        Ok(lock(&self.content).live.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let content = lock(&self.content);
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.saturating_add(buffer.len());
        let bytes = content.live.get(start..end);
        let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        self.disk.operate()?;
        if start + bytes.len() > lock(&self.content).live.len() {
            self.disk.room()?;
        }
        let mut content = lock(&self.content);
        content.write(start, bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if let Err(error) = self.disk.sync_result() {
            // As on Linux: the pages that could not be written are marked clean. No later sync
            // writes them again, although they can still be read.
            if !self.disk.is_dark() {
                lock(&self.content).forget_unsynced(&mut self.disk.state().random);
            }
            return Err(error);
        }
        let mut content = lock(&self.content);
        content.sync();
        Ok(())
    }
}
