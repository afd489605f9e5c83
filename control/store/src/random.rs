//! Random ids, which a simulation draws from its seed.

use uuid::Uuid;

/// Returns a random id; in a simulation it comes from the seed.
pub(crate) fn random_id() -> Uuid {
    #[cfg(feature = "sim")]
    if let Some(number) = crate::sim::random() {
        let low = crate::sim::random().unwrap_or_default();
        return Uuid::from_u64_pair(number, low);
    }
    Uuid::new_v4()
}
