//! Links of a chassis to its power resources.

use serde_json::Value;

use crate::json::link;

/// Links of a chassis to its power resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PowerLinks {
    pub(crate) power: Option<String>,
    pub(crate) subsystem: Option<String>,
    pub(crate) environment: Option<String>,
}

impl PowerLinks {
    pub(crate) fn read(chassis: &Value) -> Self {
        Self {
            power: link(&chassis["Power"]),
            subsystem: link(&chassis["PowerSubsystem"]),
            environment: link(&chassis["EnvironmentMetrics"]),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
