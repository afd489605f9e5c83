use std::ffi::CStr;

use crate::updating_program::{ReleaseFields, UpdatingProgram};

/// Names of the fields of control that name a release.
const FIELDS: ReleaseFields = ReleaseFields {
    version: "release.version",
    url: "release.url",
    digest: "release.head_digest",
};

/// The program of an agent that follows control.
#[derive(Clone, Copy, Debug)]
pub struct MeshProgram {
    /// Its name, which is that of its binary and of its releases.
    pub name: &'static str,
    /// The same, as the first argument of a program.
    pub argument: &'static CStr,
    /// The reason of a trial that ends without a confirmation.
    pub unhealthy: &'static str,
    /// Checks the text of a configuration file.
    ///
    /// # Errors
    /// The field and the problem.
    pub check: fn(&str) -> Result<(), String>,
}

impl MeshProgram {
    /// The program, as its releases and control name it.
    pub(super) fn updating(&self) -> UpdatingProgram {
        UpdatingProgram {
            name: self.name,
            fields: FIELDS,
            unhealthy: self.unhealthy,
        }
    }

    /// Arguments by which a new program checks the configuration at its standard input.
    pub(super) fn check_arguments(&self) -> [&'static CStr; 4] {
        [self.argument, c"check", c"--json", c"/dev/stdin"]
    }
}
