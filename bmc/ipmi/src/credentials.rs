//! User name and password of a BMC.

use std::fmt;

use crate::IpmiError;

/// Longest user name, bytes (specification, 22.29). A longer one is refused.
pub(crate) const USER_BYTES_MAX: usize = 16;
/// Longest password of IPMI 2.0, bytes (specification, 22.30). A longer one is refused.
const PASSWORD_BYTES_MAX: usize = 20;

/// User name and password of a BMC. `Debug` shows the name only.
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: Vec<u8>,
}

impl Credentials {
    /// Checks the lengths and takes both.
    ///
    /// # Errors
    /// [`IpmiError::TooLong`] if the name has more than 16 bytes or the password more than 20.
    pub fn new(user: &str, password: &str) -> Result<Self, IpmiError> {
        if user.len() > USER_BYTES_MAX {
            return Err(IpmiError::TooLong {
                field: "user name",
                max: USER_BYTES_MAX,
            });
        }
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(IpmiError::TooLong {
                field: "password",
                max: PASSWORD_BYTES_MAX,
            });
        }
        Ok(Self {
            user: user.to_owned(),
            password: password.as_bytes().to_vec(),
        })
    }

    pub(crate) fn user(&self) -> &[u8] {
        self.user.as_bytes()
    }

    pub(crate) fn password(&self) -> &[u8] {
        &self.password
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("password", &"<redacted>")
            .finish()
    }
}
