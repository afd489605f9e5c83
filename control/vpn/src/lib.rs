//! The VPN by which operators reach firewalls.
//!
//! [`Vpn`] is the interface to a VPN's control server, [`headscale`] implements it, and [`VpnHealth`]
//! caches the result of the last health check.
//!
//! Invariants:
//! - no error text and no `Debug` output contains an API key or the secret of a VPN key;
//! - a field of an answer that cannot be read is an error that names it; no default takes its place;
//! - removing a key ends the key before its nodes, so no node joins by it afterwards, and can be
//!   repeated;
//! - every request is bounded in time, and every answer in size.

mod error;
pub mod headscale;
mod health;
mod key;
mod node;

use std::fmt;

pub use error::{VpnError, VpnSettingsError};
pub use health::VpnHealth;
pub use key::{VpnKey, WantedVpnKey};
pub use node::VpnNode;

/// A VPN's control server.
#[tonic::async_trait]
pub trait Vpn: fmt::Debug + Send + Sync {
    /// The address by which nodes reach the VPN's control server.
    fn address(&self) -> &str;

    /// Creates a key.
    ///
    /// # Errors
    /// The control server cannot be reached or refuses.
    async fn key(&self, wanted: WantedVpnKey) -> Result<VpnKey, VpnError>;

    /// The nodes of a user. `None` means the nodes of all users.
    ///
    /// # Errors
    /// The control server cannot be reached, refuses, or gives an answer that cannot be read.
    async fn nodes(&self, user: Option<&str>) -> Result<Vec<VpnNode>, VpnError>;

    /// Expires a key and removes the nodes of its user that joined by it. A key or node that is gone
    /// already is not an error.
    ///
    /// # Errors
    /// The control server cannot be reached or refuses. The call can be repeated.
    async fn remove(&self, user: &str, key: &str) -> Result<(), VpnError>;
}
