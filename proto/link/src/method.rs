//! One row of the generated method table.

use proto_identity::CallerKind;

/// The audit option of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// Each call leaves an audit record.
    Always,
    /// No call leaves an audit record.
    Never,
}

/// One method, generated from the proto options 50100 and 50101.
#[derive(Debug, PartialEq, Eq)]
pub struct MethodSpec {
    /// `/package.Service/Method`
    pub path: &'static str,
    /// Kinds of callers that may call it.
    pub callers: &'static [CallerKind],
    /// The audit option.
    pub audit: Audit,
    /// `true` if the answer is a stream.
    pub streaming: bool,
}
