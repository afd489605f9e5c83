//! The bytes of a release, from a server or a file.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use nix::fcntl::OFlag;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response, StatusCode, Url};

use super::address_rule::AddressRule;
use super::location::{ReleaseLocation, refusal};
use super::resolver::GuardedResolver;
use crate::settings::UpdateSettings;

/// Longest time to connect, TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time without a byte.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Redirects that are followed. A further one fails the fetch.
const REDIRECTS_MAX: usize = 5;
/// Bytes that are read of a file at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Largest file with authorities, bytes.
const CA_BYTES_MAX: u64 = 1 << 20;

/// The origin of the bytes.
#[derive(Debug)]
enum ByteOrigin {
    Server(Box<Response>),
    File(File),
}

/// Reads a release piece by piece, so that nothing is kept that its signed head does not announce.
#[derive(Debug)]
pub(super) struct ReleaseReader {
    origin: ByteOrigin,
    /// Bytes that were read, and not taken yet.
    ahead: Bytes,
}

impl ReleaseReader {
    /// Opens a release.
    ///
    /// # Errors
    /// The problem and a remedy, without the URL.
    pub(super) async fn open(
        location: &ReleaseLocation,
        settings: &UpdateSettings,
        rule: &AddressRule,
    ) -> Result<Self, String> {
        let origin = match location {
            ReleaseLocation::File(path) => ByteOrigin::File(open_file(path)?),
            ReleaseLocation::Https(url) => {
                let answer = request(url.clone(), settings, rule).await?;
                ByteOrigin::Server(Box::new(answer))
            }
        };
        let ahead = Bytes::new();
        Ok(Self { origin, ahead })
    }

    /// The next bytes. `None` at the end.
    ///
    /// # Errors
    /// The connection broke off, or the file cannot be read.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, String> {
        if !self.ahead.is_empty() {
            return Ok(Some(std::mem::take(&mut self.ahead)));
        }
        match &mut self.origin {
            ByteOrigin::Server(answer) => {
                let piece = answer.chunk().await;
                piece.map_err(|error| format!("server: {}", base_outbound::reason(error)))
            }
            ByteOrigin::File(file) => {
                // A file is always ready: packets and answers of names take their turn here.
                tokio::task::yield_now().await;
                let mut piece = vec![0; PIECE_BYTES];
                let length = file.read(&mut piece);
                let length = length.map_err(|error| format!("file: {error}"))?;
                piece.truncate(length);
                Ok((length > 0).then(|| piece.into()))
            }
        }
    }

    /// Exactly so many bytes. Fewer if the release ends before.
    ///
    /// # Errors
    /// As [`ReleaseReader::piece`].
    pub(super) async fn exactly(&mut self, length: usize) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let Some(mut piece) = self.piece().await? else {
                break;
            };
            let missing = length - bytes.len();
            if piece.len() > missing {
                self.ahead = piece.split_off(missing);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

fn open_file(path: &Path) -> Result<File, String> {
    let failed = |error| format!("file: cannot read {}: {error}", path.display());
    // To open a pipe would wait for its writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(format!(
            "file: {} is no regular file; name a file",
            path.display()
        ));
    }
    Ok(file)
}

async fn request(
    url: Url,
    settings: &UpdateSettings,
    rule: &AddressRule,
) -> Result<Response, String> {
    let client = client(settings, rule)?;
    let sent = client.get(url).send().await;
    let answer = sent.map_err(|error| format!("server: {}", base_outbound::reason(error)))?;
    match answer.status() {
        StatusCode::OK => Ok(answer),
        status => Err(format!(
            "server: it answered with {}; correct the URL",
            status.as_u16()
        )),
    }
}

fn client(settings: &UpdateSettings, rule: &AddressRule) -> Result<Client, String> {
    // reqwest's builder panics without a provider.
    agents_kit::install_crypto_provider();
    let failed = |error| format!("server: no client: {}", base_outbound::reason(error));
    let authorities = settings.ca_certificate.as_deref().map(authorities);
    let authorities = authorities.transpose()?;
    let redirects = rule.clone();
    let follow = move |attempt: Attempt<'_>| {
        // The first of them is the request itself.
        if attempt.previous().len() > REDIRECTS_MAX {
            return attempt.error("there are too many redirects");
        }
        match refusal(attempt.url(), &redirects) {
            Some(problem) => attempt.error(problem),
            None => attempt.follow(),
        }
    };
    base_outbound::client(authorities.as_deref(), Policy::custom(follow))
        .map_err(failed)?
        .https_only(true)
        // A proxy would resolve the name itself, behind the check of addresses.
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(STALL_TIMEOUT)
        .dns_resolver(GuardedResolver(rule.clone()))
        .build()
        .map_err(failed)
}

fn authorities(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error| {
        let path = path.display();
        format!("authorities of the server: cannot read {path}: {error}; correct it")
    };
    let mut bytes = Vec::new();
    let file = open_file(path)?;
    let mut file = file.take(CA_BYTES_MAX);
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
