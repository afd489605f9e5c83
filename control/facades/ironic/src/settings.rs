//! Settings of the facade.

use control_oslo::OsloPolicy;
use proto_types::ProjectId;
use url::Url;

/// Settings of the facade.
#[derive(Debug)]
pub struct IronicSettings {
    /// Address by which clients reach the facade, for links and the catalogue. `None` means the one
    /// that each request names in its head.
    pub url: Option<Url>,
    /// `true` if the listener speaks HTTPS, for links without an address of their own.
    pub is_tls: bool,
    /// The policy.
    pub policy: OsloPolicy,
    /// The project whose services have rights of the site, by its id: names are unique in a tenant only.
    /// `None` means that no project's have.
    pub service_project: Option<ProjectId>,
}
