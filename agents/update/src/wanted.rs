use proto_firewall::printable;
use proto_release::ReleaseVersion;
use proto_types::{Digest, DigestAlgorithm};

use super::release_id::ReleaseId;
use super::updating_program::ReleaseFields;

/// Longest URL, bytes.
const URL_LEN_MAX: usize = 2048;

/// The release that a source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRelease {
    /// Its version.
    pub version: ReleaseVersion,
    /// Its place, not checked yet.
    pub url: String,
    /// SHA-256 of its signed head. `None` takes any release of that version that a trusted key has
    /// signed.
    pub head_digest: Option<Digest>,
}

impl WantedRelease {
    /// The release of the texts in these fields. `None` if the source names no version.
    ///
    /// # Errors
    /// The field, the problem and a remedy.
    pub fn parse(
        fields: &ReleaseFields,
        version: Option<&str>,
        url: Option<&str>,
        digest: Option<&str>,
    ) -> Result<Option<Self>, String> {
        let Some(text) = version.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let version = text.parse().map_err(|_| {
            let shown = printable(text);
            let field = fields.version;
            format!("{field}: {shown:?} is no version like 1.2.3; correct it")
        })?;
        let url = url.unwrap_or_default();
        if url.is_empty() {
            return Err(format!(
                "{}: it is missing; name the release of this version",
                fields.url
            ));
        }
        if url.len() > URL_LEN_MAX {
            let problem = format!("it has more than {URL_LEN_MAX} bytes");
            return Err(format!("{}: {problem}; use a shorter one", fields.url));
        }
        Ok(Some(Self {
            version,
            url: url.to_owned(),
            head_digest: digest
                .map(|text| head_digest(fields.digest, text))
                .transpose()?,
        }))
    }

    /// The release, wherever it is.
    #[must_use]
    pub fn release(&self) -> ReleaseId {
        ReleaseId {
            version: self.version.clone(),
            head_digest: self.head_digest.clone(),
        }
    }
}

fn head_digest(field: &str, text: &str) -> Result<Digest, String> {
    let digest: Option<Digest> = text.parse().ok();
    let is_sha256 = |digest: &Digest| digest.algorithm() == DigestAlgorithm::Sha256;
    digest.filter(is_sha256).ok_or_else(|| {
        format!("{field}: it is no SHA-256; write sha256: and 64 hexadecimal digits")
    })
}

#[cfg(test)]
mod tests {
    use super::{ReleaseFields, WantedRelease};

    const URL: &str = "https://example.com/release";
    const FIELDS: ReleaseFields = ReleaseFields {
        version: "version",
        url: "url",
        digest: "digest",
    };

    #[test]
    fn a_digest_is_a_sha256() {
        let hex = "ab".repeat(32);
        let parse =
            |digest: &str| WantedRelease::parse(&FIELDS, Some("1.3.0"), Some(URL), Some(digest));
        let wanted = parse(format!("sha256:{hex}").as_str()).unwrap().unwrap();
        assert_eq!(wanted.head_digest.unwrap().hex(), hex);
        let longer = format!("sha512:{hex}{hex}");
        for wrong in ["", "sha256:ab", longer.as_str()] {
            let problem = parse(wrong).unwrap_err();
            assert!(problem.starts_with("digest: "), "{problem}");
        }
    }
}
