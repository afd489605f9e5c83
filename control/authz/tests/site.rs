//! What policies of a site may do to the table, and what they never may.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop")]
mod common;

use std::cell::Cell;

use common::{MACHINE, PROJECT, TENANT, api, memberships, user};
use control_authz::{
    Decided, Denied, Judge, Memberships, Permit, Principal, Reach, Ruling, TokenRights, Unjudged,
    Widening, authorise_path, is_judged, is_of_platform, is_way_back, widening,
};
use proto_public::api::v2::{AdminRole, TenantRole};
use proto_public::{Scope, method, methods};

const READ: &str = "/metalstack.api.v2.MachineService/Get";
const WRITE: &str = "/metalstack.api.v2.MachineService/Delete";

/// Says what it is told to say.
#[derive(Default)]
struct Says {
    denies: bool,
    allows: Option<Reach>,
    fails: bool,
    asked: Cell<usize>,
}

impl Says {
    fn ruling(&self, when: bool) -> Result<Option<Ruling>, Unjudged> {
        self.asked.set(self.asked.get() + 1);
        if self.fails {
            return Err(Unjudged {
                policy: "night".to_owned(),
                reason: "it needs too many steps".to_owned(),
            });
        }
        Ok(when.then(|| Ruling {
            rule: "night/rule".to_owned(),
            message: "come back tomorrow".to_owned(),
        }))
    }
}

impl Judge for Says {
    fn deny(&self) -> Result<Option<Ruling>, Unjudged> {
        self.ruling(self.denies)
    }
    fn allow(&self, reach: Reach) -> Result<Option<Ruling>, Unjudged> {
        self.ruling(self.allows == Some(reach))
    }
}

fn decide(
    path: &str,
    who: &Principal,
    directory: &Memberships,
    judge: &Says,
) -> Result<Permit, Denied> {
    let method = method(path).unwrap();
    let subject = match method.scope {
        Scope::Tenant(_) => Some(TENANT),
        Scope::Project(_) => Some(PROJECT),
        Scope::Machine(_) => Some(MACHINE),
        _ => None,
    };
    let decided = Decided {
        method,
        who,
        is_of_platform: is_of_platform(who, directory),
        subject,
        table: authorise_path(path, who, directory, subject),
    };
    decided.under(judge)
}

fn member(role: TenantRole) -> Memberships {
    memberships(&[(TENANT, role)], &[])
}

fn stranger() -> Memberships {
    memberships(&[("globex", TenantRole::Owner)], &[])
}

fn admin(role: AdminRole) -> Principal {
    api(TokenRights {
        admin_role: Some(role),
        ..TokenRights::default()
    })
}

fn denies() -> Says {
    Says {
        denies: true,
        ..Says::default()
    }
}

fn allows(reach: Reach) -> Says {
    Says {
        allows: Some(reach),
        ..Says::default()
    }
}

#[test]
fn a_deny_takes_away_and_names_its_rule() {
    for who in [user(), admin(AdminRole::Editor)] {
        let refused = decide(READ, &who, &member(TenantRole::Owner), &denies()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "/metalstack.api.v2.MachineService/Get is not allowed by rule night/rule of this \
             site: come back tomorrow"
        );
    }
}

#[test]
fn an_allow_gives_to_those_who_see_and_no_others() {
    let viewer = member(TenantRole::Viewer);
    let permit = decide(WRITE, &user(), &viewer, &allows(Reach::Known)).unwrap();
    assert_eq!(permit.rule(), Some("night/rule"));
    assert_eq!(permit.subject(), Some(PROJECT));
    let refused = decide(WRITE, &user(), &viewer, &allows(Reach::Foreign)).unwrap_err();
    assert!(matches!(refused, Denied::Forbidden { .. }), "{refused}");
    let unseen = decide(WRITE, &user(), &stranger(), &allows(Reach::Known)).unwrap_err();
    assert!(matches!(unseen, Denied::NotFound { .. }), "{unseen}");
    decide(WRITE, &user(), &stranger(), &allows(Reach::Foreign)).unwrap();
    // By the table, not by the rule.
    let owner = decide(
        WRITE,
        &user(),
        &member(TenantRole::Owner),
        &allows(Reach::Known),
    );
    assert_eq!(owner.unwrap().rule(), None);
}

#[test]
fn a_deny_counts_for_more_than_an_allow_and_tells_nothing_more_than_the_table() {
    let both = |reach| Says {
        denies: true,
        ..allows(reach)
    };
    let refused = decide(
        WRITE,
        &user(),
        &member(TenantRole::Viewer),
        &both(Reach::Known),
    );
    assert!(
        matches!(refused, Err(Denied::Forbidden { .. })),
        "{refused:?}"
    );
    for judge in [denies(), both(Reach::Foreign), both(Reach::Known)] {
        let plain = decide(WRITE, &user(), &stranger(), &Says::default()).unwrap_err();
        let judged = decide(WRITE, &user(), &stranger(), &judge).unwrap_err();
        assert_eq!(plain, judged, "what is not there stays so");
        assert!(matches!(judged, Denied::NotFound { .. }));
    }
}

#[test]
fn a_policy_that_fails_refuses_what_the_table_permits_and_permits_nothing() {
    let fails = Says {
        fails: true,
        ..Says::default()
    };
    let refused = decide(READ, &user(), &member(TenantRole::Owner), &fails).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "/metalstack.api.v2.MachineService/Get is refused: policy \"night\" of this site cannot \
         be evaluated: it needs too many steps"
    );
    assert_eq!(refused.rule(), Some("night"));
    for directory in [member(TenantRole::Viewer), stranger()] {
        let table = decide(WRITE, &user(), &directory, &Says::default());
        let judged = decide(WRITE, &user(), &directory, &fails);
        assert_eq!(table.unwrap_err(), judged.unwrap_err());
    }
}

#[test]
fn nobody_comes_in_without_a_token() {
    let nobody = Principal::anonymous();
    for reach in [Reach::Known, Reach::Foreign] {
        for it in methods().iter().filter(|it| it.scope != Scope::Public) {
            let refused = decide(&it.path, &nobody, &stranger(), &allows(reach)).unwrap_err();
            assert_eq!(refused, Denied::Unauthenticated, "{}", it.path);
        }
    }
}

/// What policies do to the ways out of them, for whoever administers the platform.
#[test]
fn the_way_back_is_never_closed() {
    let mut open = 0;
    for it in methods() {
        let judge = denies();
        let who = admin(AdminRole::Editor);
        let answer = decide(&it.path, &who, &stranger(), &judge);
        if !is_judged(it) {
            let unjudged = ["/metalmesh.admin.v1.PolicyService/", "/grpc."];
            assert!(unjudged.iter().any(|begin| it.path.starts_with(begin)));
            assert_eq!(judge.asked.get(), 0);
        }
        assert_eq!(
            answer.is_ok(),
            !is_judged(it) || is_way_back(it),
            "{}",
            it.path
        );
        open += usize::from(answer.is_ok());
    }
    assert!(open > 10, "{open}");
    // The provider's people order administrators' tokens with their log-ins.
    const ORDER: &str = "/metalstack.api.v2.TokenService/Create";
    let provider = memberships(&[("provider", TenantRole::Owner)], &[]);
    decide(ORDER, &user(), &provider, &denies()).unwrap();
    decide(ORDER, &user(), &member(TenantRole::Owner), &denies()).unwrap_err();
}

#[test]
fn rights_are_never_handed_out_by_a_rule() {
    let who = user();
    let mut never = 0;
    for it in methods()
        .iter()
        .filter(|it| widening(it) == Widening::Never)
    {
        for directory in [member(TenantRole::Viewer), stranger()] {
            for reach in [Reach::Known, Reach::Foreign] {
                let table = decide(&it.path, &who, &directory, &Says::default());
                let judged = decide(&it.path, &who, &directory, &allows(reach));
                assert_eq!(table.is_ok(), judged.is_ok(), "{}", it.path);
                if let (Err(table), Err(judged)) = (table, judged) {
                    assert_eq!(table, judged);
                }
            }
        }
        never += 1;
    }
    assert!(never > 40, "{never}");
    let of = |path: &str| widening(method(path).unwrap());
    for (path, wanted) in [
        ("/metalmesh.admin.v1.PolicyService/Set", Widening::Never),
        ("/metalmesh.admin.v1.BackupService/Create", Widening::Never),
        ("/metalmesh.admin.v1.ClusterService/Invite", Widening::Never),
        ("/metalmesh.admin.v1.JoinService/Create", Widening::Never),
        (
            "/metalmesh.admin.v1.LoginUserService/SetPassword",
            Widening::Never,
        ),
        ("/metalstack.admin.v2.TokenService/Create", Widening::Never),
        (
            "/metalstack.admin.v2.TenantService/AddMember",
            Widening::Never,
        ),
        ("/metalstack.api.v2.TokenService/Create", Widening::Never),
        ("/metalstack.api.v2.ProjectService/Invite", Widening::Never),
        (
            "/metalstack.infra.v2.BMCService/WaitForBMCCommand",
            Widening::Never,
        ),
        (
            "/metalstack.infra.v2.BootService/SuperUserPassword",
            Widening::Never,
        ),
        (
            "/metalstack.admin.v2.MachineService/ConsolePassword",
            Widening::Named,
        ),
        ("/metalstack.admin.v2.VPNService/AuthKey", Widening::Named),
        ("/metalstack.api.v2.MachineService/GetBMC", Widening::Named),
        (
            "/metalstack.api.v2.MachineService/BMCCommand",
            Widening::Any,
        ),
        ("/metalstack.api.v2.IPService/Create", Widening::Any),
    ] {
        assert_eq!(of(path), wanted, "{path}");
    }
}
