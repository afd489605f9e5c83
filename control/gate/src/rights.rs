//! Whether the caller of a watch may still see what it shows.

use std::net::IpAddr;
use std::sync::Arc;

use control_authz::{Principal, project_role, tenant_role};
use control_state::{ErrorCode, Kind, Tables, Token};
use proto_public::api::v2::{AdminRole, ProjectRole, TenantRole};
use proto_types::{Timestamp, TokenId};
use tonic::Status;

use crate::caller::Caller;
use crate::context::ServiceContext;
use crate::directory::StateDirectory;
use crate::policy::Looked;
use crate::principal::{principal, standing};
use crate::refusal::{of_denied, of_store, refused};

/// Fields that name whom a method is about.
const LOGIN: &str = "login";
const PROJECT: &str = "project";

/// Objects on which rights rest.
pub const fn bears_rights(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Token | Kind::Tenant | Kind::Project | Kind::Policy
    )
}

/// The rights of a watch.
#[derive(Debug)]
pub struct Rights {
    token: TokenId,
    user: String,
    /// The watch's own method, and whom it is about.
    path: &'static str,
    subject: Option<String>,
    about: Option<&'static str>,
    /// What must be allowed beside it.
    reads: Vec<&'static str>,
    /// What site policies look at.
    partition: Option<String>,
    address: Option<IpAddr>,
    request: Option<Arc<serde_json::Value>>,
    /// At the first look.
    known: Option<Known>,
}

/// What rights came from.
#[derive(Debug)]
struct Known {
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
            about: proto_public::method(path).and_then(|it| it.scope.subject_field()),
            subject: caller.permit.subject().map(str::to_owned),
            reads,
            partition: caller.partition.clone(),
            address: caller.address,
            request: caller.request.clone(),
            known: None,
        })
    }

    /// Looks whether the caller may still see what it watches, and sees as much as before.
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
        let provider = core.provider.as_str();
        let directory = StateDirectory { tables, provider };
        let standing = standing(token.warrant.as_ref(), &token.user, &directory);
        let unchanged =
            |known: &Known| Arc::ptr_eq(&known.token, token) && known.standing == standing;
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
        let is_other = |known: &Known| known.roles != roles || known.principal != *who;
        if self.known.as_ref().is_some_and(is_other) {
            let message = "the rights of this watch changed";
            return Err(refused(ErrorCode::WatchRightsChanged, message));
        }
        for path in &self.reads {
            looked.decide(path, subject, None).map_err(of_denied)?;
        }
        if let Some(principal) = fresh {
            self.known = Some(Known {
                token: Arc::clone(token),
                standing,
                principal,
                roles,
            });
        }
        Ok(())
    }

    /// The user's roles in what the watch is about.
    fn roles(&self, directory: &StateDirectory<'_>) -> (Option<TenantRole>, Option<ProjectRole>) {
        let subject = self.subject.as_deref().unwrap_or_default();
        match self.about {
            Some(LOGIN) => (tenant_role(directory, &self.user, subject), None),
            Some(PROJECT) => (None, project_role(directory, &self.user, subject)),
            _ => (None, None),
        }
    }

    /// Decides about a read beside the watch, as of the last look.
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

    /// Who watches, as of the last look.
    pub fn principal(&self) -> Option<&Principal> {
        self.known.as_ref().map(|known| &known.principal)
    }

    /// When the token ends, as of the last look.
    pub fn expires(&self) -> Option<Timestamp> {
        self.known.as_ref().map(|known| known.token.expires)
    }
}

impl ServiceContext {
    /// Decides again whether a caller may make its call, after work that took long: its token may
    /// have been revoked, or its role taken away, since the gate let it in.
    ///
    /// # Errors
    /// The refusal that the call would get now.
    pub async fn still_allows(&self, caller: &Caller) -> Result<(), Status> {
        let mut rights = Rights::of_method(caller)?;
        let look = |tables: &Tables| rights.look(tables, self, self.now());
        self.store.read(look).await.map_err(of_store)?
    }
}
