use std::path::PathBuf;

use serde::{Deserialize, Deserializer, de};

use super::source_name::SourceName;
use super::static_source::StaticSource;

/// A cluster of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KubernetesSource {
    /// File with the credential.
    pub kubeconfig: PathBuf,
    /// Namespace of the objects.
    pub namespace: String,
}

/// Control of this site. The agent's mesh identity says which firewall of which project it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetalSource {
    /// Project that the identity must be of. `None` takes the identity's.
    #[serde(default, rename = "projectID")]
    pub project_id: Option<String>,
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
