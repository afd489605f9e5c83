use proto_release::ReleaseVersion;
use proto_types::Digest;

/// A release. Two of one version differ by their signed heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseId {
    /// Its version.
    pub version: ReleaseVersion,
    /// SHA-256 of its signed head. `None` if it is not known, or if the source does not name it.
    pub head_digest: Option<Digest>,
}

impl ReleaseId {
    /// `true` if this release is the wanted one. One whose head is not known is not the one that is
    /// named by its head.
    #[must_use]
    pub fn satisfies(&self, wanted: &Self) -> bool {
        let is_named = wanted.head_digest.is_some();
        self.version == wanted.version && (!is_named || self.head_digest == wanted.head_digest)
    }

    /// `true` unless both are known to be two releases.
    #[must_use]
    pub fn may_be(&self, other: &Self) -> bool {
        let are_known = self.head_digest.is_some() && other.head_digest.is_some();
        self.version == other.version && (!are_known || self.head_digest == other.head_digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(version: &str, digest: Option<u8>) -> ReleaseId {
        ReleaseId {
            version: version.parse().unwrap(),
            head_digest: digest.map(|byte| Digest::sha256([byte; 32])),
        }
    }

    #[test]
    fn a_release_is_its_version_and_its_head() {
        for (own, other, satisfies, may_be) in [
            (("1.0.0", None), ("1.0.0", None), true, true),
            (("1.0.0", Some(1)), ("1.0.0", None), true, true),
            (("1.0.0", None), ("1.0.0", Some(1)), false, true),
            (("1.0.0", Some(1)), ("1.0.0", Some(1)), true, true),
            (("1.0.0", Some(1)), ("1.0.0", Some(2)), false, false),
            (("1.0.0", Some(1)), ("1.1.0", Some(1)), false, false),
            (("1.0.0", None), ("1.1.0", None), false, false),
        ] {
            let (found, wanted) = (release(own.0, own.1), release(other.0, other.1));
            assert_eq!(found.satisfies(&wanted), satisfies, "{own:?} {other:?}");
            assert_eq!(found.may_be(&wanted), may_be, "{own:?} {other:?}");
        }
    }
}
