//! Hands over an admin token: through a file or a context, never through the log.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use control_client::{SecretText, ServerContext, ServerContexts};
use control_gate::token::Issuer;
use control_store::Store;

use crate::args::RunArgs;
use crate::files;

/// Life of an admin token that is created here, milliseconds: 90 days.
const TOKEN_LIFE_MS: u64 = 90 * 24 * 3600 * 1000;

/// The destination of a new admin token.
#[derive(Debug)]
pub(crate) struct Handover {
    token_file: Option<PathBuf>,
    context_file: Option<PathBuf>,
    context: String,
    api_url: String,
}

impl Handover {
    /// The destination that the flags name. With `--dev` and without a token file it is a context.
    pub(crate) fn new(run: &RunArgs, api: SocketAddr, is_tls: bool) -> Result<Self> {
        let wants_context = run.dev || run.context_file.is_some();
        let context_file = if wants_context && run.token_file.is_none() {
            Some(ServerContexts::path(run.context_file.as_deref())?)
        } else {
            run.context_file.clone()
        };
        let scheme = if is_tls { "https" } else { "http" };
        Ok(Self {
            token_file: run.token_file.clone(),
            context_file,
            context: run.context.clone(),
            api_url: format!("{scheme}://{}", dialable(api)),
        })
    }

    /// `true` if the flags name a destination.
    pub(crate) fn has_destination(&self) -> bool {
        self.token_file.is_some() || self.context_file.is_some()
    }

    /// Updates the API address in the context of an earlier start.
    pub(crate) fn follow(&self) -> Result<()> {
        let Some(path) = &self.context_file else {
            return Ok(());
        };
        let mut contexts = ServerContexts::load(path)?;
        let Ok(known) = contexts.get(&self.context).cloned() else {
            return Ok(());
        };
        if known.api_url != self.api_url {
            contexts.put(ServerContext {
                api_url: self.api_url.clone(),
                ..known
            });
            contexts.save(path)?;
        }
        Ok(())
    }

    /// Creates a token and writes it to the destination. Returns lines with the paths, for people.
    pub(crate) async fn give(
        &self,
        store: &Store,
        issuer: &Issuer,
        why: &str,
    ) -> Result<Vec<String>> {
        let mut told = Vec::new();
        let token = control_gate::bootstrap::admin_token(store, issuer, why, TOKEN_LIFE_MS)
            .await
            .context("cannot make the admin token")?;
        if let Some(path) = &self.token_file {
            files::write_private(path, &format!("{token}\n"))?;
            told.push(format!("admin token: {}", path.display()));
        }
        if let Some(path) = &self.context_file {
            let mut contexts = ServerContexts::load(path)?;
            contexts.put(ServerContext {
                name: self.context.clone(),
                api_url: self.api_url.clone(),
                api_token: Some(SecretText::new(token)),
                token_file: None,
                ca_file: None,
                default_project: None,
            });
            contexts.switch(&self.context)?;
            contexts.save(path)?;
            told.push(format!("context {:?}: {}", self.context, path.display()));
        }
        Ok(told)
    }
}

/// An address that can be dialled: the loopback address in place of the unspecified one.
pub(crate) fn dialable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let loopback = if address.is_ipv4() {
        std::net::Ipv4Addr::LOCALHOST.into()
    } else {
        std::net::Ipv6Addr::LOCALHOST.into()
    };
    SocketAddr::new(loopback, address.port())
}
