//! Routes a method to its service and authorises the caller.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use proto_identity::CallerKind;

use crate::method::MethodSpec;
use crate::peer::Peer;
use crate::responder::Responder;
use crate::status::LinkStatus;

/// The future of [`Service::call`].
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<(), LinkStatus>> + Send + 'a>>;

/// A service of the mesh. The generated `XServer` types implement it.
pub trait Service: Send + Sync + 'static {
    /// The methods that it serves.
    fn methods(&self) -> &'static [&'static MethodSpec];

    /// Serves one call of one of its methods. The future is dropped when the caller cancels.
    fn call<'a>(
        &'a self,
        method: &'static MethodSpec,
        peer: &'a Peer,
        request: Bytes,
        out: &'a mut Responder,
    ) -> CallFuture<'a>;
}

/// The services of one server.
#[derive(Clone, Default)]
pub struct Router {
    methods: BTreeMap<&'static str, (&'static MethodSpec, Arc<dyn Service>)>,
}

impl Router {
    /// An empty router.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service.
    #[must_use]
    #[expect(
        clippy::should_implement_trait,
        reason = "a builder's word, as in `tonic`"
    )]
    pub fn add(mut self, service: impl Service) -> Self {
        let service: Arc<dyn Service> = Arc::new(service);
        for spec in service.methods() {
            self.methods.insert(spec.path, (spec, service.clone()));
        }
        self
    }

    /// Every method, by path.
    pub fn methods(&self) -> impl Iterator<Item = &'static MethodSpec> + '_ {
        self.methods.values().map(|(spec, _)| *spec)
    }

    /// Checks the caller's kind against the method's `callers`. No other place does.
    ///
    /// # Errors
    /// `Unauthenticated` for an anonymous caller that may not call the method or names an unknown
    /// one; `PermissionDenied` for another kind of caller; `Unimplemented` for an unknown method.
    pub fn admit(
        &self,
        path: &str,
        caller: CallerKind,
    ) -> Result<(&'static MethodSpec, &dyn Service), LinkStatus> {
        // Callers without a certificate get the same answer for unknown and forbidden methods, so
        // that they cannot enumerate methods.
        let refused = || match caller {
            CallerKind::Anonymous => LinkStatus::unauthenticated("a certificate is required"),
            _ => LinkStatus::permission_denied("this kind of caller may not call the method"),
        };
        match self.methods.get(path) {
            Some((spec, service)) if spec.callers.contains(&caller) => Ok((spec, service.as_ref())),
            Some(_) => Err(refused()),
            None if caller == CallerKind::Anonymous => Err(refused()),
            None => Err(LinkStatus::unimplemented("no such method")),
        }
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.methods.keys()).finish()
    }
}

/// Decodes a request; generated code calls it.
pub fn decode_request<M: prost::Message + Default>(bytes: &[u8]) -> Result<M, LinkStatus> {
    M::decode(bytes).map_err(|_| LinkStatus::invalid_argument("the request does not decode"))
}
