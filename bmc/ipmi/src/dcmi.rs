//! DCMI's asset tag: a text that a BMC stores for its machine, read and written in pieces, over the
//! network and from inside the machine.
//!
//! Source: Data Center Manageability Interface Specification 1.5, commands Get Asset Tag and Set
//! Asset Tag.

use crate::{IpmiError, Session};

/// Network function of commands that a group extension defines (IPMI specification, table 5-1).
pub const GROUP_EXTENSION: u8 = 0x2c;
/// DCMI's group number, the first data byte of each request and answer.
pub(crate) const DCMI: u8 = 0xdc;
const GET_ASSET_TAG: u8 = 0x06;
const SET_ASSET_TAG: u8 = 0x08;
/// Most bytes that one request reads or writes, by the specification.
const PIECE: usize = 16;
/// Longest asset tag, bytes, by the specification. A longer one is not written, and an answer that
/// announces a longer one is malformed.
pub const ASSET_TAG_MAX: usize = 63;
/// Byte order mark that a BMC may put before a UTF-8 tag.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Completion codes (IPMI specification, table 5-2).
pub(crate) const DONE: u8 = 0x00;
const INVALID_COMMAND: u8 = 0xc1;
const OUT_OF_RANGE: u8 = 0xc9;
pub(crate) const INVALID_DATA: u8 = 0xcc;

/// An answer to Get Asset Tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Length of the whole tag, bytes.
    pub total: u8,
    pub bytes: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Decodes the data of an answer. `None` means that it is not DCMI's or exceeds the longest tag.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Option<Self> {
        let [DCMI, total, bytes @ ..] = data else {
            return None;
        };
        let fits = usize::from(*total) <= ASSET_TAG_MAX && bytes.len() <= PIECE;
        fits.then_some(Self {
            total: *total,
            bytes,
        })
    }
}

impl Session {
    /// Reads the asset tag.
    ///
    /// # Errors
    /// As [`Session::request`]; [`IpmiError::Completion`] from a BMC without an asset tag.
    pub async fn asset_tag(&mut self) -> Result<String, IpmiError> {
        let what = "reading the asset tag";
        let malformed = || IpmiError::Malformed { what };
        // A read beyond the end of the tag is refused as a whole, so the length is read first.
        let data = self
            .request(GROUP_EXTENSION, GET_ASSET_TAG, &[DCMI, 0, 0], what)
            .await?;
        let total = Piece::decode(&data).ok_or_else(malformed)?.total;
        let mut tag = Vec::new();
        while let Ok(at) = u8::try_from(tag.len())
            && at < total
        {
            let count = (total - at).min(16);
            let ask = [DCMI, at, count];
            let data = self
                .request(GROUP_EXTENSION, GET_ASSET_TAG, &ask, what)
                .await?;
            // An empty piece would not advance: the loop would read the same offset for ever.
            let piece = Piece::decode(&data).filter(|piece| !piece.bytes.is_empty());
            tag.extend(piece.ok_or_else(malformed)?.bytes);
        }
        // A BMC may return more bytes than were requested.
        tag.truncate(total.into());
        let text = tag.strip_prefix(MARK).unwrap_or(&tag).to_vec();
        String::from_utf8(text).map_err(|_| malformed())
    }

    /// Writes the asset tag.
    ///
    /// # Errors
    /// [`IpmiError::TooLong`] above [`ASSET_TAG_MAX`]; else as [`Session::request`];
    /// [`IpmiError::Completion`] from a BMC whose asset tag is missing or read-only.
    pub async fn set_asset_tag(&mut self, tag: &str) -> Result<(), IpmiError> {
        if tag.len() > ASSET_TAG_MAX {
            return Err(IpmiError::TooLong {
                field: "asset tag",
                max: ASSET_TAG_MAX,
            });
        }
        for request in writes(tag.as_bytes()) {
            let what = "writing the asset tag";
            self.request(GROUP_EXTENSION, SET_ASSET_TAG, &request, what)
                .await?;
        }
        Ok(())
    }
}

/// The requests that write a tag, in order. Each cuts the tag at the end of its piece, so the last
/// one sets the length. An empty tag is one request without bytes.
fn writes(tag: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let number = |size: usize| u8::try_from(size).unwrap_or(u8::MAX);
    // `chunks` of an empty tag are none: nothing would be sent, and the old tag would stay.
    let empty = tag.is_empty().then_some(tag);
    let pieces = tag.chunks(PIECE).chain(empty).enumerate();
    pieces.map(move |(at, piece)| {
        let mut request = vec![DCMI, number(at * PIECE), number(piece.len())];
        request.extend(piece);
        request
    })
}

/// The asset tag in a simulated BMC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssetTag(Vec<u8>);

impl AssetTag {
    /// The tag as text; invalid UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// Writes the tag by another way than DCMI, as Redfish does. A longer text is cut.
    pub fn set(&mut self, text: &str) {
        self.0 = text.bytes().take(ASSET_TAG_MAX).collect();
    }

    /// Answers a command of [`GROUP_EXTENSION`] with completion code and data.
    pub fn answer(&mut self, command: u8, data: &[u8]) -> (u8, Vec<u8>) {
        let done = match (command, data) {
            (GET_ASSET_TAG, [DCMI, at, count]) => self.read((*at).into(), (*count).into()),
            (SET_ASSET_TAG, [DCMI, at, count, bytes @ ..]) => {
                self.write((*at).into(), (*count).into(), bytes)
            }
            (GET_ASSET_TAG | SET_ASSET_TAG, _) => Err(INVALID_DATA),
            _ => Err(INVALID_COMMAND),
        };
        match done {
            Ok(bytes) => {
                let total = u8::try_from(self.0.len()).unwrap_or(u8::MAX);
                (DONE, [&[DCMI, total], &bytes[..]].concat())
            }
            Err(completion) => (completion, Vec::new()),
        }
    }

    fn read(&self, at: usize, count: usize) -> Result<Vec<u8>, u8> {
        let is_piece = count <= PIECE;
        let piece = is_piece.then(|| self.0.get(at..at + count)).flatten();
        piece.map(<[u8]>::to_vec).ok_or(OUT_OF_RANGE)
    }

    fn write(&mut self, at: usize, count: usize, bytes: &[u8]) -> Result<Vec<u8>, u8> {
        if count > PIECE || at > self.0.len() || at + count > ASSET_TAG_MAX {
            return Err(OUT_OF_RANGE);
        }
        if bytes.len() != count {
            return Err(INVALID_DATA);
        }
        self.0.truncate(at);
        self.0.extend(bytes);
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(tag: &mut AssetTag, text: &str) {
        for request in writes(text.as_bytes()) {
            assert_eq!(tag.answer(SET_ASSET_TAG, &request).0, DONE, "{request:?}");
        }
    }

    #[test]
    fn pieces_are_sixteen_bytes_and_the_last_one_ends_the_tag() {
        let requests: Vec<_> = writes(b"mm-abcdefghijklmnopqrstuvwxyz").collect();
        assert_eq!(requests[0][..4], [0xdc, 0, 16, b'm']);
        assert_eq!(requests[1][..4], [0xdc, 16, 13, b'n']);
        assert_eq!(requests.len(), 2);
        let mut tag = AssetTag::default();
        written(&mut tag, &"x".repeat(ASSET_TAG_MAX));
        written(&mut tag, "mm-abcdefghijklmnopqrstuvwxyz");
        assert_eq!(tag.text(), "mm-abcdefghijklmnopqrstuvwxyz");
        let (done, data) = tag.answer(GET_ASSET_TAG, &[DCMI, 16, 13]);
        let piece = Piece::decode(&data).unwrap();
        assert_eq!((done, piece.total, piece.bytes), (DONE, 29, &data[2..]));
        assert_eq!(piece.bytes, b"nopqrstuvwxyz");
        written(&mut tag, "");
        assert_eq!(tag.text(), "", "an empty tag is written too");
    }

    #[test]
    fn what_a_bmc_refuses() {
        let mut tag = AssetTag::default();
        written(&mut tag, "abc");
        for (command, data, completion) in [
            (GET_ASSET_TAG, &[DCMI, 0, 4][..], OUT_OF_RANGE),
            (GET_ASSET_TAG, &[DCMI, 0, 17], OUT_OF_RANGE),
            (GET_ASSET_TAG, &[0, 0, 1], INVALID_DATA),
            (GET_ASSET_TAG, &[], INVALID_DATA),
            (SET_ASSET_TAG, &[DCMI, 4, 1, 0], OUT_OF_RANGE),
            (SET_ASSET_TAG, &[DCMI, 0, 2, 0], INVALID_DATA),
            (0x01, &[DCMI], INVALID_COMMAND),
        ] {
            let (got, answer) = tag.answer(command, data);
            assert_eq!((got, answer), (completion, vec![]), "{command} {data:?}");
        }
        assert_eq!(tag.text(), "abc");
    }

    #[test]
    fn answers_that_are_none() {
        for data in [&[][..], &[DCMI], &[0x00, 1, 2], &[DCMI, 64], &[DCMI; 20]] {
            assert_eq!(Piece::decode(data), None, "{data:?}");
        }
    }
}
