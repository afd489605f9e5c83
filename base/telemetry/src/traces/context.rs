//! W3C trace context, version 00.

use std::fmt;
use std::str::FromStr;

use rand::Rng as _;

/// Length of a `traceparent` of version 00, characters.
pub const TRACEPARENT_LEN: usize = 55;

/// A trace and the current span in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// Id of the trace; never all zeroes, which W3C reserves as invalid.
    pub trace: [u8; 16],
    /// Id of the span; never all zeroes.
    pub span: [u8; 8],
    /// `true` if spans of the trace are recorded.
    pub is_sampled: bool,
}

/// The text is not a `traceparent` of version 00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent of version 00")]
pub struct NotTraceparent;

impl TraceContext {
    /// The root span of a new trace, sampled.
    pub fn root() -> Self {
        let mut trace = [0; 16];
        rand::rng().fill(&mut trace);
        // An id of all zeroes is invalid: collectors drop such spans.
        trace[0] |= 1;
        Self {
            trace,
            span: span_id(),
            is_sampled: true,
        }
    }

    /// A child span with a random id.
    #[must_use]
    pub fn child(self) -> Self {
        self.with_span(span_id())
    }

    /// The same trace with another span.
    #[must_use]
    pub fn with_span(self, span: [u8; 8]) -> Self {
        Self { span, ..self }
    }

    /// The id of the span of a UUID, such as an order's: its last 8 bytes, so that every node derives
    /// the same id. `None` if the text does not end in 16 hex digits, or they are all zero.
    pub fn span_of(uuid: &str) -> Option<[u8; 8]> {
        let digits: String = uuid.chars().filter(|c| *c != '-').collect();
        let last = digits.get(digits.len().checked_sub(16)?..)?;
        bytes(last).ok().filter(|span| *span != [0; 8])
    }
}

fn span_id() -> [u8; 8] {
    let mut span = [0; 8];
    rand::rng().fill(&mut span);
    span[0] |= 1;
    span
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.is_sampled))
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TraceContext {
    type Err = NotTraceparent;

    fn from_str(text: &str) -> Result<Self, NotTraceparent> {
        if text.len() != TRACEPARENT_LEN {
            return Err(NotTraceparent);
        }
        let parts: Vec<&str> = text.split('-').collect();
        let ["00", trace, span, flags] = parts[..] else {
            return Err(NotTraceparent);
        };
        let context = Self {
            trace: bytes(trace)?,
            span: bytes(span)?,
            is_sampled: bytes::<1>(flags)?[0] & 1 == 1,
        };
        if context.trace == [0; 16] || context.span == [0; 8] {
            return Err(NotTraceparent);
        }
        Ok(context)
    }
}

/// Decodes `N` bytes of lower-case hex.
fn bytes<const N: usize>(text: &str) -> Result<[u8; N], NotTraceparent> {
    let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return Err(NotTraceparent);
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| NotTraceparent)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| NotTraceparent)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context: TraceContext = text.parse().unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), text);
        let root = TraceContext::root();
        assert_eq!(root.to_string().parse(), Ok(root));
        assert_eq!(root.child().trace, root.trace);
        assert_ne!(root.child().span, root.span);
        let span = TraceContext::span_of("0192f3a4-0000-7000-8000-00000000abcd");
        assert_eq!(span, Some([0x80, 0, 0, 0, 0, 0, 0xab, 0xcd]));
        assert_eq!(TraceContext::span_of("short"), None);
    }

    #[test]
    fn what_is_not_well_formed_is_not_taken() {
        for text in [
            "",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319cb7ad6b7169203331-01-xxxxx",
        ] {
            assert_eq!(text.parse::<TraceContext>(), Err(NotTraceparent), "{text}");
        }
    }
}
