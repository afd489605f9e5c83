/// Codes of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// The query is not understood.
    Format = 1,
    /// No server answered.
    Server = 2,
    /// Queries of this kind are not answered.
    NotImplemented = 4,
    /// The client has used up its budget.
    Refused = 5,
}
