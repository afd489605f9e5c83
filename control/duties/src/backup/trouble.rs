//! What went wrong at a bucket and what to do about it, without the store's own words: those may
//! quote keys.

use std::error::Error as StdError;
use std::io;

use anyhow::{Error, anyhow};
use object_store::Error as StoreError;
use rustls::CertificateError;

use super::settings::S3;

/// Longest code of an S3 error that is repeated, characters.
const CODE_CHARS_MAX: usize = 64;
/// What stands before the status, and before the store's own words, in an error's text.
const STATUS: &str = "status code: ";
const ITS_WORDS: [&str; 2] = [STATUS, "error response: "];

/// The error as the operator needs it; of a directory as it is.
pub(super) fn explain(bucket: Option<&S3>, error: StoreError) -> Error {
    match bucket {
        Some(s3) => anyhow!("{}: {}", s3.endpoint, at_bucket(s3, &error)),
        None => error.into(),
    }
}

fn at_bucket(s3: &S3, error: &StoreError) -> String {
    if let Some(tls) = find::<rustls::Error>(error) {
        return certificate(s3, tls);
    }
    let text = error.to_string();
    let code = code(&text).map(|code| format!(" ({code})"));
    let code = code.unwrap_or_default();
    // Not by its variant: errors of lists are all of one.
    match status(&text) {
        Some(401 | 403) => format!(
            "the store refuses the keys, or they may not list, write and delete in bucket \
             {:?}{code}; correct backup.s3.access_key_file, backup.s3.secret_key_file or the \
             bucket's policy",
            s3.bucket
        ),
        Some(404) => format!(
            "there is no bucket {:?}{code}; make it, or correct backup.s3.bucket",
            s3.bucket
        ),
        Some(_) => format!("{}{code}", without_its_words(&text)),
        None => match find::<io::Error>(error) {
            Some(cause) => format!(
                "it cannot be reached: {cause}; look at backup.s3.endpoint and whether the store \
                 runs there"
            ),
            None => without_its_words(&text),
        },
    }
}

/// The HTTP status that an error's text tells.
fn status(text: &str) -> Option<u16> {
    let (_, after) = text.split_once(STATUS)?;
    let end = after.find(|c: char| !c.is_ascii_digit());
    after.get(..end.unwrap_or(after.len()))?.parse().ok()
}

fn certificate(s3: &S3, error: &rustls::Error) -> String {
    use CertificateError as Bad;
    let rustls::Error::InvalidCertificate(bad) = error else {
        return format!("TLS failed: {error}; does backup.s3.endpoint speak https?");
    };
    match bad {
        Bad::UnknownIssuer | Bad::BadSignature => match &s3.ca_file {
            Some(path) => format!(
                "its certificate is not signed by an authority in {}; name the PEM file of the \
                 right one in backup.s3.ca_file",
                path.display()
            ),
            None => "its certificate is not signed by an authority that this system trusts; name \
                     the PEM file of the one that signed it in backup.s3.ca_file"
                .to_owned(),
        },
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => format!(
            "{error}; write the host in backup.s3.endpoint as the store's certificate names it"
        ),
        Bad::Expired | Bad::ExpiredContext { .. } => {
            format!("{error}; renew the store's certificate, or correct this machine's clock")
        }
        _ => format!("{error}; the store needs another certificate"),
    }
}

/// The first cause of this type. An io::Error hides what it wraps from `source`.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref() {
            return Some(found);
        }
        let wrapped = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        if let Some(wrapped) = wrapped {
            let wrapped: &(dyn StdError + 'static) = wrapped;
            if let Some(found) = find(wrapped) {
                return Some(found);
            }
        }
        next = cause.source();
    }
    None
}

/// The code in the XML of a refusal: one word that the protocol lists.
fn code(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("<Code>")?;
    let (code, _) = after.split_once("</Code>")?;
    let is_word = code.chars().all(|c| c.is_ascii_alphanumeric());
    (is_word && (1..=CODE_CHARS_MAX).contains(&code.len())).then_some(code)
}

/// An error's text without the answer that it quotes; the number of the status stays.
fn without_its_words(text: &str) -> String {
    for begin in ITS_WORDS {
        if let Some((before, after)) = text.split_once(begin) {
            let status: String = after.chars().take_while(char::is_ascii_digit).collect();
            return format!("{before}{begin}{status}").trim_end().to_owned();
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s3() -> S3 {
        S3 {
            endpoint: "https://s3.example".into(),
            bucket: "b".into(),
            region: "r".into(),
            prefix: String::new(),
            access_key_file: "/a".into(),
            secret_key_file: "/s".into(),
            ca_file: None,
        }
    }

    #[test]
    fn what_the_store_says_is_not_repeated() {
        let answer = "Error performing GET https://s3.example/b - Server returned non-2xx status \
                      code: 500 Internal Server Error: <Error><Code>InternalError</Code>\
                      <AWSAccessKeyId>AKIA1</AWSAccessKeyId></Error>";
        let error = StoreError::Generic {
            store: "S3",
            source: answer.into(),
        };
        let text = explain(Some(&s3()), error).to_string();
        assert!(text.contains("status code: 500 (InternalError)"), "{text}");
        assert!(!text.contains("AKIA1"), "{text}");
        let error = StoreError::Generic {
            store: "S3",
            source: answer.replace("500", "403").into(),
        };
        let text = explain(Some(&s3()), error).to_string();
        assert!(text.contains("backup.s3.access_key_file"), "{text}");
        assert!(!text.contains("AKIA1"), "{text}");
        assert_eq!(code("<Code>a b</Code>"), None);
    }

    #[test]
    fn a_cause_in_an_io_error_is_found() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let wrapped = io::Error::new(io::ErrorKind::InvalidData, tls);
        let error = StoreError::Generic {
            store: "S3",
            source: Box::new(io::Error::other(wrapped)),
        };
        let text = explain(Some(&s3()), error).to_string();
        assert!(
            text.starts_with("https://s3.example: its certificate"),
            "{text}"
        );
        assert!(text.contains("backup.s3.ca_file"), "{text}");
    }
}
