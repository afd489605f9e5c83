//! Invites into tenants and projects.

use proto_errors::{Error, ErrorCode};
use proto_types::Digest;

use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;
use crate::tenancy::apply::budget;
use crate::tenancy::apply::member::{set_project_member, set_tenant_member};
use crate::tenancy::command::{
    AcceptInvite, CreateInvite, DeleteInvite, SetProjectMember, SetTenantMember,
};
use crate::tenancy::entity::{Invite, InvitePlace, InviteTo, Project, Tenant};
use crate::tenancy::read::invite_is_backed;

/// Most open invites into one tenant or project; another one is refused.
const INVITES_MAX: usize = 100;
/// Longest life of an invite, milliseconds: seven days, as the published servers have it. A longer
/// one is refused.
const LIFE_MAX_MS: u64 = 7 * 24 * 3_600_000;

pub(crate) fn create(tx: &mut Tx<'_>, op: &CreateInvite) -> ApplyResult {
    let life = op.expires_at.since_ms(tx.now);
    if life == 0 || life > LIFE_MAX_MS {
        return Err(Error::invalid("expires_at", "must be in the next 7 days"));
    }
    let place = op.to.place();
    match &place {
        InvitePlace::Tenant(login) => drop(tx.tables().require::<Tenant>(login)?),
        InvitePlace::Project(id) => drop(tx.tables().require::<Project>(id)?),
    }
    if tx.get::<Invite>(&op.id).is_some() {
        return Err(Error::already_exists("invite", "with this secret"));
    }
    let open = tx.tables().all::<Invite>();
    let counts = |invite: &&std::sync::Arc<Invite>| {
        invite.to.place() == place && invite_is_backed(tx.tables(), invite)
    };
    if open.filter(counts).count() >= INVITES_MAX {
        let what = format!("there are {INVITES_MAX} open invites already");
        return Err(Error::new(ErrorCode::TooMany, what).hint("delete those that nobody needs"));
    }
    budget::check_invites(tx)?;
    let invite = Invite {
        id: op.id.clone(),
        sealed_secret: op.sealed_secret.clone(),
        to: op.to.clone(),
        invited_by: tx.actor.to_owned(),
        warrant: op.warrant.clone(),
        created_at: tx.now,
        expires_at: op.expires_at,
    };
    Ok(Reply::Invite(tx.save(invite)))
}

/// The refusal of an unknown, an expired and an accepted invite: the same, so that secrets cannot
/// be probed.
fn unknown() -> Error {
    let what = "there is no such invite, or it is over, or was accepted";
    Error::new(ErrorCode::NotFound, what).hint("ask for another one")
}

fn open(tx: &Tx<'_>, id: &Digest) -> Result<std::sync::Arc<Invite>, Error> {
    let is_open = |invite: &&std::sync::Arc<Invite>| {
        tx.now < invite.expires_at && invite_is_backed(tx.tables(), invite)
    };
    tx.get::<Invite>(id)
        .filter(is_open)
        .cloned()
        .ok_or_else(unknown)
}

pub(crate) fn accept(tx: &mut Tx<'_>, op: &AcceptInvite) -> ApplyResult {
    let invite = open(tx, &op.id)?;
    tx.tables().require::<Tenant>(&op.member)?;
    // An invite must not change the role of a member: accepted by its own maker, it would demote an
    // owner.
    let must_be_new = Some(true);
    let member = op.member.clone();
    let joined = match invite.to.clone() {
        InviteTo::Tenant { login, role } => set_tenant_member(
            tx,
            &SetTenantMember {
                login,
                member,
                role,
                must_be_new,
            },
        ),
        InviteTo::Project { id, role } => set_project_member(
            tx,
            &SetProjectMember {
                id,
                member,
                role,
                must_be_new,
            },
        ),
    };
    joined?;
    tx.delete::<Invite>(&op.id);
    Ok(Reply::Invite(invite))
}

pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteInvite) -> ApplyResult {
    let invite = open(tx, &op.id)?;
    if invite.to.place() != op.place {
        return Err(unknown());
    }
    tx.delete::<Invite>(&op.id);
    Ok(Reply::Invite(invite))
}

/// Deletes all invites into a tenant or project that is about to be deleted.
pub(crate) fn forget(tx: &mut Tx<'_>, place: &InvitePlace) {
    let invites = tx.tables().all::<Invite>();
    let ids: Vec<Digest> = invites
        .filter(|invite| invite.to.place() == *place)
        .map(|invite| invite.id.clone())
        .collect();
    for id in ids {
        tx.delete::<Invite>(&id);
    }
}

#[cfg(test)]
mod tests {
    use proto_types::{ProjectId, TenantId, Timestamp};
    use uuid::Uuid;

    use super::*;
    use crate::tenancy::entity::{ProjectRole, TenantRole};
    use crate::{
        AnnounceNode, Command, CreateProject, CreateTenant, DeleteProject, FEATURE_LEVEL, Op,
        Tables, Tick, apply,
    };

    const DAY_MS: u64 = 24 * 3_600_000;

    fn run(tables: &mut Tables, now: u64, op: impl Into<Op>) -> ApplyResult {
        let command = Command::new(Timestamp::from_ms(now), "acme", op);
        apply(tables, &command).result
    }

    fn login(text: &str) -> TenantId {
        text.parse().unwrap()
    }

    fn digest(number: u8) -> Digest {
        Digest::sha256([number; 32])
    }

    fn project() -> ProjectId {
        ProjectId::new(Uuid::from_u128(7))
    }

    fn tenant(name: &str) -> CreateTenant {
        CreateTenant {
            login: login(name),
            name: name.to_owned(),
            email: String::new(),
            description: String::new(),
            avatar_url: String::new(),
            labels: Default::default(),
            owner: Some(login(name)),
        }
    }

    /// Tenants "acme", with a project, and "guest", at the newest level.
    fn world() -> Tables {
        let mut tables = Tables::new();
        let node = AnnounceNode {
            id: 1,
            peer_address: String::new(),
            mesh_addresses: Vec::new(),
            level: FEATURE_LEVEL,
            version: String::new(),
        };
        run(&mut tables, 1, node).unwrap();
        for name in ["acme", "guest"] {
            run(&mut tables, 1, tenant(name)).unwrap();
        }
        let made = CreateProject {
            id: project(),
            tenant: login("acme"),
            name: "web".to_owned(),
            description: String::new(),
            avatar_url: None,
            labels: Default::default(),
            owner: None,
        };
        run(&mut tables, 1, made).unwrap();
        tables
    }

    fn to_project() -> InviteTo {
        InviteTo::Project {
            id: project(),
            role: ProjectRole::Editor,
        }
    }

    fn invite(number: u8, to: InviteTo, expires_at: u64) -> CreateInvite {
        CreateInvite {
            id: digest(number),
            sealed_secret: vec![number],
            to,
            warrant: None,
            expires_at: Timestamp::from_ms(expires_at),
        }
    }

    fn accept_by(name: &str, number: u8) -> AcceptInvite {
        AcceptInvite {
            id: digest(number),
            member: login(name),
        }
    }

    #[test]
    fn an_invite_makes_one_member_once() {
        let mut tables = world();
        run(&mut tables, 2, invite(1, to_project(), DAY_MS)).unwrap();
        let to_tenant = InviteTo::Tenant {
            login: login("acme"),
            role: TenantRole::Viewer,
        };
        run(&mut tables, 2, invite(2, to_tenant, DAY_MS)).unwrap();
        run(&mut tables, 3, accept_by("guest", 1)).unwrap();
        run(&mut tables, 3, accept_by("guest", 2)).unwrap();
        let joined = tables.get::<Project>(&project()).unwrap();
        assert_eq!(joined.members[&login("guest")].role, ProjectRole::Editor);
        let joined = tables.get::<Tenant>(&login("acme")).unwrap();
        assert_eq!(joined.members[&login("guest")].role, TenantRole::Viewer);
        let again = run(&mut tables, 4, accept_by("acme", 1)).unwrap_err();
        assert_eq!(again.code, ErrorCode::NotFound);
        assert_eq!(tables.all::<Invite>().count(), 0);
    }

    #[test]
    fn who_is_there_already_leaves_the_invite_to_others() {
        let mut tables = world();
        let to_tenant = InviteTo::Tenant {
            login: login("acme"),
            role: TenantRole::Viewer,
        };
        run(&mut tables, 2, invite(1, to_tenant, DAY_MS)).unwrap();
        let refused = run(&mut tables, 3, accept_by("acme", 1)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::AlreadyExists);
        run(&mut tables, 3, accept_by("guest", 1)).unwrap();
    }

    #[test]
    fn an_invite_is_over_in_time_and_is_forgotten() {
        let mut tables = world();
        for (expires_at, good) in [(2, false), (2 + 7 * DAY_MS + 1, false), (DAY_MS, true)] {
            let made = run(&mut tables, 2, invite(1, to_project(), expires_at));
            assert_eq!(made.is_ok(), good, "{expires_at}");
        }
        let late = run(&mut tables, DAY_MS, accept_by("guest", 1)).unwrap_err();
        assert_eq!(late.code, ErrorCode::NotFound);
        run(&mut tables, DAY_MS, Tick::default()).unwrap();
        assert_eq!(tables.all::<Invite>().count(), 0);
    }

    #[test]
    fn an_invite_ends_with_the_ownership_of_who_made_it() {
        let mut tables = world();
        // Not the maker's personal tenant, which it cannot lose.
        let shared = CreateTenant {
            owner: Some(login("acme")),
            ..tenant("shared")
        };
        run(&mut tables, 1, shared).unwrap();
        let to_shared = InviteTo::Tenant {
            login: login("shared"),
            role: TenantRole::Viewer,
        };
        run(&mut tables, 2, invite(1, to_shared.clone(), DAY_MS)).unwrap();
        for (member, role) in [("guest", TenantRole::Owner), ("acme", TenantRole::Editor)] {
            let op = SetTenantMember {
                login: login("shared"),
                member: login(member),
                role,
                must_be_new: None,
            };
            run(&mut tables, 3, op).unwrap();
        }
        run(&mut tables, 4, tenant("late")).unwrap();
        let refused = run(&mut tables, 4, accept_by("late", 1)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::NotFound);
        // An invite that rests on a standing over the platform needs no ownership.
        let of_operator = CreateInvite {
            warrant: Some(crate::Warrant::Operator),
            ..invite(2, to_shared, DAY_MS)
        };
        run(&mut tables, 5, of_operator).unwrap();
        run(&mut tables, 6, accept_by("late", 2)).unwrap();
    }

    #[test]
    fn only_its_own_place_can_delete_it() {
        let mut tables = world();
        run(&mut tables, 2, invite(1, to_project(), DAY_MS)).unwrap();
        let delete = |place| DeleteInvite {
            id: digest(1),
            place,
        };
        let foreign = delete(InvitePlace::Tenant(login("acme")));
        let refused = run(&mut tables, 3, foreign).unwrap_err();
        assert_eq!(refused.code, ErrorCode::NotFound);
        run(&mut tables, 3, delete(InvitePlace::Project(project()))).unwrap();
        assert_eq!(tables.all::<Invite>().count(), 0);
    }

    #[test]
    fn invites_are_bounded_and_go_with_what_they_lead_into() {
        let mut tables = world();
        for number in 0..INVITES_MAX {
            let number = u8::try_from(number).unwrap();
            run(&mut tables, 2, invite(number, to_project(), DAY_MS)).unwrap();
        }
        let refused = run(&mut tables, 2, invite(200, to_project(), DAY_MS)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::TooMany);
        run(&mut tables, 3, DeleteProject { id: project() }).unwrap();
        assert_eq!(tables.all::<Invite>().count(), 0);
    }
}
