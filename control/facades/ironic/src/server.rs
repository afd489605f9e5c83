//! The facade: from a request to its answer.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use control_authz::FacadeMethod;
use control_front::HttpFacade;
use control_gate::{FacadeCall, FacadeRequest, ServiceContext};
use http::header::HOST;
use http::request::Parts;
use http::{Response, StatusCode};
use proto_types::ProjectId;
use serde_json::Value;
use tonic::Code;
use url::form_urlencoded;

use crate::access::{AccessPolicy, FacadeCaller, FacadeCredential};
use crate::answer::IronicAnswer;
use crate::error::{ErrorShape, IronicError};
use crate::keystone::{self, IdentityRequest};
use crate::request::{IronicCall, Parameters};
use crate::response::{ResponseHead, refusal, response};
use crate::route::IronicRoute;
use crate::routes::{self, RouteMatch};
use crate::secrets::without_secrets;
use crate::settings::IronicSettings;
use crate::version::ApiVersion;
use crate::versions::discovery;

/// Most parameters of a query; a request with more is refused.
const QUERY_MAX: usize = 64;

/// Ironic's API over the state.
#[derive(Debug)]
pub struct IronicFacade {
    core: Arc<ServiceContext>,
    policy: AccessPolicy,
    url: Option<String>,
    scheme: &'static str,
    service_project: Option<ProjectId>,
}

/// A request that is answered, without its body.
struct ArrivedRequest<'a> {
    parts: &'a Parts,
    peer: Option<SocketAddr>,
    /// Address of the facade.
    base: String,
    body: Value,
}

/// A route, with the parameters of the request.
struct RoutedRequest {
    route: &'static IronicRoute,
    path: Parameters,
    query: Parameters,
    version: ApiVersion,
}

impl IronicFacade {
    /// The facade over a state.
    pub fn new(core: Arc<ServiceContext>, settings: IronicSettings) -> Self {
        let url = settings
            .url
            .map(|url| url.as_str().trim_end_matches('/').to_owned());
        Self {
            core,
            policy: AccessPolicy::new(settings.policy),
            url,
            scheme: if settings.is_tls { "https" } else { "http" },
            service_project: settings.service_project,
        }
    }

    /// Address by which this client reaches the facade.
    fn base(&self, parts: &Parts) -> String {
        if let Some(url) = &self.url {
            return url.clone();
        }
        let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = named.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
        format!("{}://{}", self.scheme, host.unwrap_or("localhost"))
    }

    async fn baremetal(
        &self,
        arrived: &ArrivedRequest<'_>,
        version: ApiVersion,
    ) -> Result<IronicAnswer, IronicError> {
        let path = arrived.parts.uri.path();
        if let Some(found) = discovery(path, &arrived.base) {
            return Ok(IronicAnswer::ok(found));
        }
        let routed = match routes::find(&arrived.parts.method, path, version) {
            RouteMatch::Found(route, path) => RoutedRequest {
                route,
                path,
                query: query(arrived.parts)?,
                version,
            },
            RouteMatch::OtherVerb => {
                let text = "Method Not Allowed";
                return Err(IronicError::new(StatusCode::METHOD_NOT_ALLOWED, text));
            }
            RouteMatch::Unknown => return Err(IronicError::no_route()),
        };
        let credential = FacadeCredential::of_request(&arrived.parts.headers);
        let credential = credential.ok_or_else(IronicError::unauthenticated)?;
        let (core, peer) = (&self.core, arrived.peer);
        let caller =
            FacadeCaller::authenticate(core, &credential, peer, self.service_project).await?;
        self.routed(arrived, &routed, &caller).await
    }

    /// Runs the handler of an authenticated call, and records the call.
    async fn routed(
        &self,
        arrived: &ArrivedRequest<'_>,
        routed: &RoutedRequest,
        caller: &FacadeCaller,
    ) -> Result<IronicAnswer, IronicError> {
        let method: &'static FacadeMethod = routed.route.method;
        let project = caller.project().map(|project| project.to_string());
        let gate = FacadeCall::begin(
            &self.core,
            &caller.bearer,
            FacadeRequest {
                method,
                project: project.as_deref(),
                target: arrived.parts.uri.path(),
                body: &without_secrets(&arrived.body),
            },
        );
        let call = IronicCall {
            core: &self.core,
            policy: &self.policy,
            caller,
            gate: &gate,
            version: routed.version,
            base: &arrived.base,
            path: &routed.path,
            query: &routed.query,
            body: &arrived.body,
        };
        let answer = (routed.route.run)(&call).await;
        let code = answer.as_ref().map_or_else(IronicError::code, |_| Code::Ok);
        gate.finish(code).await;
        answer
    }

    async fn identity(
        &self,
        arrived: &ArrivedRequest<'_>,
        path: &str,
    ) -> Result<IronicAnswer, IronicError> {
        let request = IdentityRequest {
            core: &self.core,
            service_project: self.service_project,
            base: &arrived.base,
            verb: &arrived.parts.method,
            path,
            headers: &arrived.parts.headers,
            body: &arrived.body,
            peer: arrived.peer,
        };
        keystone::answer(&request).await
    }

    /// The answer of the API that the path belongs to.
    async fn by_area(
        &self,
        arrived: &ArrivedRequest<'_>,
        head: &ResponseHead,
    ) -> Result<IronicAnswer, IronicError> {
        let path = arrived.parts.uri.path();
        match (head.shape, path.strip_prefix(IDENTITY_PREFIX)) {
            (ErrorShape::Identity, Some(below)) => self.identity(arrived, below).await,
            _ => self.baremetal(arrived, head.version).await,
        }
    }
}

/// Prefix of Keystone's paths.
const IDENTITY_PREFIX: &str = "/v3";
/// Prefix of Neutron's paths.
const NETWORK_PREFIX: &str = "/v2.0";

/// The API that a path belongs to, by the shape of its errors.
fn shape(path: &str) -> ErrorShape {
    let is_in = |prefix: &str| {
        let below = path.strip_prefix(prefix);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    if is_in(IDENTITY_PREFIX) {
        ErrorShape::Identity
    } else if is_in(NETWORK_PREFIX) {
        ErrorShape::Network
    } else {
        ErrorShape::Baremetal
    }
}

fn query(parts: &Parts) -> Result<Parameters, IronicError> {
    let text = parts.uri.query().unwrap_or_default();
    let all: Parameters = form_urlencoded::parse(text.as_bytes())
        .take(QUERY_MAX + 1)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    if all.len() > QUERY_MAX {
        let text = format!("the query must have at most {QUERY_MAX} parameters");
        return Err(IronicError::invalid(text));
    }
    Ok(all)
}

fn json(body: &Bytes) -> Result<Value, IronicError> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(body)
        .map_err(|error| IronicError::invalid(format!("the body is not JSON: {error}")))
}

#[tonic::async_trait]
impl HttpFacade for IronicFacade {
    fn screen(&self, head: &Parts) -> Option<Arc<str>> {
        let credential = FacadeCredential::of_request(&head.headers)?;
        self.core.bearer_share(&credential.token)
    }

    async fn answer(
        &self,
        parts: &Parts,
        body: Bytes,
        peer: Option<SocketAddr>,
    ) -> Response<Bytes> {
        let shape = shape(parts.uri.path());
        let version = ApiVersion::of_request(&parts.headers);
        let head = ResponseHead::new(shape, version.as_ref().ok().copied());
        let outcome = match (version, json(&body)) {
            (Err(refused), _) if shape == ErrorShape::Baremetal => Err(refused.error()),
            (_, Err(error)) => Err(error),
            (_, Ok(body)) => {
                let arrived = ArrivedRequest {
                    base: self.base(parts),
                    parts,
                    peer,
                    body,
                };
                self.by_area(&arrived, &head).await
            }
        };
        response(&head, outcome)
    }

    fn refuse(&self, head: &Parts, status: StatusCode, reason: &str) -> Response<Bytes> {
        refused(head, status, reason)
    }
}

/// The refusal of a request by the front, in the shape of the API that its path belongs to.
fn refused(head: &Parts, status: StatusCode, reason: &str) -> Response<Bytes> {
    let version = ApiVersion::of_request(&head.headers).ok();
    let error = IronicError::new(status, reason);
    refusal(&ResponseHead::new(shape(head.uri.path()), version), &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_belong_to_an_api() {
        for (path, expected) in [
            ("/", ErrorShape::Baremetal),
            ("/v1/nodes", ErrorShape::Baremetal),
            ("/nodes", ErrorShape::Baremetal),
            ("/v3", ErrorShape::Identity),
            ("/v3/auth/tokens", ErrorShape::Identity),
            ("/v30", ErrorShape::Baremetal),
            ("/v2.0/networks", ErrorShape::Network),
        ] {
            assert_eq!(shape(path), expected, "{path}");
        }
    }

    #[test]
    fn refusals_of_the_front_have_the_shape_of_their_api() {
        for (path, pointer) in [
            ("/v1/nodes", "/error_message"),
            ("/nonsense", "/error_message"),
            ("/v3/auth/tokens", "/error/message"),
            ("/v2.0/ports", "/NeutronError/message"),
        ] {
            let request = http::Request::post(path).body(()).unwrap();
            let (head, ()) = request.into_parts();
            let answer = refused(&head, StatusCode::PAYLOAD_TOO_LARGE, "too large");
            assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE, "{path}");
            assert_eq!(answer.headers()["content-type"], "application/json");
            let body: Value = serde_json::from_slice(answer.body()).unwrap();
            let found = body.pointer(pointer).and_then(Value::as_str).unwrap();
            assert!(found.contains("too large"), "{path}: {body}");
        }
    }

    #[test]
    fn bodies_are_json_or_absent() {
        assert_eq!(json(&Bytes::new()).unwrap(), Value::Null);
        assert_eq!(
            json(&Bytes::from_static(b"[1]")).unwrap(),
            serde_json::json!([1])
        );
        let refused = json(&Bytes::from_static(b"{")).unwrap_err();
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    }
}
