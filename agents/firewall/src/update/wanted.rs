use proto_firewall::printable;
use proto_release::ReleaseVersion;

/// Longest URL, bytes.
const URL_LEN_MAX: usize = 2048;

/// The release that a source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRelease {
    /// Its version.
    pub version: ReleaseVersion,
    /// Its place, not checked yet.
    pub url: String,
}

impl WantedRelease {
    /// The release of `controllerVersion` and `controllerURL`. `None` if the source names no version.
    ///
    /// # Errors
    /// The field, the problem and a remedy.
    pub fn parse(version: Option<&str>, url: Option<&str>) -> Result<Option<Self>, String> {
        let Some(text) = version.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let version = text.parse().map_err(|_| {
            let shown = printable(text);
            format!("controllerVersion: {shown:?} is no version like 1.2.3; correct it")
        })?;
        let url = url.unwrap_or_default();
        if url.is_empty() {
            return Err(
                "controllerURL: it is missing; name the release of this version".to_owned(),
            );
        }
        if url.len() > URL_LEN_MAX {
            let problem = format!("it has more than {URL_LEN_MAX} bytes");
            return Err(format!("controllerURL: {problem}; use a shorter one"));
        }
        Ok(Some(Self {
            version,
            url: url.to_owned(),
        }))
    }
}
