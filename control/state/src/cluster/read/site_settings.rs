//! The settings that are in force.

use crate::cluster::entity::Settings;
use crate::tables::Tables;

/// The settings of the cluster; the defaults where nobody set any.
pub fn settings(tables: &Tables) -> Settings {
    let found = tables.get::<Settings>(&Settings::CLUSTER.to_owned());
    found.map_or_else(Settings::default, |settings| Settings::clone(settings))
}
