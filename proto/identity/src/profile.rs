//! Certificate profiles: root, three intermediates, and their leaves.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustls_pki_types::CertificateDer;
use strum::IntoStaticStr;
use time::OffsetDateTime;

use crate::{CertificateRequest, IdentityError, Key, SpiffeId, Subject};

/// Validity of a leaf certificate.
pub const LEAF_VALIDITY: Duration = Duration::from_secs(3600);
/// Validity of the root and the intermediates.
pub const CA_VALIDITY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Start of validity before the time of issue, so that hosts with a late clock accept the certificate.
pub const BACKDATE: Duration = Duration::from_secs(900);

/// The kind of certificates that an intermediate issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Purpose {
    /// Agents and machines: TLS client only.
    Agents,
    /// Control nodes towards agents: TLS server only.
    Nodes,
    /// Control nodes towards each other: TLS server and client.
    Peers,
}

impl Purpose {
    /// The issuer of a subject.
    pub fn of(subject: &Subject) -> Self {
        match subject {
            Subject::Node { .. } => Self::Nodes,
            Subject::Peer { .. } => Self::Peers,
            Subject::Agent { .. } | Subject::Machine { .. } | Subject::ProjectMachine { .. } => {
                Self::Agents
            }
        }
    }

    fn usages(self) -> Vec<ExtendedKeyUsagePurpose> {
        match self {
            Self::Agents => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Self::Nodes => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Self::Peers => vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
        }
    }

    fn name(self) -> &'static str {
        self.into()
    }
}

/// A certificate that signs others, with its key.
#[derive(Clone, Debug)]
pub struct Authority {
    key: Key,
    cert: CertificateDer<'static>,
}

impl Authority {
    /// A self-signed root of a trust domain.
    pub fn root(trust_domain: &str, now_ms: u64) -> Result<Self, IdentityError> {
        let key = Key::generate()?;
        let mut params = base(
            &format!("metalmesh root {trust_domain}"),
            now_ms,
            CA_VALIDITY,
        )?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
        params.key_usages = ca_usages();
        let root = CertifiedIssuer::self_signed(params, key.pair()).map_err(issue)?;
        let cert = root.der().clone();
        Ok(Self { key, cert })
    }

    /// An intermediate under this root, limited to one purpose.
    pub fn intermediate(&self, purpose: Purpose, now_ms: u64) -> Result<Self, IdentityError> {
        let key = Key::generate()?;
        let cert = self.certify(purpose, &key, now_ms)?;
        Ok(Self { key, cert })
    }

    /// Cross-signs an intermediate of a newer root, so that agents that trust only this root accept
    /// its leaves.
    pub fn cross(
        &self,
        intermediate: &Self,
        purpose: Purpose,
        now_ms: u64,
    ) -> Result<CertificateDer<'static>, IdentityError> {
        self.certify(purpose, &intermediate.key, now_ms)
    }

    fn certify(
        &self,
        purpose: Purpose,
        key: &Key,
        now_ms: u64,
    ) -> Result<CertificateDer<'static>, IdentityError> {
        let name = format!("metalmesh {}", purpose.name());
        let mut params = base(&name, now_ms, CA_VALIDITY)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = ca_usages();
        params.extended_key_usages = purpose.usages();
        params.use_authority_key_identifier_extension = true;
        let cert = params
            .signed_by(key.pair(), &self.issuer()?)
            .map_err(issue)?;
        Ok(cert.der().clone())
    }

    /// Restores an authority from its stored key and certificate.
    pub fn from_parts(pkcs8: &[u8], cert: Vec<u8>) -> Result<Self, IdentityError> {
        let authority = Self {
            key: Key::from_pkcs8(pkcs8)?,
            cert: CertificateDer::from(cert),
        };
        authority.issuer()?;
        Ok(authority)
    }

    /// The certificate of the authority.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.cert
    }

    /// The private key of the authority, PKCS#8 DER. Secret.
    pub fn to_pkcs8(&self) -> Vec<u8> {
        self.key.to_pkcs8()
    }

    /// Issues a leaf for `id` and the key of the request. The caller picks the authority by
    /// [`Purpose::of`]. The usage follows from the identity, so a wrong pick gives a leaf that no
    /// verifier accepts.
    pub fn issue(
        &self,
        id: &SpiffeId,
        request: &CertificateRequest,
        now_ms: u64,
        validity: Duration,
    ) -> Result<CertificateDer<'static>, IdentityError> {
        let mut params = base("", now_ms, validity)?;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = Purpose::of(id.subject()).usages();
        params.use_authority_key_identifier_extension = true;
        let uri = rcgen::string::Ia5String::try_from(id.to_string())
            .map_err(|_| IdentityError::Spiffe("not ASCII"))?;
        params.subject_alt_names = vec![SanType::URI(uri)];
        let cert = params
            .signed_by(&request.key, &self.issuer()?)
            .map_err(issue)?;
        Ok(cert.der().clone())
    }

    fn issuer(&self) -> Result<Issuer<'static, &KeyPair>, IdentityError> {
        Issuer::from_ca_cert_der(&self.cert, self.key.pair()).map_err(issue)
    }
}

fn ca_usages() -> Vec<KeyUsagePurpose> {
    vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign]
}

fn base(name: &str, now_ms: u64, validity: Duration) -> Result<CertificateParams, IdentityError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if !name.is_empty() {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    let now = OffsetDateTime::from_unix_timestamp_nanos(i128::from(now_ms) * 1_000_000)
        .map_err(|_| IdentityError::Certificate("time out of range"))?;
    params.not_before = now - BACKDATE;
    params.not_after = now + validity;
    params.serial_number = Some(serial()?);
    Ok(params)
}

/// 16 random bytes, positive (RFC 5280 §4.1.2.2).
fn serial() -> Result<SerialNumber, IdentityError> {
    let mut bytes = [0u8; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| IdentityError::Issue("no randomness".to_owned()))?;
    // The top bit is the sign in DER. The next one is set, so that no leading zero is cut off.
    bytes[0] = (bytes[0] & 0x7f) | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn issue(e: rcgen::Error) -> IdentityError {
    IdentityError::Issue(e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_intermediates_do_not_change() {
        let purposes = [Purpose::Agents, Purpose::Nodes, Purpose::Peers];
        assert_eq!(purposes.map(Purpose::name), ["agents", "nodes", "peers"]);
    }
}
