//! Names of ports, VRFs and policies.

use std::borrow::Borrow;
use std::fmt;

use super::error::ModelError;
use crate::frr;

/// Longest name of a network device, bytes: `IFNAMSIZ` of Linux without its final zero.
const DEVICE_MAX: usize = 15;
/// Longest name of a policy, bytes: it stays readable in FRR's tables, which have no lower limit.
const POLICY_MAX: usize = 63;

/// Name of a front-panel port: 1 to 15 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortName(String);

/// Name of a VRF: 1 to 15 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VrfName(String);

/// Name of a prefix list, route map or as-path list: 1 to 63 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyName(String);

/// Checks a name. A name with white space or a line break would end a word of FRR's configuration
/// and begin another one.
fn checked(name: &str, of: &'static str, max: usize) -> Result<String, ModelError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    let is_dots = name.chars().all(|c| c == '.');
    if name.len() > max || is_dots || !name.chars().all(is_plain) {
        let name = name.to_owned();
        return Err(ModelError::Name { name, of, max });
    }
    Ok(name.to_owned())
}

impl PortName {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty, longer than 15 bytes, or has other characters than a device's.
    pub fn new(name: &str) -> Result<Self, ModelError> {
        checked(name, "a port", DEVICE_MAX).map(Self)
    }
}

impl VrfName {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty, longer than 15 bytes, or has other characters than a device's.
    pub fn new(name: &str) -> Result<Self, ModelError> {
        checked(name, "a VRF", DEVICE_MAX).map(Self)
    }

    /// `true` if a VRF of this name belongs to the agent (`Vrf27`). Others stay as they are.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        frr::VrfName::new(&self.0).is_ok()
    }
}

impl PolicyName {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty, longer than 63 bytes, or has characters that FRR could misread.
    pub fn new(name: &str) -> Result<Self, ModelError> {
        checked(name, "a policy", POLICY_MAX).map(Self)
    }

    /// `true` if a policy of this name belongs to the agent (`MM-…`). Others stay as they are.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        frr::ObjectName::new(&self.0).is_ok()
    }
}

impl Borrow<str> for PortName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for VrfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for PortName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for VrfName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for PolicyName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
