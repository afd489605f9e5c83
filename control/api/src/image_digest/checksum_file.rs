//! Checksum files as image stores publish them beside an image: `image.tar.zst.sha256`.
//!
//! Formats: the bare digest in hex; `hex  name` and `hex *name` of coreutils; `SHA256 (name) = hex`
//! of BSD. A line that names a file counts only if it names the image; a bare digest counts only
//! where it is all that the file says.

/// Largest checksum file that is read, bytes.
pub(super) const FILE_BYTES_MAX: usize = 64 << 10;

/// The algorithm of a checksum file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checksum {
    Md5,
    Sha256,
    Sha512,
}

impl Checksum {
    /// Extension of the checksum file: it is appended to the image's URL after a dot.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// The name in a line of BSD.
    const fn tag(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA256",
            Self::Sha512 => "SHA512",
        }
    }

    /// Length of a digest, bytes.
    pub(super) const fn size(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

/// One line of a checksum file.
struct ChecksumLine<'a> {
    digest: Vec<u8>,
    /// `None` means that the line has nothing but the digest.
    name: Option<&'a str>,
}

/// The digest that a checksum file has for the file `name`. `None` means that it has none, or two
/// different ones.
pub(super) fn digest_of(content: &[u8], checksum: Checksum, name: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(content).ok()?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<Option<ChecksumLine<'_>>> =
        lines.map(|line| parse_line(line, checksum)).collect();
    if let [Some(ChecksumLine { digest, name: None })] = lines.as_slice() {
        return Some(digest.clone());
    }
    let mut named = lines
        .into_iter()
        .flatten()
        .filter(|line| line.name.is_some_and(|path| file_name(path) == name));
    let first = named.next()?.digest;
    named.all(|line| line.digest == first).then_some(first)
}

fn parse_line(line: &str, checksum: Checksum) -> Option<ChecksumLine<'_>> {
    let of_bsd = line.strip_prefix(checksum.tag());
    if let Some(rest) = of_bsd.and_then(|rest| rest.trim_start().strip_prefix('(')) {
        let (name, digest) = rest.rsplit_once(") = ")?;
        return Some(ChecksumLine {
            digest: hex(digest, checksum)?,
            name: Some(name),
        });
    }
    let (digest, name) = match line.split_once([' ', '\t']) {
        None => (line, None),
        // The second separator tells text from binary mode, which is the same on Linux.
        Some((digest, rest)) => {
            let name = rest.trim_start();
            (digest, Some(name.strip_prefix('*').unwrap_or(name)))
        }
    };
    Some(ChecksumLine {
        digest: hex(digest, checksum)?,
        name,
    })
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn hex(text: &str, checksum: Checksum) -> Option<Vec<u8>> {
    if text.len() != 2 * checksum.size() {
        return None;
    }
    let digit = |byte: u8| {
        let digit = char::from(byte).to_digit(16);
        digit.and_then(|digit| u8::try_from(digit).ok())
    };
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "debian.tar.zst";

    fn found(text: &str, checksum: Checksum) -> Option<u8> {
        let digest = digest_of(text.as_bytes(), checksum, NAME)?;
        assert_eq!(digest.len(), checksum.size(), "{text}");
        digest.first().copied()
    }

    #[test]
    fn formats_of_checksum_files() {
        let (a, b) = ("ab".repeat(32), "Cd".repeat(32));
        for (text, wanted) in [
            (a.clone(), Some(0xab)),
            (format!("{b}\r\n"), Some(0xcd)),
            (format!("{a}  {NAME}\n"), Some(0xab)),
            (format!("{a} *{NAME}\n"), Some(0xab)),
            (format!("{a} {NAME}"), Some(0xab)),
            (format!("{a}\t./out/{NAME}\n"), Some(0xab)),
            (format!("SHA256 ({NAME}) = {b}\n"), Some(0xcd)),
            (format!("SHA256(/srv/{NAME}) = {b}\n"), Some(0xcd)),
            (format!("{b}  other\n\n{a}  {NAME}\n"), Some(0xab)),
            (
                format!("# images\n{a}  {NAME}\n{a}  x/{NAME}\n"),
                Some(0xab),
            ),
            // Of another file, of two minds, or of which file?
            (format!("{a}  other.tar.zst\n"), None),
            (format!("{a}  debian.tar\n"), None),
            (format!("{a}  {NAME}\n{b}  {NAME}\n"), None),
            (format!("{a}\n{b}\n"), None),
            (format!("SHA512 ({NAME}) = {a}\n"), None),
            (format!("SHA256 ({NAME}) = \n"), None),
            ("ab".repeat(31), None),
            ("zz".repeat(32), None),
            ("ä".repeat(32), None),
            ("<html>not found</html>".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(found(&text, Checksum::Sha256), wanted, "{text:?}");
        }
    }

    #[test]
    fn each_algorithm_has_its_length() {
        for (checksum, size) in [
            (Checksum::Md5, 16),
            (Checksum::Sha256, 32),
            (Checksum::Sha512, 64),
        ] {
            for length in [16, 32, 64] {
                let text = format!("{}  {NAME}", "ab".repeat(length));
                let wanted = (length == size).then_some(0xab);
                assert_eq!(found(&text, checksum), wanted, "{checksum:?} {length}");
            }
        }
    }

    #[test]
    fn what_is_not_text_has_no_digest() {
        assert_eq!(digest_of(&[0xff; 32], Checksum::Sha256, NAME), None);
    }

    #[test]
    fn fuzz_checksum_file() {
        bolero::check!().for_each(|content: &[u8]| {
            for checksum in [Checksum::Md5, Checksum::Sha256, Checksum::Sha512] {
                let Some(digest) = digest_of(content, checksum, NAME) else {
                    continue;
                };
                assert_eq!(digest.len(), checksum.size());
                let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                for written in [
                    hex.clone(),
                    format!("{hex}  {NAME}"),
                    format!("{} ({NAME}) = {hex}", checksum.tag()),
                ] {
                    let again = digest_of(written.as_bytes(), checksum, NAME);
                    assert_eq!(again.as_ref(), Some(&digest));
                }
            }
        });
    }
}
