//! What the generated table says of each method.

use proto_identity::CallerKind;

/// Whether a call leaves an audit record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// Each call does.
    Always,
    /// None does.
    Never,
}

/// One method, generated from the proto options 50100 and 50101.
#[derive(Debug, PartialEq, Eq)]
pub struct MethodSpec {
    /// `/package.Service/Method`
    pub path: &'static str,
    /// Who may call it.
    pub callers: &'static [CallerKind],
    /// Whether it leaves an audit record.
    pub audit: Audit,
    /// Whether the answer is a stream.
    pub streaming: bool,
}
