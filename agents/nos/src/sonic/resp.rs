//! Redis' protocol (RESP2), as far as the back-end needs it, with a limit on everything.

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Longest value, bytes. SONiC's own rows are shorter than 4 KiB.
const VALUE_MAX: usize = 64 * 1024;
/// Most elements of one array.
const ELEMENTS_MAX: usize = 16 * 1024;
/// Most bytes of one answer. The answers to one round of commands are read one by one.
const ANSWER_MAX: usize = 4 << 20;
/// Longest line of a status, a number or a length, bytes.
const LINE_MAX: u64 = 1024;
/// Deepest nesting of arrays: the answer to `SCAN` or `EXEC` has two levels.
const DEPTH_MAX: usize = 4;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// No value.
    Nil,
    /// A number.
    Number(i64),
    /// A status or a value.
    Text(String),
    /// Several answers.
    Many(Vec<Answer>),
    /// Redis refuses a command, in its own words.
    Refused(String),
}

impl Answer {
    /// The text. `None` if the answer is none.
    pub(super) fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The texts of an array. `None` if the answer is none of texts.
    pub(super) fn texts(self) -> Option<Vec<String>> {
        match self {
            Self::Many(all) => all.into_iter().map(Self::text).collect(),
            _ => None,
        }
    }
}

/// A command as redis reads it.
pub(super) fn encode(words: &[&str], out: &mut Vec<u8>) {
    out.extend(format!("*{}\r\n", words.len()).into_bytes());
    for word in words {
        out.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
}

/// Reads one answer.
///
/// # Errors
/// [`std::io::ErrorKind::InvalidData`] if it is not redis' protocol, or larger than a limit.
pub(super) async fn read(
    source: &mut (impl AsyncBufRead + Unpin + Send),
) -> std::io::Result<Answer> {
    let mut budget = ANSWER_MAX;
    read_one(source, &mut budget, DEPTH_MAX).await
}

/// `true` if some bytes begin with an answer of redis within the limits.
#[must_use]
pub fn is_answer(mut bytes: &[u8]) -> bool {
    let read = read(&mut bytes).now_or_never();
    read.is_some_and(|answer| answer.is_ok())
}

fn read_one<'a, S: AsyncBufRead + Unpin + Send>(
    source: &'a mut S,
    budget: &'a mut usize,
    depth: usize,
) -> BoxFuture<'a, std::io::Result<Answer>> {
    async move {
        let line = read_line(source, budget).await?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(invalid)?;
        match kind {
            "+" => Ok(Answer::Text(rest.to_owned())),
            "-" => Ok(Answer::Refused(rest.to_owned())),
            ":" => rest.parse().map(Answer::Number).map_err(|_| invalid()),
            "$" | "*" if rest == "-1" => Ok(Answer::Nil),
            "$" => read_value(source, budget, limited(rest, VALUE_MAX)?).await,
            "*" if depth > 0 => {
                let mut all = Vec::new();
                for _ in 0..limited(rest, ELEMENTS_MAX)? {
                    all.push(read_one(source, budget, depth - 1).await?);
                }
                Ok(Answer::Many(all))
            }
            _ => Err(invalid()),
        }
    }
    .boxed()
}

async fn read_value<S: AsyncBufRead + Unpin + Send>(
    source: &mut S,
    budget: &mut usize,
    length: usize,
) -> std::io::Result<Answer> {
    spend(budget, length)?;
    let mut bytes = vec![0; length + 2];
    source.read_exact(&mut bytes).await?;
    if !bytes.ends_with(b"\r\n") {
        return Err(invalid());
    }
    bytes.truncate(length);
    // Operators write descriptions in any encoding.
    Ok(Answer::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

async fn read_line<S: AsyncBufRead + Unpin + Send>(
    source: &mut S,
    budget: &mut usize,
) -> std::io::Result<String> {
    let mut line = Vec::new();
    source.take(LINE_MAX).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    spend(budget, line.len())?;
    let line = line.strip_suffix(b"\r\n").ok_or_else(invalid)?;
    String::from_utf8(line.to_vec()).map_err(|_| invalid())
}

fn limited(number: &str, max: usize) -> std::io::Result<usize> {
    let number: usize = number.parse().map_err(|_| invalid())?;
    (number <= max).then_some(number).ok_or_else(invalid)
}

fn spend(budget: &mut usize, bytes: usize) -> std::io::Result<()> {
    *budget = budget.checked_sub(bytes).ok_or_else(invalid)?;
    Ok(())
}

fn invalid() -> std::io::Error {
    std::io::Error::new(
        std::io::ErrorKind::InvalidData,
        "not redis' protocol, or more than the limit",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn decode(bytes: &[u8]) -> Option<Answer> {
        read(&mut tokio::io::BufReader::new(bytes)).await.ok()
    }

    #[tokio::test]
    async fn answers_are_read() {
        let text = |text: &str| Answer::Text(text.to_owned());
        let cases: [(&[u8], Option<Answer>); 10] = [
            (b"+OK\r\n", Some(text("OK"))),
            (b"-ERR no\r\n", Some(Answer::Refused("ERR no".into()))),
            (b":-7\r\n", Some(Answer::Number(-7))),
            (b"$-1\r\n", Some(Answer::Nil)),
            (b"$4\r\na\r\nb\r\n", Some(text("a\r\nb"))),
            (
                b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n",
                Some(Answer::Many(vec![text("0"), Answer::Many(vec![text("k")])])),
            ),
            (b"$3\r\nab", None),
            (b"$99999999\r\n", None),
            (b"*99999999\r\n", None),
            (b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*0\r\n", None),
        ];
        for (bytes, wanted) in cases {
            assert_eq!(decode(bytes).await, wanted, "{bytes:?}");
        }
    }

    #[test]
    fn commands_are_written_with_lengths() {
        let mut out = Vec::new();
        encode(&["HSET", "a|b", ""], &mut out);
        assert_eq!(out, b"*3\r\n$4\r\nHSET\r\n$3\r\na|b\r\n$0\r\n\r\n");
    }
}
