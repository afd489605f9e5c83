//! Invites into tenants and projects: what both services have in common.

use std::sync::Arc;

use control_pki::{PkiError, invite_id};
use control_state::{
    AcceptInvite, DeleteInvite, ErrorCode, Invite, InvitePlace, InviteTo, StateError, Tables,
};
use proto_public::api::v2;
use tonic::Status;

use super::Services;
use crate::caller::Caller;
use crate::convert::invite;
use crate::refusal::{of_state, of_store, refused};

/// An invite, and the secret that it is known by.
pub(super) struct Shown {
    pub(super) invite: Arc<Invite>,
    pub(super) secret: String,
}

impl Services {
    /// Makes an invite.
    pub(super) async fn make_invite(&self, caller: &Caller, to: InviteTo) -> Result<Shown, Status> {
        let made = self.0.pki.create_invite(&caller.permit, &caller.user, to);
        let (invite, secret) = made.await.map_err(of_pki)?;
        Ok(Shown { invite, secret })
    }

    /// The open invites into a place, with their secrets.
    pub(super) async fn invites(&self, place: &InvitePlace) -> Result<Vec<Shown>, Status> {
        let now = self.0.now();
        let found: Vec<Arc<Invite>> = self
            .0
            .read(|tables| {
                let all = tables.all::<Invite>();
                let open = all.filter(|it| it.to.place() == *place && now < it.expires_at);
                Ok(open.cloned().collect())
            })
            .await?;
        let shown = |invite: Arc<Invite>| {
            let secret = self.0.pki.invite_secret(&invite).map_err(of_pki)?;
            Ok(Shown { invite, secret })
        };
        found.into_iter().map(shown).collect()
    }

    /// The invite of a secret, and what `show` makes of it. Which of them is not there, the
    /// secret's invite or one of the kind asked for, nobody learns.
    pub(super) async fn invite_of<T>(
        &self,
        secret: &str,
        show: impl FnOnce(&Tables, &Shown) -> Option<T>,
    ) -> Result<T, Status> {
        let (id, now) = (invite_id(secret), self.0.now());
        let found = self.0.read(|tables| {
            let invite = tables.get::<Invite>(&id);
            let shown = invite.filter(|it| now < it.expires_at).map(|invite| Shown {
                invite: Arc::clone(invite),
                secret: secret.to_owned(),
            });
            let found = shown.and_then(|shown| show(tables, &shown));
            found.ok_or_else(unknown)
        });
        found.await
    }

    /// Makes the caller a member.
    pub(super) async fn accept(
        &self,
        caller: &Caller,
        secret: &str,
    ) -> Result<Arc<Invite>, Status> {
        let op = AcceptInvite {
            id: invite_id(secret),
            member: caller.login()?,
        };
        let reply = self.0.propose(caller, op).await?;
        reply.invite().map_err(of_state)
    }

    /// Takes an invite back.
    pub(super) async fn uninvite(
        &self,
        caller: &Caller,
        place: InvitePlace,
        secret: &str,
    ) -> Result<(), Status> {
        let id = invite_id(secret);
        let op = DeleteInvite { id, place };
        self.0.propose(caller, op).await.map(drop)
    }
}

fn unknown() -> StateError {
    let what = "there is no such invite, or it is over, or was accepted";
    StateError::new(ErrorCode::NotFound, what).hint("ask for another one")
}

/// An invite into a tenant for those who may know its secret; none when it leads elsewhere.
pub(super) fn tenant_invite(tables: &Tables, shown: &Shown) -> Option<v2::TenantInvite> {
    Some(v2::TenantInvite {
        secret: shown.secret.clone(),
        ..invite::tenant_invite(tables, &shown.invite)?
    })
}

/// An invite into a project for those who may know its secret; none when it leads elsewhere.
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
