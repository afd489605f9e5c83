//! The devices of a layout by name, and those that are in use.

use std::collections::{BTreeMap, BTreeSet};

use super::LayoutError;

/// The devices that earlier stages make, and their use.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Device path by name.
    devices: BTreeMap<String, String>,
    /// Paths with an array's member, a physical volume or a file system.
    taken: BTreeSet<String>,
}

impl Names {
    /// Adds a further name of a device.
    pub(super) fn alias(&mut self, name: String, device: &str) {
        self.devices.insert(name, device.to_string());
    }

    /// Adds a device that this layout makes, under its path.
    pub(super) fn add(&mut self, device: &str) -> Result<(), LayoutError> {
        let path = device.to_string();
        match self.devices.insert(path.clone(), path) {
            None => Ok(()),
            Some(path) => Err(LayoutError::UsedTwice(path)),
        }
    }

    /// The path of a device.
    pub(super) fn path(&self, name: &str) -> Result<String, LayoutError> {
        let path = self.devices.get(name).cloned();
        path.ok_or_else(|| LayoutError::Device(name.to_string()))
    }

    /// The path of a device, which is marked as used. Each device can be used once.
    pub(super) fn take(&mut self, name: &str) -> Result<String, LayoutError> {
        let path = self.path(name)?;
        if !self.taken.insert(path.clone()) {
            return Err(LayoutError::UsedTwice(path));
        }
        Ok(path)
    }

    /// Like `take`, for several devices.
    pub(super) fn take_all(&mut self, names: &[String]) -> Result<Vec<String>, LayoutError> {
        names.iter().map(|name| self.take(name)).collect()
    }
}
