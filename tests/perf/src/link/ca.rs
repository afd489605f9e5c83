//! An authority that server and agents of one run share.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use proto_identity::profile::{Authority, LEAF_VALIDITY, Purpose};
use proto_identity::{CertificateDer, CertificateRequest, Credential, Key, SpiffeId};
use proto_link::now_ms;

pub(crate) const TRUST_DOMAIN: &str = "bench.example";

/// The root's certificate, and who signs for nodes and agents.
#[derive(Debug)]
pub(crate) struct Ca {
    root: CertificateDer<'static>,
    nodes: Authority,
    agents: Authority,
}

impl Ca {
    /// Makes it and writes it down for the server's process.
    pub(crate) fn make(dir: &Path) -> Result<Self> {
        let now = now_ms();
        let root = Authority::root(TRUST_DOMAIN, now)?;
        std::fs::write(dir.join("root.der"), root.certificate())?;
        for (name, purpose) in [("nodes", Purpose::Nodes), ("agents", Purpose::Agents)] {
            let made = root.intermediate(purpose, now)?;
            std::fs::write(dir.join(format!("{name}.der")), made.certificate())?;
            let mut options = std::fs::File::options();
            let options = options.create_new(true).write(true).mode(0o600);
            let mut key = options.open(dir.join(format!("{name}.key")))?;
            key.write_all(&made.to_pkcs8())?;
        }
        Self::open(dir)
    }

    /// Reads what [`Ca::make`] wrote.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let read = |name: String| std::fs::read(dir.join(&name)).context(name);
        let authority = |name: &str| -> Result<Authority> {
            let (key, own) = (read(format!("{name}.key"))?, read(format!("{name}.der"))?);
            Ok(Authority::from_parts(&key, own)?)
        };
        Ok(Self {
            root: read("root.der".into())?.into(),
            nodes: authority("nodes")?,
            agents: authority("agents")?,
        })
    }

    pub(crate) fn roots(&self) -> Vec<CertificateDer<'static>> {
        vec![self.root.clone()]
    }

    /// Key and certificate of this identity.
    pub(crate) fn issue(&self, id: &str) -> Result<Credential> {
        let id: SpiffeId = id.parse()?;
        let by = match Purpose::of(id.subject()) {
            Purpose::Agents => &self.agents,
            Purpose::Nodes | Purpose::Peers => &self.nodes,
        };
        let key = Key::generate()?;
        let request = CertificateRequest::verify(&key.request()?)?;
        let leaf = by.issue(&id, &request, now_ms(), LEAF_VALIDITY)?;
        Ok(Credential {
            key,
            chain: vec![leaf, by.certificate().clone()],
            roots: self.roots(),
        })
    }
}
