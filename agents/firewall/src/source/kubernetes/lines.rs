use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::KubernetesError;
use super::client::unreachable;

/// Longest line of a watch, bytes: one event. Objects of Kubernetes have at most some 3 MiB.
const LINE_LEN_MAX: usize = 4 * 1024 * 1024;
/// Longest silence of a watch: the server ends it before.
const SILENCE_MAX: Duration = Duration::from_secs(330);

/// The lines of a watch.
#[derive(Debug)]
pub struct WatchLines {
    body: Incoming,
    buffer: LineBuffer,
}

impl WatchLines {
    pub(super) fn new(body: Incoming) -> Self {
        Self {
            body,
            buffer: LineBuffer::default(),
        }
    }

    /// The next line. `None` if the server has ended the watch. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The connection broke off, or a line is too long.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, KubernetesError> {
        loop {
            if let Some(line) = self.buffer.take() {
                return Ok(Some(line));
            }
            let frame = timeout(SILENCE_MAX, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| KubernetesError::Timeout)? else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| unreachable(&error))?;
            if let Some(data) = frame.data_ref() {
                self.buffer.push(data)?;
            }
        }
    }
}

/// Bytes that are split into lines.
#[derive(Debug, Default)]
struct LineBuffer {
    bytes: Vec<u8>,
    /// Bytes from the beginning that have no end of a line.
    searched: usize,
}

impl LineBuffer {
    fn push(&mut self, data: &[u8]) -> Result<(), KubernetesError> {
        if self.bytes.len() + data.len() > LINE_LEN_MAX {
            return Err(KubernetesError::TooLarge {
                what: "an event".to_owned(),
                limit: format!("{LINE_LEN_MAX} bytes"),
            });
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let rest = self.bytes.get(self.searched..)?;
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return None;
        };
        let after = self.bytes.split_off(self.searched + end + 1);
        self.searched = 0;
        Some(std::mem::replace(&mut self.bytes, after))
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_LEN_MAX, LineBuffer};

    #[test]
    fn bytes_become_lines_and_are_bounded() {
        let mut buffer = LineBuffer::default();
        let mut lines = Vec::new();
        for part in ["a", "b\nc", "", "\n\nd"] {
            buffer.push(part.as_bytes()).unwrap();
            while let Some(line) = buffer.take() {
                lines.push(String::from_utf8(line).unwrap());
            }
        }
        assert_eq!(lines, ["ab\n", "c\n", "\n"]);
        assert_eq!(buffer.bytes, b"d");
        assert!(buffer.push(&vec![b'x'; LINE_LEN_MAX]).is_err());
    }
}
