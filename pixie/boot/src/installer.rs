//! Chooses the installer: the files of pixie's own configuration, or the pair of kernel and image
//! that the partition names by URL. One never replaces the other.

/// The source of the installer, as control wants it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum InstallerSource {
    /// No desired state has come from control yet.
    Unknown,
    /// The files that pixie's configuration names.
    #[default]
    Own,
    /// Two files that pixie fetches.
    Urls(InstallerUrls),
    /// The partition names only one of the two URLs. Nothing can be booted.
    Incomplete,
}

/// The URLs of the partition's kernel and image.
#[derive(Clone, PartialEq, Eq)]
pub struct InstallerUrls {
    pub kernel: String,
    /// The initramfs.
    pub image: String,
}

/// URLs may contain a password, so `Debug` does not show them.
impl std::fmt::Debug for InstallerUrls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InstallerUrls(<redacted>)")
    }
}

/// The decision for one machine that boots the installer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installer<'a> {
    /// The files of pixie's configuration.
    Own,
    /// The fetched pair with this key.
    Pair(&'a str),
    /// Nothing yet, for this reason. The machine asks again.
    Waits(String),
}

impl InstallerSource {
    /// The source that the desired state names. Empty means not named.
    #[must_use]
    pub fn of(kernel_url: &str, image_url: &str) -> Self {
        match (kernel_url, image_url) {
            ("", "") => Self::Own,
            ("", _) | (_, "") => Self::Incomplete,
            (kernel, image) => Self::Urls(InstallerUrls {
                kernel: kernel.into(),
                image: image.into(),
            }),
        }
    }

    /// Decides for one machine. `fetched` is the key of the pair that was fetched from exactly these
    /// URLs and is complete on disk; `error` is the reason why the last attempt to fetch it failed.
    #[must_use]
    pub fn installer<'a>(&self, fetched: Option<&'a str>, error: Option<&str>) -> Installer<'a> {
        match self {
            Self::Own => Installer::Own,
            // Not pixie's own files as a fallback: a partition with its own kernel would boot the
            // wrong installer.
            Self::Unknown => {
                Installer::Waits("control has not yet sent what this partition boots".into())
            }
            Self::Incomplete => {
                Installer::Waits("the partition names only one of kernel_url and image_url".into())
            }
            Self::Urls(_) => match (fetched, error) {
                // A pair on disk is served even if the last check of its server failed.
                (Some(key), _) => Installer::Pair(key),
                (None, None) => Installer::Waits("the installer is being fetched".into()),
                (None, Some(error)) => {
                    Installer::Waits(format!("the installer cannot be fetched: {error}"))
                }
            },
        }
    }

    /// The kernel command line: `own` is from pixie's configuration, `partition` from control. The
    /// partition's kernel gets the partition's command line only, unless that is empty. Pixie's own
    /// kernel gets both.
    #[must_use]
    pub fn commandline<'a>(&self, own: &'a str, partition: &'a str) -> [&'a str; 2] {
        match self {
            Self::Urls(_) if !partition.trim().is_empty() => [partition, ""],
            _ => [own, partition],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "https://boot.example/kernel";
    const IMAGE: &str = "https://boot.example/image";

    #[test]
    fn a_machine_never_gets_another_installer_than_the_one_that_is_wanted() {
        let named = InstallerSource::of(KERNEL, IMAGE);
        let waits = |source: &InstallerSource, error| match source.installer(None, error) {
            Installer::Waits(reason) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(named.installer(Some("k1"), None), Installer::Pair("k1"));
        assert_eq!(
            named.installer(Some("k1"), Some("404")),
            Installer::Pair("k1"),
            "the copy that is there outlives its server"
        );
        assert!(waits(&named, None).contains("being fetched"));
        assert!(waits(&named, Some("kernel: 404")).ends_with("cannot be fetched: kernel: 404"));
        for half in [("", IMAGE), (KERNEL, "")] {
            let half = InstallerSource::of(half.0, half.1);
            assert_eq!(half, InstallerSource::Incomplete);
            assert!(waits(&half, None).contains("only one"));
        }
        assert!(waits(&InstallerSource::Unknown, None).contains("not yet sent"));
        // A pair of before is not gone by when control wants pixie's own files.
        let own = InstallerSource::of("", "");
        assert_eq!(own.installer(Some("k1"), None), Installer::Own);
    }

    #[test]
    fn the_partitions_command_line_goes_with_the_partitions_kernel() {
        let (own, named) = (InstallerSource::Own, InstallerSource::of(KERNEL, IMAGE));
        assert_eq!(own.commandline("a", "b"), ["a", "b"]);
        assert_eq!(named.commandline("a", "b"), ["b", ""]);
        assert_eq!(named.commandline("a", " "), ["a", " "]);
    }

    #[test]
    fn urls_are_not_printed() {
        let named = InstallerSource::of("http://u:secret@h/k", IMAGE);
        assert!(!format!("{named:?}").contains("secret"));
    }
}
