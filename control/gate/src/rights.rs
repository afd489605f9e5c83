//! Authorises streams and long calls again while they run.

use std::net::IpAddr;
use std::sync::Arc;

use control_authz::{Principal, project_role, tenant_role};
use control_state::{ErrorCode, Kind, Tables, Token};
use proto_public::api::v2::{AdminRole, ProjectRole, TenantRole};
use proto_types::{Timestamp, TokenId};
use tonic::Status;

use crate::caller::{Caller, PARTITION_LABEL, manages};
use crate::context::ServiceContext;
use crate::directory::StateDirectory;
use crate::looked::Looked;
use crate::principal::{principal, standing};
use crate::refusal::{of_denied, of_store, refused};

/// Request fields that name the subject of a method.
const LOGIN: &str = "login";
const PROJECT: &str = "project";

/// `true` for kinds of objects that decide about rights: a change of one makes streams authorise
/// again.
pub const fn bears_rights(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Token | Kind::Tenant | Kind::Project | Kind::Policy
    )
}

/// The rights that a stream or long call needs, authorised again by [`Rights::look`].
#[derive(Debug)]
pub struct Rights {
    token: TokenId,
    user: String,
    /// The method of the stream itself, and its subject.
    path: &'static str,
    subject: Option<String>,
    /// Request field that names the subject.
    about: Option<&'static str>,
    /// Paths of read methods that must be allowed as well.
    reads: Vec<&'static str>,
    /// Inputs of the site policies.
    partition: Option<String>,
    address: Option<IpAddr>,
    request: Option<Arc<serde_json::Value>>,
    /// Result of the last check; `None` before the first.
    known: Option<RightsSnapshot>,
}

/// The token and roles that the last check found.
#[derive(Debug)]
struct RightsSnapshot {
    token: Arc<Token>,
    standing: Option<AdminRole>,
    principal: Principal,
    roles: (Option<TenantRole>, Option<ProjectRole>),
}

impl Rights {
    /// The rights that `caller` needs for the stream of its own method.
    ///
    /// # Errors
    /// `unauthenticated` without a token.
    pub fn of_method(caller: &Caller) -> Result<Self, Status> {
        Self::with_reads(caller, Vec::new())
    }

    /// The rights that `caller` needs for its own method and, of the same subject, these reads.
    ///
    /// # Errors
    /// `unauthenticated` without a token.
    pub fn with_reads(caller: &Caller, mut reads: Vec<&'static str>) -> Result<Self, Status> {
        let unknown = || refused(ErrorCode::Unauthenticated, "a token is needed");
        reads.sort_unstable();
        reads.dedup();
        let path = caller.permit.path().ok_or_else(unknown)?;
        Ok(Self {
            token: caller.principal.token.parse().map_err(|_| unknown())?,
            user: caller.user.clone(),
            path,
            about: proto_public::method(path).and_then(|method| method.scope.subject_field()),
            subject: caller.permit.subject().map(str::to_owned),
            reads,
            partition: caller.partition.clone(),
            address: caller.address,
            request: caller.request.clone(),
            known: None,
        })
    }

    /// As [`Caller::manages`].
    pub fn manages(&self, token: &Token) -> bool {
        manages(&self.user, self.partition.as_ref(), token)
    }

    /// Authorises again, and checks that the caller still sees the same objects as at the
    /// beginning.
    ///
    /// # Errors
    /// The refusal that a read would get now; [`ErrorCode::WatchRightsChanged`] when a read would
    /// show other objects than at the beginning.
    pub fn look(
        &mut self,
        tables: &Tables,
        core: &ServiceContext,
        now: Timestamp,
    ) -> Result<(), Status> {
        let token = tables
            .get::<Token>(&self.token)
            .filter(|token| token.user == self.user && token.is_valid(now))
            .ok_or_else(|| {
                let message = "the token is not valid any more";
                refused(ErrorCode::TokenRevoked, message)
            })?;
        // The stream answers for the partition that the token was bound to when it began.
        if token.meta.labels.get(PARTITION_LABEL) != self.partition.as_ref() {
            let message = "the token was bound to another partition";
            return Err(refused(ErrorCode::WatchRightsChanged, message));
        }
        // The token must be read each time: a revoked token still has a valid signature.
        let provider = core.provider.as_str();
        let directory = StateDirectory { tables, provider };
        let standing = standing(token.warrant.as_ref(), &token.user, &directory);
        // Building a principal parses every permission. Streams check before each message, so the
        // principal is built again only if the token or the standing behind it changed.
        let unchanged =
            |known: &RightsSnapshot| Arc::ptr_eq(&known.token, token) && known.standing == standing;
        let fresh = match &self.known {
            Some(known) if unchanged(known) => None,
            _ => Some(principal(token, &directory)),
        };
        let who = match (&fresh, &self.known) {
            (Some(fresh), _) => fresh,
            (None, Some(known)) => &known.principal,
            (None, None) => return Err(refused(ErrorCode::Internal, "no principal")),
        };
        let looked = Looked {
            policies: &core.policies,
            tables,
            provider,
            who,
            address: self.address,
            partition: self.partition.as_deref(),
            now,
        };
        let subject = self.subject.as_deref();
        let own = looked.decide(self.path, subject, self.request.as_deref());
        own.map_err(of_denied)?;
        let roles = self.roles(&directory);
        // More rights end the stream as well: its listing left out objects that the caller may read
        // now, and no change event would ever tell of them.
        let is_other = |known: &RightsSnapshot| known.roles != roles || known.principal != *who;
        if self.known.as_ref().is_some_and(is_other) {
            let message = "the rights of this watch changed";
            return Err(refused(ErrorCode::WatchRightsChanged, message));
        }
        for path in &self.reads {
            looked.decide(path, subject, None).map_err(of_denied)?;
        }
        // Stored only after every check passed, so that a refused look cannot become the baseline.
        if let Some(principal) = fresh {
            self.known = Some(RightsSnapshot {
                token: Arc::clone(token),
                standing,
                principal,
                roles,
            });
        }
        Ok(())
    }

    /// The user's roles in the subject. They decide which objects a read shows.
    fn roles(&self, directory: &StateDirectory<'_>) -> (Option<TenantRole>, Option<ProjectRole>) {
        let subject = self.subject.as_deref().unwrap_or_default();
        match self.about {
            Some(LOGIN) => (tenant_role(directory, &self.user, subject), None),
            Some(PROJECT) => (None, project_role(directory, &self.user, subject)),
            _ => (None, None),
        }
    }

    /// `true` if the caller may call this read, with the principal of the last check.
    pub fn allows(
        &self,
        tables: &Tables,
        core: &ServiceContext,
        path: &str,
        subject: &str,
    ) -> bool {
        self.known.as_ref().is_some_and(|known| {
            let looked = Looked {
                policies: &core.policies,
                tables,
                provider: &core.provider,
                who: &known.principal,
                address: self.address,
                partition: self.partition.as_deref(),
                now: core.now(),
            };
            looked.decide(path, Some(subject), None).is_ok()
        })
    }

    /// The caller, as of the last check.
    pub fn principal(&self) -> Option<&Principal> {
        self.known.as_ref().map(|known| &known.principal)
    }

    /// Expiry of the token, as of the last check.
    pub fn expires(&self) -> Option<Timestamp> {
        self.known.as_ref().map(|known| known.token.expires)
    }
}

impl ServiceContext {
    /// Authorises a call again after long work: its token may have been revoked, or its role taken
    /// away, since the gate admitted it.
    ///
    /// # Errors
    /// The refusal that the call would get now.
    pub async fn still_allows(&self, caller: &Caller) -> Result<(), Status> {
        let mut rights = Rights::of_method(caller)?;
        let look = |tables: &Tables| rights.look(tables, self, self.now());
        self.store.read(look).await.map_err(of_store)?
    }
}
