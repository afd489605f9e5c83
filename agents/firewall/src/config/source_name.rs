use serde::{Deserialize, Deserializer, de};

/// Name of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceName {
    /// The Kubernetes cluster with the `Firewall`.
    Seed,
    /// The tenant's Kubernetes cluster.
    Shoot,
    /// Control of this site.
    Metal,
    /// The configuration file.
    Static,
}

impl SourceName {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Seed, Self::Shoot, Self::Metal, Self::Static];

    /// The name in the configuration file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Seed => "seed",
            Self::Shoot => "shoot",
            Self::Metal => "metal",
            Self::Static => "static",
        }
    }
}

impl<'de> Deserialize<'de> for SourceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> de::Visitor<'de> for Names {
            type Value = SourceName;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("one of seed, shoot, metal, static")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<SourceName, E> {
                SourceName::ALL
                    .into_iter()
                    .find(|source| source.name() == name)
                    .ok_or_else(|| {
                        let problem = format!("there is no source {name:?}");
                        E::custom(problem + "; use one of seed, shoot, metal, static")
                    })
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, _: A) -> Result<SourceName, A::Error> {
                Err(de::Error::custom(
                    "a controller has one source; name one of seed, shoot, metal, static, and move \
                     what the others say into it",
                ))
            }
        }
        deserializer.deserialize_any(Names)
    }
}
