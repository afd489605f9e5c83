//! The databases of SONiC by number.

/// A database by its number (`database_config.json` of SONiC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Db {
    /// Requests of managers to the switch, keys with `:`.
    Appl = 0,
    /// Objects that the ASIC is told of.
    Asic = 1,
    /// Names of the ASIC's objects.
    Counters = 2,
    /// The desired state, keys with `|`.
    Config = 4,
    /// Results of managers, keys with `|`.
    State = 6,
}
