//! The connection: bearer token, retries, and the generated clients over it.

use std::fs;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh_admin;
use proto_public::metalmesh::tenant::v1 as mesh_tenant;
use tonic::body::Body;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Error};
use tonic::{Code, Status};
use tower::{Service, ServiceExt};

use crate::error::ClientError;
use crate::settings::ClientSettings;

/// Most attempts of a call, including the first one. The last error is returned.
pub const CALL_ATTEMPTS: u32 = 5;
/// Pause before the second attempt. It doubles for each further attempt; half of it is jitter.
const BACKOFF_FIRST: Duration = Duration::from_millis(200);
/// Longest pause between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// Longest time to open a connection; then the attempt fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer, bytes: a list of all machines. A larger one fails the call.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Prefixes of the names of methods that only read, which are safe to retry.
const READS: [&str; 9] = [
    "Get",
    "List",
    "Latest",
    "Match",
    "Issues",
    "Capacity",
    "Try",
    "InviteGet",
    "TokenScoped",
];

/// A connection with a bearer token. Cheap to clone: clones share the connection.
#[derive(Debug, Clone)]
pub struct ApiSession {
    channel: Channel,
    authorization: Option<HeaderValue>,
    dry_run: bool,
}

impl ApiSession {
    /// Prepares a connection; it opens with the first call.
    ///
    /// # Errors
    /// The address is not a URL, or the authority's file or the token cannot be used.
    pub fn new(settings: &ClientSettings) -> Result<Self, ClientError> {
        let bad_url = || ClientError::Url(settings.api_url.clone());
        let mut endpoint = Endpoint::from_shared(settings.api_url.clone())
            .map_err(|_| bad_url())?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(Duration::from_secs(15))
            .keep_alive_timeout(Duration::from_secs(10))
            .user_agent(concat!("metalmesh/", env!("CARGO_PKG_VERSION")))
            .map_err(|_| bad_url())?;
        match endpoint.uri().scheme_str() {
            Some("http") => {}
            Some("https") => {
                let tls = tls_config(settings)?;
                endpoint = endpoint
                    .tls_config(tls)
                    .map_err(|error| ClientError::Tls(settings.api_url.clone(), error))?;
            }
            _ => return Err(bad_url()),
        }
        let authorization = settings
            .token
            .as_ref()
            .map(|token| bearer(token.expose()).ok_or(ClientError::Token("the context".into())))
            .transpose()?;
        Ok(Self {
            channel: endpoint.connect_lazy(),
            authorization,
            dry_run: settings.dry_run,
        })
    }

    async fn send(self, request: Request<Body>) -> Result<Response<Body>, Error> {
        let (mut parts, body) = request.into_parts();
        if self.dry_run && !is_read(parts.uri.path()) {
            parts.uri = tried(&parts.uri);
        }
        if let Some(authorization) = &self.authorization {
            parts.headers.insert(AUTHORIZATION, authorization.clone());
        }
        // The body is kept in memory, so that a retry can send it again. A body that cannot be
        // collected is sent empty, and the server refuses it.
        let body = body
            .collect()
            .await
            .map(|all| all.to_bytes())
            .unwrap_or_default();
        let repeatable = is_read(parts.uri.path()) || parts.headers.contains_key("idempotency-key");
        let mut pause = BACKOFF_FIRST;
        for attempt in 1.. {
            let outcome = self.send_once(&parts, body.clone()).await;
            // A call that may change something is retried only if it was never sent: the server may
            // have carried it out although the answer was lost.
            let again = match &outcome {
                Ok(response) => repeatable && is_unavailable(response),
                Err(error) => repeatable || never_sent(error),
            };
            if !again || attempt >= CALL_ATTEMPTS {
                return outcome;
            }
            tracing::debug!(
                attempt,
                path = parts.uri.path(),
                "the server is away, retrying"
            );
            tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..=1.0))).await;
            pause = (pause * 2).min(BACKOFF_MAX);
        }
        unreachable!("the loop has no other end")
    }

    async fn send_once(
        &self,
        parts: &http::request::Parts,
        body: Bytes,
    ) -> Result<Response<Body>, Error> {
        let request = Request::from_parts(parts.clone(), Body::new(Full::new(body)));
        self.channel
            .clone()
            .ready_oneshot()
            .await?
            .call(request)
            .await
    }
}

impl Service<Request<Body>> for ApiSession {
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

fn tls_config(settings: &ClientSettings) -> Result<ClientTlsConfig, ClientError> {
    let tls = ClientTlsConfig::new();
    let Some(path) = &settings.ca_file else {
        return Ok(tls.with_native_roots());
    };
    let pem = fs::read(path).map_err(|source| ClientError::File {
        action: "read",
        path: path.clone(),
        source,
    })?;
    Ok(tls.ca_certificate(Certificate::from_pem(pem)))
}

fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn is_read(path: &str) -> bool {
    let method = path.rsplit('/').next().unwrap_or_default();
    READS.iter().any(|word| method.starts_with(word))
}

/// The URI of the same call as a dry run: the server answers, but changes nothing.
fn tried(uri: &Uri) -> Uri {
    let mut parts = uri.clone().into_parts();
    // The result is valid, as a prefix before a valid path gives a valid path.
    parts.path_and_query = format!("/dry-run{}", uri.path()).parse().ok();
    Uri::from_parts(parts).unwrap_or_default()
}

/// `true` if the server answered that it is unavailable.
fn is_unavailable(response: &Response<Body>) -> bool {
    Status::from_header_map(response.headers())
        .is_some_and(|status| status.code() == Code::Unavailable)
}

/// `true` if the connection was refused, so that the call was not sent.
fn never_sent(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return io.kind() == std::io::ErrorKind::ConnectionRefused;
        }
        source = error.source();
    }
    false
}

/// The services of a server.
#[derive(Debug, Clone)]
pub struct Client {
    session: ApiSession,
}

macro_rules! services {
    ($($(#[$doc:meta])* $name:ident: $module:ident :: $client_module:ident :: $client:ident;)*) => {
        impl Client {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> $module::$client_module::$client<ApiSession> {
                    $module::$client_module::$client::new(self.session.clone())
                        .max_decoding_message_size(ANSWER_BYTES_MAX)
                }
            )*
        }
    };
}

impl Client {
    /// Prepares a connection; it opens with the first call.
    ///
    /// # Errors
    /// As [`ApiSession::new`].
    pub fn new(settings: &ClientSettings) -> Result<Self, ClientError> {
        Ok(Self {
            session: ApiSession::new(settings)?,
        })
    }

    /// The connection, for services that have no accessor here.
    pub fn session(&self) -> ApiSession {
        self.session.clone()
    }
}

services! {
    /// Audit records of a tenant.
    audits: api::audit_service_client::AuditServiceClient;
    /// Filesystem layouts.
    filesystems: api::filesystem_service_client::FilesystemServiceClient;
    /// Health of the control plane.
    health: api::health_service_client::HealthServiceClient;
    /// Operating system images.
    images: api::image_service_client::ImageServiceClient;
    /// IP addresses of a project.
    ips: api::ip_service_client::IpServiceClient;
    /// Machines of a project.
    machines: api::machine_service_client::MachineServiceClient;
    /// Methods of the API.
    methods: api::method_service_client::MethodServiceClient;
    /// Networks of a project.
    networks: api::network_service_client::NetworkServiceClient;
    /// Partitions.
    partitions: api::partition_service_client::PartitionServiceClient;
    /// Projects.
    projects: api::project_service_client::ProjectServiceClient;
    /// Images that a size can run.
    size_image_constraints: api::size_image_constraint_service_client::SizeImageConstraintServiceClient;
    /// Reservations of machines for a project.
    size_reservations: api::size_reservation_service_client::SizeReservationServiceClient;
    /// Sizes of machines.
    sizes: api::size_service_client::SizeServiceClient;
    /// Tenants.
    tenants: api::tenant_service_client::TenantServiceClient;
    /// The caller's own tokens.
    tokens: api::token_service_client::TokenServiceClient;
    /// The caller.
    users: api::user_service_client::UserServiceClient;
    /// The server's version.
    version: api::version_service_client::VersionServiceClient;
    /// All audit records.
    admin_audits: admin::audit_service_client::AuditServiceClient;
    /// Components of the published stack.
    admin_components: admin::component_service_client::ComponentServiceClient;
    /// Filesystem layouts, for administrators.
    admin_filesystems: admin::filesystem_service_client::FilesystemServiceClient;
    /// Images, for administrators.
    admin_images: admin::image_service_client::ImageServiceClient;
    /// All IP addresses.
    admin_ips: admin::ip_service_client::IpServiceClient;
    /// All machines.
    admin_machines: admin::machine_service_client::MachineServiceClient;
    /// All networks.
    admin_networks: admin::network_service_client::NetworkServiceClient;
    /// Partitions, for administrators.
    admin_partitions: admin::partition_service_client::PartitionServiceClient;
    /// All projects.
    admin_projects: admin::project_service_client::ProjectServiceClient;
    /// Images that sizes can run, for administrators.
    admin_size_image_constraints:
        admin::size_image_constraint_service_client::SizeImageConstraintServiceClient;
    /// All size reservations.
    admin_size_reservations: admin::size_reservation_service_client::SizeReservationServiceClient;
    /// Sizes, for administrators.
    admin_sizes: admin::size_service_client::SizeServiceClient;
    /// Switches.
    admin_switches: admin::switch_service_client::SwitchServiceClient;
    /// Background tasks.
    admin_tasks: admin::task_service_client::TaskServiceClient;
    /// All tenants.
    admin_tenants: admin::tenant_service_client::TenantServiceClient;
    /// All tokens.
    admin_tokens: admin::token_service_client::TokenServiceClient;
    /// The audit trail with its hashes.
    audit_trail: mesh_admin::audit_trail_service_client::AuditTrailServiceClient;
    /// The VPN by which operators reach firewalls.
    admin_vpn: admin::vpn_service_client::VpnServiceClient;
    /// The control nodes.
    clusters: mesh_admin::cluster_service_client::ClusterServiceClient;
    /// Reports of control nodes on themselves.
    doctor: mesh_admin::doctor_service_client::DoctorServiceClient;
    /// Built-in users.
    login_users: mesh_admin::login_user_service_client::LoginUserServiceClient;
    /// Times of the last use of tokens.
    token_uses: mesh_admin::token_use_service_client::TokenUseServiceClient;
    /// Site policies.
    policies: mesh_admin::policy_service_client::PolicyServiceClient;
    /// Switches with desired beside observed state.
    fabric: mesh_admin::fabric_service_client::FabricServiceClient;
    /// The release of the agent that firewalls are to run.
    firewall_releases: mesh_admin::firewall_release_service_client::FirewallReleaseServiceClient;
    /// Rollouts of agents' releases in waves.
    rollouts: mesh_admin::rollout_service_client::RolloutServiceClient;
    /// Firewall rules of a project.
    firewall_rules: mesh_admin::firewall_rules_service_client::FirewallRulesServiceClient;
    /// Firewall rules of the operator.
    operator_rules: mesh_admin::operator_rules_service_client::OperatorRulesServiceClient;
    /// Machines that a project owns or leases.
    leases: mesh_admin::lease_service_client::LeaseServiceClient;
    /// Owners and leases of all machines.
    operator_leases: mesh_admin::operator_lease_service_client::OperatorLeaseServiceClient;
    /// Node allocations of a project.
    node_allocations: mesh_admin::node_allocation_service_client::NodeAllocationServiceClient;
    /// All node allocations.
    operator_node_allocations:
        mesh_admin::operator_node_allocation_service_client::OperatorNodeAllocationServiceClient;
    /// Quotas of tenants and projects.
    quotas: mesh_admin::quota_service_client::QuotaServiceClient;
    /// Settings of the cluster.
    settings: mesh_admin::settings_service_client::SettingsServiceClient;
    /// Join tickets of agents.
    joins: mesh_admin::join_service_client::JoinServiceClient;
    /// The certificate authority.
    authority: mesh_admin::ca_service_client::CaServiceClient;
    /// Components that work for one project.
    project_components: mesh_admin::project_component_service_client::ProjectComponentServiceClient;
    /// Identities of agents and machines.
    identities: mesh_admin::identity_service_client::IdentityServiceClient;
    /// Claims of BMCs to machines.
    bmc_claims: mesh_admin::bmc_claim_service_client::BmcClaimServiceClient;
    /// Claims of a project.
    claims: mesh_tenant::claim_service_client::ClaimServiceClient;
    /// Pools of hosts that projects claim.
    pools: mesh_admin::pool_service_client::PoolServiceClient;
    /// Backups of the whole state.
    backups: mesh_admin::backup_service_client::BackupServiceClient;
    /// Watches. [`crate::ObjectWatch`] is one that resumes after a disconnect.
    watches: mesh_admin::watch_service_client::WatchServiceClient;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reads_are_repeated_blindly() {
        for (path, read) in [
            ("/metalstack.api.v2.MachineService/Get", true),
            ("/metalstack.api.v2.MachineService/List", true),
            ("/metalstack.api.v2.NetworkService/ListBaseNetworks", true),
            ("/metalstack.api.v2.MachineService/Create", false),
            ("/metalstack.api.v2.MachineService/Delete", false),
            ("/metalstack.admin.v2.MachineService/SetState", false),
        ] {
            assert_eq!(is_read(path), read, "{path}");
        }
    }

    #[test]
    fn bad_addresses() {
        for url in ["", "nonsense", "ftp://x", "http://"] {
            assert!(
                ApiSession::new(&ClientSettings::new(url)).is_err(),
                "{url:?}"
            );
        }
    }

    #[test]
    fn the_token_stays_hidden() {
        let settings = ClientSettings::new("http://127.0.0.1:1").with_token("very-secret");
        assert!(!format!("{settings:?}").contains("very-secret"));
        assert_eq!(format!("{:?}", bearer("very-secret").unwrap()), "Sensitive");
    }
}
