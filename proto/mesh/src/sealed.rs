//! Desired state that control signs, so that an agent can store it and apply it without control.
//!
//! The signature covers the bytes as they were sent, not the decoded message: an agent also stores
//! fields that only a newer control knows.

use proto_identity::seal::{self, Statement};
use proto_identity::{CertificateDer, Credential, IdentityError, SpiffeId};

use crate::{BmcDesired, BootDesired, FirewallDesired, Seal, SwitchDesired};

/// Number of the field with the signature, the same in every sealed message.
const SEAL_FIELD: u64 = 15;

/// Desired state that carries a signature.
pub trait Sealed: prost::Message + Default {
    /// The kind of desired state; part of the signed statement.
    const KIND: &'static str;
    /// Raft term, then generation.
    fn fence(&self) -> (u64, u64);
    /// The field with the signature.
    fn seal_mut(&mut self) -> &mut Option<Seal>;
}

macro_rules! sealed {
    ($($name:ty, $kind:literal;)*) => {$(
        impl Sealed for $name {
            const KIND: &'static str = $kind;
            fn fence(&self) -> (u64, u64) {
                (self.term, self.generation)
            }
            fn seal_mut(&mut self) -> &mut Option<Seal> {
                &mut self.seal
            }
        }
    )*};
}

sealed! {
    SwitchDesired, "switch";
    BmcDesired, "bmc";
    BootDesired, "boot";
    FirewallDesired, "firewall";
}

/// The reason why a stored message is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It does not decode, or its last field is not a signature.
    #[error("it is damaged: not a signed message")]
    Damaged,
    /// It was signed for another agent.
    #[error("it is of another agent: control signed it for {audience}, this is {own}")]
    Foreign {
        /// The identity that it was signed for.
        audience: String,
        /// The identity of this agent.
        own: String,
    },
    /// It is a desired state of another kind.
    #[error("it is a desired state of another kind: {got}, not {want}")]
    Kind {
        /// The kind in the message.
        got: String,
        /// The expected kind.
        want: &'static str,
    },
    /// The signature does not match, or is not from a trusted control node.
    #[error("control did not sign it")]
    Signature(#[source] IdentityError),
}

/// Signs a message as a control node, for one agent.
///
/// # Errors
/// [`IdentityError::Issue`] if the key cannot sign.
pub fn seal<M: Sealed>(
    node: &Credential,
    audience: &SpiffeId,
    mut message: M,
    now_ms: u64,
) -> Result<M, IdentityError> {
    *message.seal_mut() = None;
    let content = message.encode_to_vec();
    let statement = Statement {
        audience,
        kind: M::KIND,
        fence: message.fence(),
        content: &content,
    };
    let made = seal::sign(node, &statement, now_ms)?;
    *message.seal_mut() = Some(Seal {
        signature: made.signature,
        signed_ms: made.signed_ms,
        chain: made.chain.iter().map(|der| der.to_vec()).collect(),
        audience: audience.to_string(),
        kind: M::KIND.to_owned(),
    });
    Ok(message)
}

/// Decodes a stored message and checks that control signed it for `own`. The result has no
/// signature.
///
/// # Errors
/// See [`SealError`].
pub fn open<M: Sealed>(
    bytes: &[u8],
    own: &SpiffeId,
    roots: &[CertificateDer<'static>],
) -> Result<M, SealError> {
    // The signed bytes are cut out of the stored ones. Encoding the decoded message again would drop
    // unknown fields and the signature would not match.
    let content = before_seal(bytes).ok_or(SealError::Damaged)?;
    let mut message = M::decode(bytes).map_err(|_| SealError::Damaged)?;
    let sealed = message.seal_mut().take().ok_or(SealError::Damaged)?;
    if sealed.audience != own.to_string() {
        return Err(SealError::Foreign {
            audience: sealed.audience,
            own: own.to_string(),
        });
    }
    if sealed.kind != M::KIND {
        return Err(SealError::Kind {
            got: sealed.kind,
            want: M::KIND,
        });
    }
    let statement = Statement {
        audience: own,
        kind: M::KIND,
        fence: message.fence(),
        content,
    };
    let chain = sealed.chain.into_iter().map(CertificateDer::from).collect();
    let made = seal::Seal {
        signature: sealed.signature,
        signed_ms: sealed.signed_ms,
        chain,
    };
    seal::verify(&made, &statement, roots).map_err(SealError::Signature)?;
    Ok(message)
}

/// The bytes of a signed message before its signature. `None` if the signature is not the last
/// field: later bytes would be part of the message without being signed.
pub fn before_seal(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes;
    loop {
        let at = bytes.len() - rest.len();
        let tag = varint(&mut rest)?;
        let len = match tag & 7 {
            0 => varint(&mut rest).map(|_| 0)?,
            1 => 8,
            2 => usize::try_from(varint(&mut rest)?).ok()?,
            5 => 4,
            _ => return None,
        };
        rest = rest.get(len..)?;
        if tag >> 3 == SEAL_FIELD {
            return rest.is_empty().then(|| &bytes[..at]);
        }
    }
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(rest).ok()
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn what_is_before_the_signature() {
        let plain = SwitchDesired {
            term: 1,
            generation: 300,
            ports: vec![crate::PortIntent::default()],
            ..SwitchDesired::default()
        };
        let sealed = SwitchDesired {
            seal: Some(Seal {
                signed_ms: 1,
                ..Seal::default()
            }),
            ..plain.clone()
        };
        let (plain, sealed) = (plain.encode_to_vec(), sealed.encode_to_vec());
        assert_eq!(before_seal(&sealed), Some(&plain[..]));
        assert_eq!(before_seal(&plain), None, "none there");
        assert_eq!(before_seal(b""), None);
        let appended: Vec<u8> = sealed.iter().chain(&plain).copied().collect();
        assert_eq!(before_seal(&appended), None, "something after it");
        for len in 0..sealed.len() {
            assert_eq!(before_seal(&sealed[..len]), None, "cut at {len}");
        }
    }
}
