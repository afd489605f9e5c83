//! Fetches the wanted installer and checks periodically that its server has no newer one.

use std::io;
use std::sync::Arc;

use base_runtime::{Backoff, Chain, jittered};
use pixie_boot::{InstallerSource, InstallerUrls};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::fetch::{Fetched, Fetcher};
use super::fetch_error::FetchError;
use super::pair::{FetchedFile, Pair, PairFile};
use super::store::Staging;
use super::{InstallerState, redacted};
use crate::clock::now_ms;
use crate::state::Shared;

/// The reason why a pair is not available.
#[derive(Debug, thiserror::Error)]
enum PairError {
    #[error("{}", .0.name())]
    Fetch(PairFile, #[source] FetchError),
    #[error("the state directory")]
    Store(#[source] io::Error),
}

/// The outcome of fetching both files of a pair.
struct FetchedPair {
    kernel: Fetched,
    image: Fetched,
}

impl FetchedPair {
    fn of(&self, file: PairFile) -> &Fetched {
        match file {
            PairFile::Kernel => &self.kernel,
            PairFile::Image => &self.image,
        }
    }
}

/// Fetches until stopped. A change of the wanted source cancels a download of the previous one.
pub(crate) async fn run_installer(shared: Arc<Shared>, fetcher: Fetcher, stop: CancellationToken) {
    let installer = &shared.installer;
    let limits = &shared.config.fetch;
    let mut wanted = installer.wanted.subscribe();
    let mut failures = 0_u32;
    loop {
        // Marked as seen before the work: a change during the work wakes `changed` below and cancels
        // it.
        let source = wanted.borrow_and_update().clone();
        let done = tokio::select! {
            () = stop.cancelled() => return,
            changed = wanted.changed() => match changed {
                Ok(()) => { failures = 0; continue }
                Err(_) => return,
            },
            done = attend(&shared, &fetcher, &source) => done,
        };
        let wait = match done {
            Ok(()) => {
                failures = 0;
                installer.set_trouble(None);
                // The pixies of a site must not ask the file server in step.
                jittered(limits.recheck)
            }
            Err(error) => {
                let error = Chain(&error).to_string();
                let (kernel, image) = shown(&source);
                tracing::warn!(error, kernel, image, "installer not fetched");
                installer.set_trouble(Some(error));
                let pause = Backoff::new(limits.retry_min, limits.retry_max).pause(failures);
                failures = failures.saturating_add(1);
                pause
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            changed = wanted.changed() => match changed {
                Ok(()) => failures = 0,
                Err(_) => return,
            },
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Brings the disk to the wanted source.
async fn attend(
    shared: &Arc<Shared>,
    fetcher: &Fetcher,
    source: &InstallerSource,
) -> Result<(), PairError> {
    match source {
        InstallerSource::Urls(urls) => refresh(shared, fetcher, urls).await,
        // No machine is sent to a fetched pair now, which would only fill the disk.
        InstallerSource::Own => on_store(shared, |installer| installer.store.keep(None)).await,
        // The pair on disk stays: the next desired state may want it, and a restart without control
        // must not delete it.
        InstallerSource::Unknown | InstallerSource::Incomplete => Ok(()),
    }
}

/// Fetches both files, as far as they have changed since the last time.
async fn refresh(
    shared: &Arc<Shared>,
    fetcher: &Fetcher,
    urls: &InstallerUrls,
) -> Result<(), PairError> {
    // An early return drops the staging directory and what was fetched into it, so that neither file
    // is ever installed alone.
    let known = shared.installer.store.find(urls);
    let kept = known.clone();
    let staging = on_store(shared, move |installer| {
        installer.store.begin(kept.as_ref())
    })
    .await?;
    let known_file = |file| known.as_ref().map(|pair| pair.file(file));
    let (file, to) = (PairFile::Kernel, staging.path(PairFile::Kernel));
    let kernel = fetcher.fetch(&urls.kernel, file, known_file(file), &to);
    let kernel = kernel
        .await
        .map_err(|error| PairError::Fetch(file, error))?;
    let (file, to) = (PairFile::Image, staging.path(PairFile::Image));
    let image = fetcher.fetch(&urls.image, file, known_file(file), &to);
    let image = image.await.map_err(|error| PairError::Fetch(file, error))?;
    let fetched = FetchedPair { kernel, image };
    let Some(pair) = assemble(urls, known.as_ref(), &fetched) else {
        return Ok(());
    };
    let key = pair.key.clone();
    install(shared, staging, pair, known, fetched).await?;
    tracing::info!(
        pair = key,
        kernel = redacted(&urls.kernel),
        image = redacted(&urls.image),
        "installer fetched"
    );
    Ok(())
}

/// The record of the fetched pair. `None` means that neither file has changed.
fn assemble(urls: &InstallerUrls, known: Option<&Pair>, fetched: &FetchedPair) -> Option<Pair> {
    if let (Fetched::Unchanged, Fetched::Unchanged) = (&fetched.kernel, &fetched.image) {
        return None;
    }
    let file = |file: PairFile| -> Option<FetchedFile> {
        match fetched.of(file) {
            Fetched::New(new) => Some(new.clone()),
            Fetched::Unchanged => known.map(|pair| pair.file(file).clone()),
        }
    };
    let kernel = file(PairFile::Kernel)?;
    let image = file(PairFile::Image)?;
    Some(Pair::new(urls, kernel, image, now_ms()))
}

/// Links the unchanged file into the new pair and installs the pair.
async fn install(
    shared: &Arc<Shared>,
    staging: Staging,
    pair: Pair,
    known: Option<Pair>,
    fetched: FetchedPair,
) -> Result<(), PairError> {
    on_store(shared, move |installer| {
        let store = &installer.store;
        for file in [PairFile::Kernel, PairFile::Image] {
            if let (Fetched::Unchanged, Some(known)) = (fetched.of(file), &known) {
                store.link(known, file, &staging)?;
            }
        }
        store.install(staging, pair)
    })
    .await
}

/// Runs `work` on the pair store, on a thread that may block.
async fn on_store<T: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&InstallerState) -> io::Result<T> + Send + 'static,
) -> Result<T, PairError> {
    let shared = Arc::clone(shared);
    spawn_blocking(move || work(&shared.installer))
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(PairError::Store)
}

/// Both URLs without secrets, for logs.
fn shown(source: &InstallerSource) -> (String, String) {
    match source {
        InstallerSource::Urls(urls) => (redacted(&urls.kernel), redacted(&urls.image)),
        _ => Default::default(),
    }
}
