//! Which kinds can be watched, and which read must be allowed for it.

use control_gate::refusal::refused;
use control_state::{ErrorCode, Kind};
use tonic::Status;

use super::Scope;

/// A kind of objects that clients know; in one scope there is one of each [`Kind`].
#[derive(Debug)]
pub(super) struct Watchable {
    pub(super) kind: Kind,
    /// As clients call it.
    pub(super) name: &'static str,
    /// The method that reads objects of the kind, by scope: all, tenant, project, own.
    reads: [Option<&'static str>; 4],
}

macro_rules! watchable {
    ($($kind:ident $name:literal [$($scope:ident $read:literal),*];)*) => {
        &[$(Watchable {
            kind: Kind::$kind,
            name: $name,
            reads: {
                let mut reads = [None; 4];
                $(reads[$scope] = Some($read);)*
                reads
            },
        },)*]
    };
}

const ALL: usize = 0;
const TENANT: usize = 1;
const PROJECT: usize = 2;
const OWN: usize = 3;

static WATCHABLE: &[Watchable] = watchable! {
    AuditEntry "audit" [ALL "/metalstack.admin.v2.AuditService/List",
        TENANT "/metalstack.api.v2.AuditService/List"];
    Claim "claim" [ALL "/metalmesh.admin.v1.PoolService/ListClaims",
        PROJECT "/metalmesh.tenant.v1.ClaimService/List"];
    Component "component" [ALL "/metalstack.admin.v2.ComponentService/List"];
    Layout "filesystem-layout" [ALL "/metalstack.api.v2.FilesystemService/List",
        OWN "/metalstack.api.v2.FilesystemService/List"];
    FirewallRuleSet "firewall-rules" [ALL "/metalmesh.admin.v1.OperatorRulesService/List",
        PROJECT "/metalmesh.admin.v1.FirewallRulesService/List"];
    Image "image" [ALL "/metalstack.api.v2.ImageService/List",
        OWN "/metalstack.api.v2.ImageService/List"];
    Ip "ip" [ALL "/metalstack.admin.v2.IPService/List",
        PROJECT "/metalstack.api.v2.IPService/List"];
    JoinTicket "join-ticket" [ALL "/metalmesh.admin.v1.JoinService/List"];
    Lease "lease" [ALL "/metalmesh.admin.v1.OperatorLeaseService/List",
        PROJECT "/metalmesh.admin.v1.LeaseService/List"];
    Machine "machine" [ALL "/metalstack.admin.v2.MachineService/List",
        PROJECT "/metalstack.api.v2.MachineService/List"];
    Network "network" [ALL "/metalstack.admin.v2.NetworkService/List",
        PROJECT "/metalstack.api.v2.NetworkService/List"];
    NodeAllocation "node-allocation" [
        ALL "/metalmesh.admin.v1.OperatorNodeAllocationService/List",
        PROJECT "/metalmesh.admin.v1.NodeAllocationService/List"];
    Partition "partition" [ALL "/metalstack.api.v2.PartitionService/List",
        OWN "/metalstack.api.v2.PartitionService/List"];
    Policy "policy" [ALL "/metalmesh.admin.v1.PolicyService/List"];
    HostPool "pool" [ALL "/metalmesh.admin.v1.PoolService/List"];
    PoolHost "pool-host" [ALL "/metalmesh.admin.v1.PoolService/ListHosts"];
    Project "project" [ALL "/metalstack.admin.v2.ProjectService/List",
        TENANT "/metalstack.api.v2.TenantService/Get",
        PROJECT "/metalstack.api.v2.ProjectService/Get"];
    ProjectLabels "project-labels" [ALL "/metalmesh.admin.v1.PoolService/ListProjects"];
    Invite "project-invite" [PROJECT "/metalstack.api.v2.ProjectService/InvitesList"];
    Quota "quota" [ALL "/metalmesh.admin.v1.QuotaService/List",
        TENANT "/metalmesh.admin.v1.QuotaService/Tenant",
        PROJECT "/metalmesh.admin.v1.QuotaService/Project"];
    Size "size" [ALL "/metalstack.api.v2.SizeService/List",
        OWN "/metalstack.api.v2.SizeService/List"];
    SizeImageConstraint "size-image-constraint" [
        ALL "/metalstack.admin.v2.SizeImageConstraintService/List"];
    SizeReservation "size-reservation" [
        ALL "/metalstack.admin.v2.SizeReservationService/List",
        PROJECT "/metalstack.api.v2.SizeReservationService/List"];
    Switch "switch" [ALL "/metalstack.admin.v2.SwitchService/List"];
    BmcOrder "task" [ALL "/metalstack.admin.v2.TaskService/List"];
    Tenant "tenant" [ALL "/metalstack.admin.v2.TenantService/List",
        TENANT "/metalstack.api.v2.TenantService/Get"];
    Invite "tenant-invite" [TENANT "/metalstack.api.v2.TenantService/InvitesList"];
    Token "token" [ALL "/metalstack.admin.v2.TokenService/List",
        OWN "/metalstack.api.v2.TokenService/List"];
};

impl Watchable {
    /// The method that reads objects of the kind in this scope; none where they are not shown.
    pub(super) fn read(&self, scope: &Scope) -> Option<&'static str> {
        let at = match scope {
            Scope::All => ALL,
            Scope::Tenant(_) => TENANT,
            Scope::Project(_) => PROJECT,
            Scope::Own(_) => OWN,
        };
        self.reads[at]
    }
}

/// The methods that must be allowed to a caller who watches these kinds.
pub(super) fn reads(scope: &Scope, kinds: &[&'static Watchable]) -> Vec<&'static str> {
    kinds.iter().filter_map(|kind| kind.read(scope)).collect()
}

/// All kinds that a scope has.
pub(super) fn of_scope(scope: &Scope) -> Vec<&'static Watchable> {
    WATCHABLE
        .iter()
        .filter(|kind| kind.read(scope).is_some())
        .collect()
}

/// The kinds that a request names.
pub(super) fn named(scope: &Scope, names: &[String]) -> Result<Vec<&'static Watchable>, Status> {
    let known = of_scope(scope);
    // One entry a kind: a longer list repeats itself, and costs a search for each entry.
    if names.len() > WATCHABLE.len() {
        let message = format!("kinds: must be at most {}", WATCHABLE.len());
        return Err(refused(ErrorCode::InvalidField, message));
    }
    let mut found: Vec<&'static Watchable> = Vec::new();
    for name in names {
        let Some(one) = known.iter().find(|kind| kind.name == name) else {
            let names: Vec<&str> = known.iter().map(|kind| kind.name).collect();
            let message = format!(
                "kinds: {name:?} cannot be watched here; known are {}",
                names.join(", ")
            );
            return Err(refused(ErrorCode::InvalidField, message));
        };
        if !found.iter().any(|kind| kind.kind == one.kind) {
            found.push(one);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proto_types::ProjectId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn every_read_is_a_method_of_the_contract() {
        for kind in WATCHABLE {
            let reads: Vec<_> = kind.reads.iter().flatten().collect();
            assert!(!reads.is_empty(), "{}", kind.name);
            for read in reads {
                assert!(proto_public::method(read).is_some(), "{read}");
            }
        }
    }

    #[test]
    fn a_scope_has_one_name_for_a_kind_of_records() {
        let (tenant, project) = ("acme".parse().unwrap(), ProjectId::new(Uuid::nil()));
        for scope in [
            Scope::All,
            Scope::Tenant(tenant),
            Scope::Project(project),
            Scope::Own("acme".to_owned()),
        ] {
            let kinds: Vec<Kind> = of_scope(&scope)
                .iter()
                .map(|watchable| watchable.kind)
                .collect();
            let unique: BTreeSet<Kind> = kinds.iter().copied().collect();
            assert_eq!(kinds.len(), unique.len(), "{scope:?}: {kinds:?}");
        }
    }

    #[test]
    fn unknown_kinds_are_refused_with_the_known_ones() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let twice = named(&Scope::All, &names(&["machine", "machine", "ca"]));
        let refused = twice.unwrap_err();
        assert!(refused.message().contains("\"ca\""), "{refused}");
        assert!(refused.message().contains("machine, network"), "{refused}");
        let own = Scope::Own("acme".to_owned());
        assert!(named(&own, &names(&["machine"])).is_err());
        assert_eq!(named(&own, &names(&["image", "image"])).unwrap().len(), 1);
        let long = vec!["image".to_owned(); WATCHABLE.len() + 1];
        let refused = named(&own, &long).unwrap_err();
        assert!(refused.message().contains("at most"), "{refused}");
    }
}
