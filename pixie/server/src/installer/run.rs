//! Fetches what control wants, and looks now and then whether it is still what its server has.

use std::io;
use std::sync::Arc;

use base_runtime::{Backoff, Chain, jittered};
use pixie_boot::{InstallerSource, InstallerUrls};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::fetch::{FetchError, Fetched, Fetcher};
use super::store::{FetchedFile, Pair, PairFile, Staging};
use super::{InstallerState, redacted};
use crate::clock::now_ms;
use crate::state::Shared;

/// Why a pair is not there.
#[derive(Debug, thiserror::Error)]
enum PairError {
    #[error("{}", .0.name())]
    Fetch(PairFile, #[source] FetchError),
    #[error("the state directory")]
    Store(#[source] io::Error),
}

/// Fetches until stopped. A change of what is wanted ends the download of something else.
pub(crate) async fn run_installer(shared: Arc<Shared>, fetcher: Fetcher, stop: CancellationToken) {
    let installer = &shared.installer;
    let limits = &shared.config.fetch;
    let mut wanted = installer.wanted.subscribe();
    let mut failures = 0_u32;
    loop {
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

/// Does what the wish asks for now.
async fn attend(
    shared: &Arc<Shared>,
    fetcher: &Fetcher,
    source: &InstallerSource,
) -> Result<(), PairError> {
    match source {
        InstallerSource::Urls(urls) => refresh(shared, fetcher, urls).await,
        InstallerSource::Own => on_store(shared, |installer| installer.store.keep(None)).await,
        // A pair on disk may be wanted again when control says more.
        InstallerSource::Unknown | InstallerSource::Incomplete => Ok(()),
    }
}

/// Gets both files, or what has changed of them since they were fetched.
async fn refresh(
    shared: &Arc<Shared>,
    fetcher: &Fetcher,
    urls: &InstallerUrls,
) -> Result<(), PairError> {
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
    let Some(pair) = assemble(urls, known.as_ref(), (&kernel, &image)) else {
        return Ok(());
    };
    let key = pair.key.clone();
    install(shared, (staging, pair), known, (kernel, image)).await?;
    tracing::info!(
        pair = key,
        kernel = redacted(&urls.kernel),
        image = redacted(&urls.image),
        "installer fetched"
    );
    Ok(())
}

/// The pair that was found; `None` when it is the known one.
fn assemble(
    urls: &InstallerUrls,
    known: Option<&Pair>,
    (kernel, image): (&Fetched, &Fetched),
) -> Option<Pair> {
    if let (Fetched::Unchanged, Fetched::Unchanged) = (kernel, image) {
        return None;
    }
    let file = |fetched: &Fetched, file: PairFile| -> Option<FetchedFile> {
        match fetched {
            Fetched::New(new) => Some(new.clone()),
            Fetched::Unchanged => known.map(|pair| pair.file(file).clone()),
        }
    };
    let files = (
        file(kernel, PairFile::Kernel)?,
        file(image, PairFile::Image)?,
    );
    Some(Pair::new(urls, files, now_ms()))
}

async fn install(
    shared: &Arc<Shared>,
    (staging, pair): (Staging, Pair),
    known: Option<Pair>,
    (kernel, image): (Fetched, Fetched),
) -> Result<(), PairError> {
    on_store(shared, move |installer| {
        let store = &installer.store;
        for (fetched, file) in [(kernel, PairFile::Kernel), (image, PairFile::Image)] {
            if let (Fetched::Unchanged, Some(known)) = (fetched, &known) {
                store.link(known, file, &staging)?;
            }
        }
        store.install(staging, pair)
    })
    .await
}

/// Works on the directory of pairs on a thread that may block.
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

/// Both URLs as logs may show them.
fn shown(source: &InstallerSource) -> (String, String) {
    match source {
        InstallerSource::Urls(urls) => (redacted(&urls.kernel), redacted(&urls.image)),
        _ => Default::default(),
    }
}
