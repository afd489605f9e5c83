//! The build of a program, as `--version` shows it.

use std::fmt;

/// Version, commit, feature level and date of a build. [`build_info!`](crate::build_info) makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildInfo {
    version: &'static str,
    commit: Option<&'static str>,
    date: Option<&'static str>,
    feature_level: u32,
}

/// The build of the program that this is expanded in. `./dev package` sets the variables; other builds
/// have neither commit nor date. Only the crates that expand it are built anew after a commit, so expand
/// it in the `main.rs` of a program.
#[macro_export]
macro_rules! build_info {
    () => {
        $crate::BuildInfo::new(
            env!("CARGO_PKG_VERSION"),
            option_env!("METALMESH_GIT_SHA1"),
            option_env!("METALMESH_BUILD_DATE"),
        )
    };
}

impl BuildInfo {
    /// A build of the feature level of this release.
    #[must_use]
    pub const fn new(
        version: &'static str,
        commit: Option<&'static str>,
        date: Option<&'static str>,
    ) -> Self {
        Self {
            version,
            commit,
            date,
            feature_level: proto_types::FEATURE_LEVEL,
        }
    }

    /// The same build of another feature level.
    #[must_use]
    pub const fn with_feature_level(mut self, feature_level: u32) -> Self {
        self.feature_level = feature_level;
        self
    }

    /// The version of the workspace, such as `0.1.0`.
    #[must_use]
    pub const fn version(self) -> &'static str {
        self.version
    }

    /// The commit. `None` means a development build.
    #[must_use]
    pub fn commit(self) -> Option<&'static str> {
        self.commit.filter(|text| !text.is_empty())
    }

    /// The highest feature level that the program knows.
    #[must_use]
    pub const fn feature_level(self) -> u32 {
        self.feature_level
    }

    /// The kind of build: date and architecture, or that it is one of development.
    #[must_use]
    pub fn build(self) -> String {
        let machine = std::env::consts::ARCH;
        match self.date.filter(|text| !text.is_empty()) {
            Some(date) => format!("{date} {machine}"),
            None => format!("development {machine}"),
        }
    }
}

impl fmt::Display for BuildInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.version)?;
        writeln!(f, "commit: {}", self.commit().unwrap_or("unknown"))?;
        writeln!(f, "feature level: {}", self.feature_level)?;
        write!(f, "build: {}", self.build())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_the_level_and_the_build_are_shown() {
        let machine = std::env::consts::ARCH;
        let released = BuildInfo::new("1.2.3", Some("abc"), Some("2026-01-02T03:04:05Z"));
        assert_eq!(
            released.with_feature_level(7).to_string(),
            format!("1.2.3\ncommit: abc\nfeature level: 7\nbuild: 2026-01-02T03:04:05Z {machine}")
        );
        let level = proto_types::FEATURE_LEVEL;
        // A packager may set the variables to nothing.
        for development in [
            BuildInfo::new("1.2.3", None, None),
            BuildInfo::new("1.2.3", Some(""), Some("")),
        ] {
            let text = development.to_string();
            let expected = format!("commit: unknown\nfeature level: {level}\nbuild: development");
            assert!(text.contains(&expected), "{text}");
        }
    }
}
