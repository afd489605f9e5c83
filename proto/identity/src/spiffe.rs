//! Identities as SPIFFE URIs.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::{AgentRole, CallerKind, IdentityError};

/// Longest URI that [`SpiffeId::from_str`] looks at (the SPIFFE standard allows 2048).
pub const URI_LEN_MAX: usize = 512;
/// Longest name inside an identity; partitions and switches have the same bound.
pub const NAME_LEN_MAX: usize = 128;

/// A trust domain and a subject in it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpiffeId {
    trust_domain: String,
    subject: Subject,
}

/// The subject of an identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// `/partition/<partition>/<role>/<id>`; a core agent's id is its switch's id.
    Agent {
        partition: String,
        role: AgentRole,
        id: String,
    },
    /// `/machine/<uuid>`: hammer on a network-booted machine.
    Machine { uuid: Uuid },
    /// `/project/<project>/machine/<uuid>`: an installed machine of a tenant.
    ProjectMachine { project: String, uuid: Uuid },
    /// `/node/<id>`: a control node, as agents see it.
    Node { id: String },
    /// `/peer/<number>`: a control node, as the other control nodes see it.
    Peer { node: u64 },
}

impl SpiffeId {
    /// An identity, when the domain and every name in the subject are well formed.
    pub fn new(trust_domain: &str, subject: Subject) -> Result<Self, IdentityError> {
        check_trust_domain(trust_domain)?;
        match &subject {
            Subject::Agent { partition, id, .. } => {
                check_name(partition)?;
                check_name(id)?;
            }
            Subject::ProjectMachine { project, .. } => check_name(project)?,
            Subject::Node { id } => check_name(id)?,
            Subject::Machine { .. } | Subject::Peer { .. } => {}
        }
        Ok(Self {
            trust_domain: trust_domain.to_owned(),
            subject,
        })
    }

    /// The agent `role` called `id` of a partition.
    pub fn agent(
        trust_domain: &str,
        partition: &str,
        role: AgentRole,
        id: &str,
    ) -> Result<Self, IdentityError> {
        let subject = Subject::Agent {
            partition: partition.to_owned(),
            role,
            id: id.to_owned(),
        };
        Self::new(trust_domain, subject)
    }

    /// The domain.
    pub fn trust_domain(&self) -> &str {
        &self.trust_domain
    }

    /// The subject.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Which methods it may call.
    pub fn caller_kind(&self) -> CallerKind {
        match &self.subject {
            Subject::Agent {
                role: AgentRole::Core,
                ..
            } => CallerKind::Core,
            Subject::Agent {
                role: AgentRole::Bmc,
                ..
            } => CallerKind::Bmc,
            Subject::Agent {
                role: AgentRole::Pixie,
                ..
            } => CallerKind::Pixie,
            Subject::Machine { .. } => CallerKind::Machine,
            Subject::ProjectMachine { .. } => CallerKind::ProjectMachine,
            Subject::Node { .. } => CallerKind::Node,
            Subject::Peer { .. } => CallerKind::Peer,
        }
    }

    /// The partition, of the identities that have one.
    pub fn partition(&self) -> Option<&str> {
        match &self.subject {
            Subject::Agent { partition, .. } => Some(partition),
            _ => None,
        }
    }

    /// The machine's UUID, of machines installed or not.
    pub fn machine(&self) -> Option<Uuid> {
        match &self.subject {
            Subject::Machine { uuid } | Subject::ProjectMachine { uuid, .. } => Some(*uuid),
            _ => None,
        }
    }

    /// The last path segment: agent id, machine UUID or node id.
    pub fn id(&self) -> String {
        match &self.subject {
            Subject::Agent { id, .. } | Subject::Node { id } => id.clone(),
            Subject::Machine { uuid } | Subject::ProjectMachine { uuid, .. } => uuid.to_string(),
            Subject::Peer { node } => node.to_string(),
        }
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spiffe://{}", self.trust_domain)?;
        match &self.subject {
            Subject::Agent {
                partition,
                role,
                id,
            } => {
                write!(f, "/partition/{partition}/{role}/{id}")
            }
            Subject::Machine { uuid } => write!(f, "/machine/{uuid}"),
            Subject::ProjectMachine { project, uuid } => {
                write!(f, "/project/{project}/machine/{uuid}")
            }
            Subject::Node { id } => write!(f, "/node/{id}"),
            Subject::Peer { node } => write!(f, "/peer/{node}"),
        }
    }
}

impl fmt::Debug for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SpiffeId {
    type Err = IdentityError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        if s.len() > URI_LEN_MAX {
            return Err(IdentityError::Spiffe("too long"));
        }
        let rest = s
            .strip_prefix("spiffe://")
            .ok_or(IdentityError::Spiffe("scheme is not spiffe"))?;
        let mut parts = rest.split('/');
        let domain = parts.next().unwrap_or_default();
        // A fixed number of segments: one more than the longest path shows a path too long.
        let path: Vec<&str> = parts.take(5).collect();
        let subject = match path.as_slice() {
            ["partition", partition, role, id] => Subject::Agent {
                partition: (*partition).to_owned(),
                role: role.parse()?,
                id: (*id).to_owned(),
            },
            ["machine", uuid] => Subject::Machine {
                uuid: parse_uuid(uuid)?,
            },
            ["project", project, "machine", uuid] => Subject::ProjectMachine {
                project: (*project).to_owned(),
                uuid: parse_uuid(uuid)?,
            },
            ["node", id] => Subject::Node {
                id: (*id).to_owned(),
            },
            ["peer", node] => Subject::Peer {
                node: parse_number(node)?,
            },
            _ => return Err(IdentityError::Spiffe("unknown path")),
        };
        Self::new(domain, subject)
    }
}

/// Only the canonical form (36 characters, lower case), so that one machine has one name.
fn parse_uuid(s: &str) -> Result<Uuid, IdentityError> {
    let uuid = Uuid::parse_str(s).map_err(|_| IdentityError::Spiffe("not a UUID"))?;
    if uuid.to_string() == s {
        Ok(uuid)
    } else {
        Err(IdentityError::Spiffe("UUID is not in canonical form"))
    }
}

/// Only the canonical form, as of UUIDs.
fn parse_number(s: &str) -> Result<u64, IdentityError> {
    let number: u64 = s
        .parse()
        .map_err(|_| IdentityError::Spiffe("not a node's number"))?;
    if number > 0 && number.to_string() == s {
        Ok(number)
    } else {
        Err(IdentityError::Spiffe("not a node's number"))
    }
}

fn check_trust_domain(s: &str) -> Result<(), IdentityError> {
    let ok =
        |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'.' | b'-' | b'_');
    if s.is_empty() || s.len() > 255 || !s.bytes().all(ok) {
        return Err(IdentityError::Spiffe("malformed trust domain"));
    }
    Ok(())
}

/// Letters, digits, dot, dash and underscore, as SPIFFE has it; never `.` or `..`.
fn check_name(s: &str) -> Result<(), IdentityError> {
    let ok = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
    if s.is_empty() || s.len() > NAME_LEN_MAX || s == "." || s == ".." || !s.bytes().all(ok) {
        return Err(IdentityError::Spiffe("malformed name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";

    #[test]
    fn round_trips() {
        for (uri, kind) in [
            (
                "spiffe://mesh.example/partition/fra1/core/leaf1",
                CallerKind::Core,
            ),
            (
                "spiffe://mesh.example/partition/fra1/bmc/b",
                CallerKind::Bmc,
            ),
            (
                "spiffe://mesh.example/partition/fra1/pixie/p-1",
                CallerKind::Pixie,
            ),
            (&format!("spiffe://m/machine/{UUID}"), CallerKind::Machine),
            (
                &format!("spiffe://m/project/p1/machine/{UUID}"),
                CallerKind::ProjectMachine,
            ),
            ("spiffe://m/node/1", CallerKind::Node),
            ("spiffe://m/peer/12", CallerKind::Peer),
        ] {
            let id: SpiffeId = uri.parse().unwrap();
            assert_eq!(id.to_string(), uri);
            assert_eq!(id.caller_kind(), kind);
        }
    }

    #[test]
    fn refuses() {
        for uri in [
            "",
            "spiffe://",
            "https://m/node/1",
            "spiffe://M/node/1",
            "spiffe://m",
            "spiffe://m/node",
            "spiffe://m/node/",
            "spiffe://m/node/..",
            "spiffe://m/node/a/b",
            "spiffe://m/node/a?b",
            "spiffe://m//node/a",
            "spiffe://m/peer/0",
            "spiffe://m/peer/01",
            "spiffe://m/peer/+1",
            "spiffe://m/peer/x",
            "spiffe://m/partition/p/spine/x",
            "spiffe://m/partition/p/core/x/y",
            "spiffe://m/machine/0D7A4F1C-7B1E-4A6F-9D55-6A2B3C4D5E6F",
            "spiffe://m/machine/0d7a4f1c7b1e4a6f9d556a2b3c4d5e6f",
            "spiffe://user@m/node/1",
            "spiffe://m:1/node/1",
        ] {
            assert!(uri.parse::<SpiffeId>().is_err(), "{uri}");
        }
        let long = format!("spiffe://m/node/{}", "x".repeat(129));
        assert!(long.parse::<SpiffeId>().is_err());
    }
}
