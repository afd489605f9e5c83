use serde::{Deserialize, Serialize};
use serde_norway::Value;

use crate::config::{FirewallSpec, PolicyLists};
use crate::routes::RouteDistance;

/// The objects of a source, as a whole. Parts that no controller takes from it are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceObjects {
    /// For the controller `firewall`.
    #[serde(default)]
    pub firewall: FirewallSpec,
    /// For the controller `cwnp`.
    #[serde(default)]
    pub cwnp: PolicyLists,
    /// For the controller `service`: services.
    #[serde(default)]
    pub service: Vec<Value>,
    /// Distance of the firewall's routes. `None` if the source says nothing about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<RouteDistance>,
}

/// The objects of each controller, each from its own source.
#[derive(Clone, Copy, Debug)]
pub struct ControllerObjects<'a> {
    /// For the controller `firewall`.
    pub firewall: &'a FirewallSpec,
    /// For the controller `cwnp`. `None` if it is disabled, or its source has not answered yet.
    pub cwnp: Option<&'a PolicyLists>,
    /// For the controller `service`. Empty if it is disabled, or its source has not answered yet.
    pub service: &'a [Value],
}
