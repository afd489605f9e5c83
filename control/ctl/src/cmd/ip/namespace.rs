//! The namespace of an address, which requests carry in a header.

use anyhow::{Context as _, Result};
use clap::Args;
use tonic::Request;
use tonic::metadata::MetadataValue;

use crate::app::App;

/// Request header with the namespace of the address.
const NAMESPACE: &str = "metalmesh-namespace";
/// Value for addresses outside of any namespace.
const NO_NAMESPACE: &str = "none";

/// Flag with the namespace of an address.
#[derive(Debug, Args)]
pub(crate) struct IpNamespaceArgs {
    /// Project whose namespace has the address, or none. Needed if the project has the address in
    /// several networks.
    #[arg(long, value_name = "PROJECT")]
    namespace: Option<String>,
}

impl IpNamespaceArgs {
    /// Id of the namespace. `None` means no flag, or the value `none`.
    pub(super) async fn id(&self, app: &App) -> Result<Option<String>> {
        match self.namespace.as_deref() {
            None | Some(NO_NAMESPACE) => Ok(None),
            Some(project) => app.project_id(project).await.map(Some),
        }
    }

    /// A request with the namespace in a header, as its message has no field for it.
    pub(super) async fn request<T>(&self, app: &App, message: T) -> Result<Request<T>> {
        let mut request = Request::new(message);
        if self.namespace.is_some() {
            let id = self.id(app).await?;
            let value = MetadataValue::try_from(id.as_deref().unwrap_or(NO_NAMESPACE))
                .context("the namespace has characters that a header cannot carry")?;
            request.metadata_mut().insert(NAMESPACE, value);
        }
        Ok(request)
    }
}
