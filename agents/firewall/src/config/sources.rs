use std::path::PathBuf;

use proto_firewall::parts::is_name;
use serde::{Deserialize, Deserializer, de};

use super::source_name::SourceName;
use super::static_source::StaticSource;

/// Longest name of a namespace, bytes: the limit of Kubernetes.
const NAMESPACE_LEN_MAX: usize = 63;

/// A cluster of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KubernetesSource {
    /// File with the credential.
    pub kubeconfig: PathBuf,
    /// Namespace of the objects.
    #[serde(deserialize_with = "namespace")]
    pub namespace: String,
}

/// Control of this site. The agent's mesh identity says which firewall of which project it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetalSource {
    /// Project that the identity must be of. `None` takes the identity's.
    #[serde(default, rename = "projectID")]
    pub project_id: Option<String>,
    /// Directory with the identity of the installed system. `None` means that of the installer.
    #[serde(default, rename = "identityDir")]
    pub identity_dir: Option<PathBuf>,
    #[serde(default, rename = "url", deserialize_with = "refuse_url")]
    _url: (),
    #[serde(default, rename = "hmac", deserialize_with = "refuse_hmac")]
    _hmac: (),
    #[serde(default, rename = "type", deserialize_with = "refuse_type")]
    _type: (),
}

/// Sources that controllers may use.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourcesConfig {
    /// The Kubernetes cluster with the `Firewall`.
    #[serde(default)]
    pub seed: Option<KubernetesSource>,
    /// The tenant's Kubernetes cluster.
    #[serde(default)]
    pub shoot: Option<KubernetesSource>,
    /// Control of this site.
    #[serde(default)]
    pub metal: Option<MetalSource>,
    /// Rules in the file itself.
    #[serde(default, rename = "static")]
    pub static_: Option<StaticSource>,
}

impl SourcesConfig {
    /// `true` if the source is declared.
    pub(super) fn has(&self, source: SourceName) -> bool {
        match source {
            SourceName::Seed => self.seed.is_some(),
            SourceName::Shoot => self.shoot.is_some(),
            SourceName::Metal => self.metal.is_some(),
            SourceName::Static => self.static_.is_some(),
        }
    }
}

/// It becomes a part of a path.
fn namespace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_name(&text, NAMESPACE_LEN_MAX) {
        return Ok(text);
    }
    Err(de::Error::custom(
        "namespace: it is no name of a namespace; use at most 63 small letters, digits and `-`",
    ))
}

fn refuse_url<'de, D: Deserializer<'de>>(_: D) -> Result<(), D::Error> {
    Err(de::Error::custom(
        "url: control's address is not configured here, because it came with the firewall's join \
         ticket; remove `url`, and join the agent to control",
    ))
}

fn refuse_hmac<'de, D: Deserializer<'de>>(_: D) -> Result<(), D::Error> {
    Err(de::Error::custom(
        "hmac: a shared secret would let one firewall read every project, so the firewall's mesh \
         identity replaces it; remove `hmac`, and join the agent to control",
    ))
}

fn refuse_type<'de, D: Deserializer<'de>>(_: D) -> Result<(), D::Error> {
    Err(de::Error::custom(
        "type: the kind of a shared secret has no meaning for the firewall's mesh identity; remove \
         `type`, and join the agent to control",
    ))
}
