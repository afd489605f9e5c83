//! Explains errors of a bucket and how to correct them. The store's own words are left out: they may
//! quote keys.

use std::error::Error as StdError;
use std::io;

use object_store::Error as StoreError;
use rustls::CertificateError;

use super::error::BackupTargetError;
use super::s3::S3;

/// Maximum length of an S3 error code that is repeated, characters. A longer one is left out.
const CODE_CHARS_MAX: usize = 64;
/// The text before the HTTP status in an error of `object_store`.
const STATUS: &str = "status code: ";
/// Texts before the store's own words in an error of `object_store`.
const ITS_WORDS: [&str; 2] = [STATUS, "error response: "];

/// Explains an error of a bucket. An error of a directory is returned unchanged.
pub(super) fn explain(bucket: Option<&S3>, error: StoreError) -> BackupTargetError {
    match bucket {
        Some(s3) => BackupTargetError::Bucket {
            endpoint: s3.endpoint.clone(),
            problem: at_bucket(s3, &error),
        },
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
    // The status is read from the text: `object_store` reports every error of a list by the same
    // variant.
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

/// The HTTP status in an error's text. `None` means that it contains none.
fn status(text: &str) -> Option<u16> {
    let (_, after) = text.split_once(STATUS)?;
    let end = after.find(|c: char| !c.is_ascii_digit());
    after.get(..end.unwrap_or(after.len()))?.parse().ok()
}

/// Explains a TLS error.
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

/// The first cause of this type. An `io::Error` does not return the error that it wraps as its
/// `source`, so it is opened explicitly.
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

/// The error code in the XML of a refusal. Only a single word is accepted, as the protocol defines
/// it: anything else could be a quoted key.
fn code(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("<Code>")?;
    let (code, _) = after.split_once("</Code>")?;
    let is_word = code.chars().all(|c| c.is_ascii_alphanumeric());
    (is_word && (1..=CODE_CHARS_MAX).contains(&code.len())).then_some(code)
}

/// An error's text without the answer that it quotes. The status number is kept.
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
