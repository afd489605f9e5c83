//! Invites into tenants and projects, for both services.

use std::sync::Arc;

use control_convert::invite;
use control_gate::Caller;
use control_gate::StateDirectory;
use control_gate::principal::standing;
use control_gate::refusal::{of_state, of_store, refused};
use control_pki::{PkiError, invite_id};
use control_state::query::{invite_is_backed, owns};
use control_state::{
    AcceptInvite, DeleteInvite, ErrorCode, Invite, InvitePlace, InviteTo, StateError, Tables,
    Token, Warrant,
};
use proto_public::api::v2;
use proto_types::TokenId;
use tonic::Status;

use crate::services::Services;

/// An invite with its secret.
pub(super) struct Shown {
    pub(super) invite: Arc<Invite>,
    pub(super) secret: String,
}

impl Services {
    /// Makes an invite.
    pub(super) async fn make_invite(&self, caller: &Caller, to: InviteTo) -> Result<Shown, Status> {
        let place = to.place();
        let warrant = self
            .gate
            .read(caller, |tables| Ok(rests_on(tables, caller, &place)));
        let warrant = warrant.await?;
        let pki = &self.node.pki;
        let made = pki.create_invite(&caller.permit, &caller.user, to, warrant);
        let (invite, secret) = made.await.map_err(of_pki)?;
        Ok(Shown { invite, secret })
    }

    /// The open invites into a place, with their secrets.
    pub(super) async fn invites(
        &self,
        caller: &Caller,
        place: &InvitePlace,
    ) -> Result<Vec<Shown>, Status> {
        let now = self.gate.now();
        let found: Vec<Arc<Invite>> = self
            .gate
            .read(caller, |tables| {
                let all = tables.all::<Invite>();
                let open =
                    all.filter(|invite| invite.to.place() == *place && now < invite.expires_at);
                let open = open.filter(|invite| is_backed(tables, &self.gate.provider, invite));
                Ok(open.cloned().collect())
            })
            .await?;
        let shown = |invite: Arc<Invite>| {
            let secret = self.node.pki.invite_secret(&invite).map_err(of_pki)?;
            Ok(Shown { invite, secret })
        };
        found.into_iter().map(shown).collect()
    }

    /// The open invite of a secret, converted by `show`.
    ///
    /// # Errors
    /// The same `not_found` if there is no such invite and if `show` finds it to be of another kind,
    /// so that callers do not learn which secrets exist.
    pub(super) async fn invite_of<T>(
        &self,
        caller: &Caller,
        secret: &str,
        show: impl FnOnce(&Tables, &Shown) -> Option<T>,
    ) -> Result<T, Status> {
        let (id, now) = (invite_id(secret), self.gate.now());
        let found = self.gate.read(caller, |tables| {
            let is_open = |invite: &&Arc<Invite>| {
                now < invite.expires_at && is_backed(tables, &self.gate.provider, invite)
            };
            let invite = tables.get::<Invite>(&id).filter(is_open);
            let shown = invite.map(|invite| Shown {
                invite: Arc::clone(invite),
                secret: secret.to_owned(),
            });
            let found = shown.and_then(|shown| show(tables, &shown));
            found.ok_or_else(unknown)
        });
        found.await
    }

    /// Accepts an invite: the caller becomes a member.
    pub(super) async fn accept(
        &self,
        caller: &Caller,
        secret: &str,
    ) -> Result<Arc<Invite>, Status> {
        let op = AcceptInvite {
            id: invite_id(secret),
            member: caller.login()?,
        };
        let reply = self.gate.propose(caller, op).await?;
        reply.invite().map_err(of_state)
    }

    /// Deletes an invite before it is accepted.
    pub(super) async fn uninvite(
        &self,
        caller: &Caller,
        place: InvitePlace,
        secret: &str,
    ) -> Result<(), Status> {
        let id = invite_id(secret);
        let op = DeleteInvite { id, place };
        self.gate.propose(caller, op).await.map(drop)
    }
}

/// The standing on which the caller's invite rests: that of its token, or its own as an
/// administrator. `None` means that the caller owns the place, which is enough.
fn rests_on(tables: &Tables, caller: &Caller, place: &InvitePlace) -> Option<Warrant> {
    let id: Option<TokenId> = caller.principal.token.parse().ok();
    let own = id.and_then(|id| tables.get::<Token>(&id));
    let warrant = own.and_then(|token| token.warrant.clone());
    match warrant {
        Some(warrant) => Some(warrant),
        None if owns(tables, &caller.user, place) => None,
        None => Some(Warrant::Members([caller.user.clone()].into())),
    }
}

/// `true` if the maker of an invite could make it now.
fn is_backed(tables: &Tables, provider: &str, invite: &Invite) -> bool {
    let directory = StateDirectory { tables, provider };
    let stands = |warrant| {
        let standing = standing(Some(warrant), &invite.invited_by, &directory);
        standing == Some(v2::AdminRole::Editor)
    };
    invite_is_backed(tables, invite) && invite.warrant.as_ref().is_none_or(stands)
}

fn unknown() -> StateError {
    let what = "there is no such invite, or it is over, or was accepted";
    StateError::new(ErrorCode::NotFound, what).hint("ask for another one")
}

/// An invite into a tenant, with its secret. `None` means that it leads into a project.
pub(super) fn tenant_invite(tables: &Tables, shown: &Shown) -> Option<v2::TenantInvite> {
    Some(v2::TenantInvite {
        secret: shown.secret.clone(),
        ..invite::tenant_invite(tables, &shown.invite)?
    })
}

/// An invite into a project, with its secret. `None` means that it leads into a tenant.
pub(super) fn project_invite(tables: &Tables, shown: &Shown) -> Option<v2::ProjectInvite> {
    Some(v2::ProjectInvite {
        secret: shown.secret.clone(),
        ..invite::project_invite(tables, &shown.invite)?
    })
}

fn of_pki(error: PkiError) -> Status {
    match error {
        PkiError::Store(error) => of_store(error),
        PkiError::Refused(error) => of_state(error),
        other => {
            tracing::error!(error = %other, "an invite could not be made or read");
            refused(ErrorCode::Internal, "the invite could not be made or read")
        }
    }
}
