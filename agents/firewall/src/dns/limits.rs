use std::time::Duration;

/// Bounds of what is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameLimits {
    /// An address stays at least this long: a client needs time to connect after an answer whose
    /// TTL is 0, and may use an answer a little longer than it should.
    pub lifetime_min: Duration,
    /// An address stays at most this long after an answer that has it, whatever its TTL. Resolvers
    /// ask again after a day, too.
    pub lifetime_max: Duration,
    /// Addresses that are taken from one answer. The rest of the answer is not learned.
    pub answer_addresses_max: usize,
    /// Addresses of one name or pattern. One more displaces the oldest of the private network that
    /// has most of them.
    pub name_addresses_max: usize,
    /// Addresses of all names together.
    pub addresses_max: usize,
}

impl Default for NameLimits {
    fn default() -> Self {
        Self {
            lifetime_min: Duration::from_secs(60),
            lifetime_max: Duration::from_secs(24 * 3600),
            answer_addresses_max: 64,
            name_addresses_max: 1024,
            addresses_max: 65_536,
        }
    }
}
