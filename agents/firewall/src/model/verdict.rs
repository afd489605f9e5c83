/// The end of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet passes this hook's chain.
    Accept,
    /// The packet is dropped.
    Drop,
    /// The rules after the jump to this chain are next.
    Return,
    /// The rules of that chain are next.
    Jump(String),
}
