//! Helpers of tests that run inside the guest of `./dev fabric`.
//!
//! The guest is a machine of their own: a test may name namespaces and devices as it likes, and
//! what it leaves behind ends with the guest.

/// `true` inside the guest. Elsewhere a test prints `SKIPPED` and its reason, and passes.
#[must_use]
pub fn is_guest() -> bool {
    std::env::var_os("METALMESH_FABRIC").is_some()
}
