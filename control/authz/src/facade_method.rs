//! The methods of facades.

/// A method of an API that is not the contract's. Each facade has a table of them.
#[derive(Debug, PartialEq, Eq)]
pub struct FacadeMethod {
    /// Name in the audit trail and in the store's table of operations, spelled like the path of a
    /// contract's method.
    pub path: &'static str,
    /// `true` if its calls are audited.
    pub audited: bool,
}
