use crate::{ReleaseError, ReleaseManifest, ReleaseVersion};

/// The place where a release would be used.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseContext<'a> {
    /// Name of the program that runs.
    pub name: &'a str,
    /// Architecture of this host.
    pub architecture: &'a str,
    /// The wanted version.
    pub wanted: &'a ReleaseVersion,
    /// Version of the program that runs.
    pub running: &'a ReleaseVersion,
    /// Level of the mesh protocol that control has. `None` if the program does not speak with control.
    pub mesh_level: Option<u32>,
    /// Time of this host, seconds since 1970.
    pub now_s: u64,
}

/// Checks whether a release may replace the program that runs.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_release(
    manifest: &ReleaseManifest,
    context: &ReleaseContext<'_>,
) -> Result<(), ReleaseError> {
    if manifest.name != context.name {
        return Err(ReleaseError::Name {
            name: manifest.name.clone(),
            wanted: context.name.to_owned(),
        });
    }
    if manifest.architecture != context.architecture {
        return Err(ReleaseError::Architecture {
            architecture: manifest.architecture.clone(),
            own: context.architecture.to_owned(),
        });
    }
    if manifest.version != *context.wanted {
        return Err(ReleaseError::Version {
            version: manifest.version.clone(),
            wanted: context.wanted.clone(),
        });
    }
    if context.now_s < manifest.not_before_s {
        return Err(ReleaseError::NotBefore {
            not_before_s: manifest.not_before_s,
            now_s: context.now_s,
        });
    }
    if context.now_s >= manifest.expires_s {
        return Err(ReleaseError::Expired {
            expires_s: manifest.expires_s,
            now_s: context.now_s,
        });
    }
    let is_allowed = || manifest.allow_downgrade_from.contains(context.running);
    if manifest.version < *context.running && !is_allowed() {
        return Err(ReleaseError::Downgrade {
            version: manifest.version.clone(),
            running: context.running.clone(),
        });
    }
    match context.mesh_level {
        Some(own) if manifest.mesh_level > own => Err(ReleaseError::MeshLevel {
            needed: manifest.mesh_level,
            own,
        }),
        _ => Ok(()),
    }
}
