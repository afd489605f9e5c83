//! The configuration file, section by section.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use control_duties::backup::BackupSection;
use control_duties::export::AuditSection;
use control_store::SNAPSHOT_EVERY_ENTRIES;
use control_vpn::headscale::HeadscaleSection;
use serde::Deserialize;

use super::api::ApiSection;
use super::mesh::MeshSection;
use super::peers::PeersSection;
use crate::ironic::IronicSection;
use crate::login::LoginSection;
use crate::metrics::MetricsSection;
use crate::oidc::OidcSection;
use crate::traces::TracesSection;

/// The configuration file, before any check.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ConfigFile {
    pub(super) data_dir: Option<PathBuf>,
    pub(super) cluster: Option<String>,
    pub(super) node_id: Option<u64>,
    pub(super) api: ApiSection,
    pub(super) mesh: MeshSection,
    pub(super) peers: PeersSection,
    pub(super) store: StoreSection,
    pub(super) tenancy: TenancySection,
    pub(super) login: LoginSection,
    pub(super) oidc: OidcSection,
    pub(super) ironic: IronicSection,
    pub(super) backup: BackupSection,
    pub(super) audit: AuditSection,
    pub(super) vpn: HeadscaleSection,
    pub(super) metrics: MetricsSection,
    pub(super) traces: TracesSection,
}

/// The section `[store]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StoreSection {
    pub(super) snapshot_every_entries: Option<u64>,
    pub(super) keep_entries: Option<u64>,
}

/// The section `[tenancy]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TenancySection {
    pub(super) provider: Option<String>,
}

impl ConfigFile {
    /// Checks the fields of the store. Returns the number of log entries between two snapshots.
    pub(super) fn check_store(&self) -> Result<u64> {
        let every = self.store.snapshot_every_entries;
        let every = every.unwrap_or(SNAPSHOT_EVERY_ENTRIES);
        ensure!(
            every > 0,
            "store.snapshot_every_entries: must be 1 or more; leave it out for the default"
        );
        ensure!(
            self.node_id != Some(0),
            "node_id: must be 1 or more; leave it out for the default"
        );
        ensure!(
            self.cluster.as_ref().is_none_or(|name| !name.is_empty()),
            "cluster: must not be empty; leave it out for the default"
        );
        Ok(every)
    }
}
