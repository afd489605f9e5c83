//! Public SSH keys as `authorized_keys` has them: `[options] type base64 [comment]`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_gate::refusal::invalid;
use tonic::Status;

/// A part of a key's binary form after its type.
#[derive(Clone, Copy)]
enum KeyPart {
    Text(&'static str),
    Bytes(usize),
    Any,
}

use KeyPart::{Any, Bytes, Text};

/// The types of keys, with the parts of each.
const TYPES: [(&str, &[KeyPart]); 8] = [
    ("ssh-ed25519", &[Bytes(32)]),
    ("ssh-rsa", &[Any, Any]),
    ("ssh-dss", &[Any, Any, Any, Any]),
    ("ecdsa-sha2-nistp256", &[Text("nistp256"), Bytes(65)]),
    ("ecdsa-sha2-nistp384", &[Text("nistp384"), Bytes(97)]),
    ("ecdsa-sha2-nistp521", &[Text("nistp521"), Bytes(133)]),
    ("sk-ssh-ed25519@openssh.com", &[Bytes(32), Any]),
    (
        "sk-ecdsa-sha2-nistp256@openssh.com",
        &[Text("nistp256"), Bytes(65), Any],
    ),
];

/// Suffix of certificate types. Of a certificate only the type is checked.
const CERTIFICATE: &str = "-cert-v01@openssh.com";

/// The keys of a request.
///
/// # Errors
/// `invalid_argument` for a text that is not a public key. The error does not repeat the text, which
/// may be a private key.
pub fn from_keys(keys: Vec<String>) -> Result<Vec<String>, Status> {
    match keys.iter().position(|key| !is_key(key)) {
        None => Ok(keys),
        Some(at) => {
            let rule = "is no public SSH key, like \"ssh-ed25519 AAAA... comment\"";
            Err(invalid(&format!("ssh_public_keys[{at}]"), rule))
        }
    }
}

fn is_key(line: &str) -> bool {
    is_plain_key(line) || after_options(line).is_some_and(is_plain_key)
}

fn is_plain_key(line: &str) -> bool {
    let mut fields = line.split_whitespace();
    let (Some(kind), Some(blob)) = (fields.next(), fields.next()) else {
        return false;
    };
    let Ok(blob) = STANDARD.decode(blob) else {
        return false;
    };
    let Some((own_kind, rest)) = field(&blob).filter(|(own, _)| *own == kind.as_bytes()) else {
        return false;
    };
    let parts = TYPES.iter().find(|(name, _)| name.as_bytes() == own_kind);
    match parts {
        Some((_, parts)) => consists_of(rest, parts),
        None => kind.ends_with(CERTIFICATE) && !rest.is_empty(),
    }
}

/// The rest of the line after the options. Those are separated by commas and hold spaces only in
/// quotes.
fn after_options(line: &str) -> Option<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = line.find(|c: char| {
        let ends = c.is_whitespace() && !is_quoted;
        if c == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = c == '\\' && !is_escaped;
        ends
    })?;
    line.get(end..).map(str::trim_start)
}

fn consists_of(mut rest: &[u8], parts: &[KeyPart]) -> bool {
    for part in parts {
        let Some((bytes, after)) = field(rest) else {
            return false;
        };
        let fits = match part {
            Text(text) => bytes == text.as_bytes(),
            Bytes(count) => bytes.len() == *count,
            Any => !bytes.is_empty(),
        };
        if !fits {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

/// The first field, which follows its length, and the rest.
fn field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(fields: &[&[u8]]) -> String {
        let mut bytes = Vec::new();
        for field in fields {
            bytes.extend(u32::try_from(field.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(field);
        }
        STANDARD.encode(bytes)
    }

    #[test]
    fn keys() {
        let ed25519 = blob(&[b"ssh-ed25519", &[7; 32]]);
        let short = blob(&[b"ssh-ed25519", &[7; 31]]);
        let long = blob(&[b"ssh-ed25519", &[7; 32], b"x"]);
        let rsa = blob(&[b"ssh-rsa", &[1, 0, 1], &[7; 257]]);
        let p256 = blob(&[b"ecdsa-sha2-nistp256", b"nistp256", &[4; 65]]);
        let other_curve = blob(&[b"ecdsa-sha2-nistp256", b"nistp384", &[4; 65]]);
        let certificate = blob(&[b"ssh-rsa-cert-v01@openssh.com", b"nonce"]);
        for (line, is) in [
            (format!("ssh-ed25519 {ed25519}"), true),
            (format!("ssh-ed25519 {ed25519} me@host, at work"), true),
            (format!("ssh-rsa {rsa} me"), true),
            (format!("ecdsa-sha2-nistp256 {p256}"), true),
            (format!("no-pty,command=\"a b \\\" c\" ssh-rsa {rsa}"), true),
            (format!("ssh-rsa-cert-v01@openssh.com {certificate}"), true),
            (format!("ssh-rsa {ed25519}"), false),
            (format!("ssh-ed25519 {short}"), false),
            (format!("ssh-ed25519 {long}"), false),
            (format!("ecdsa-sha2-nistp256 {other_curve}"), false),
            (format!("command=\"a ssh-rsa {rsa}"), false),
            (format!("{ed25519} ssh-ed25519"), false),
            ("ssh-ed25519 AAAA me".to_owned(), false),
            ("ssh-ed25519".to_owned(), false),
            ("no key".to_owned(), false),
            ("-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(), false),
        ] {
            assert_eq!(is_key(&line), is, "{line}");
        }
        let refused = from_keys(vec!["secret".to_owned()]).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        assert!(!refused.message().contains("secret"), "{refused}");
    }
}
