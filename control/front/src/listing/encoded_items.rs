//! Items of a list in their encoded form.

use prost::Message;

use super::Items;

/// Items that were encoded while the state was read, because their conversion reads many rows. The
/// encoded form takes a fraction of the memory of the objects.
#[derive(Debug, Default)]
pub struct EncodedItems {
    bytes: Vec<u8>,
    /// The end of each item in the bytes.
    ends: Vec<usize>,
}

impl EncodedItems {
    /// Appends the item that `encode` writes.
    pub fn push(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// The bytes of one item. Empty means that the index is out of range.
    fn get(&self, index: usize) -> &[u8] {
        let before = index
            .checked_sub(1)
            .map_or(Some(&0), |previous| self.ends.get(previous));
        let range = before.zip(self.ends.get(index));
        range
            .and_then(|(from, to)| self.bytes.get(*from..*to))
            .unwrap_or_default()
    }
}

impl<I: Message> FromIterator<I> for EncodedItems {
    fn from_iter<T: IntoIterator<Item = I>>(items: T) -> Self {
        let mut encoded = Self::default();
        for item in items {
            encoded.push(|out| item.encode_raw(out));
        }
        encoded
    }
}

impl Items for EncodedItems {
    fn count(&self) -> usize {
        self.ends.len()
    }

    fn encoded_len(&self, index: usize) -> usize {
        self.get(index).len()
    }

    fn encode(&self, index: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.get(index));
    }
}
