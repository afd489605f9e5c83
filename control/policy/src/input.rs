//! The input document: everything that a policy knows about a call.
//!
//! `docs/reference/policy-input.md` describes it. A value that does not exist is left out instead of
//! being null, so that a comparison of two missing values is never true.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use control_authz::{Denied, Permit, PrincipalKind};
use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};
use proto_public::{Method, Scope, methods};
use regorus::Value;

use crate::facts::{CallFacts, Resource};
use crate::relation::Relation;
use crate::wants::{WantedFields, Wants};

/// The subject that stands for every subject in the rights of a token.
const ALL: &str = "*";

/// The part `method` of every method, by method index. It is the same for each call.
static METHODS: LazyLock<Vec<Value>> = LazyLock::new(|| methods().iter().map(method).collect());

macro_rules! keys {
    ($($name:ident)*) => {
        struct Keys { $($name: Value,)* }
        static KEYS: LazyLock<Keys> =
            LazyLock::new(|| Keys { $($name: Value::from(stringify!($name)),)* });
    };
}

keys! {
    anonymous api caller editor forbidden guest machine method not_found owner
    project relation request resource roles subject table tenant time unauthenticated user viewer
}

fn text(of: &str) -> Option<Value> {
    (!of.is_empty()).then(|| Value::from(of))
}

/// Builds one part of the document. `None` means that the call does not have it.
type PartBuilder = fn(&CallFacts<'_>, &WantedFields) -> Option<Value>;

/// Builds the document with the wanted parts.
pub(crate) fn document(facts: &CallFacts<'_>, wants: &Wants) -> Value {
    let keys = &*KEYS;
    let method = METHODS.get(facts.method.index);
    let mut input = vec![(
        keys.method.clone(),
        method.cloned().unwrap_or(Value::Undefined),
    )];
    let parts: [(&Value, &WantedFields, PartBuilder); 8] = [
        (&keys.caller, &wants.caller, |facts, wanted| {
            Some(caller(facts, wanted))
        }),
        (&keys.roles, &wants.roles, |facts, wanted| {
            Some(roles(facts, wanted))
        }),
        (&keys.relation, &wants.relation, |facts, wanted| {
            Some(relation(facts.relation, wanted))
        }),
        (&keys.subject, &wants.subject, subject),
        (&keys.table, &wants.table, |facts, wanted| {
            Some(table(facts.table, wanted))
        }),
        (&keys.time, &wants.time, |facts, wanted| {
            Some(facts.now.document(wanted))
        }),
        (&keys.request, &wants.request, |facts, wanted| {
            Some(fields(facts.request?, wanted))
        }),
        (&keys.resource, &wants.resource, |facts, wanted| {
            Some(resource(facts.resource?, wanted))
        }),
    ];
    let wanted = parts.into_iter().filter(|(_, wanted, _)| !wanted.is_none());
    input
        .extend(wanted.filter_map(|(key, wanted, part)| Some((key.clone(), part(facts, wanted)?))));
    Value::from(input.into_iter().collect::<BTreeMap<_, _>>())
}

/// The wanted fields of a request.
fn fields(request: &serde_json::Value, wanted: &WantedFields) -> Value {
    match (request, wanted) {
        (serde_json::Value::Object(all), WantedFields::Named(_)) => {
            wanted.select(&[], |name| all.get(name).map(json))
        }
        _ => json(request),
    }
}

/// JSON in the machine's form, without an intermediate copy.
fn json(of: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match of {
        Json::Null => Value::Null,
        Json::Bool(bit) => Value::from(*bit),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::from(items.iter().map(json).collect::<Vec<_>>()),
        Json::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (Value::from(name.as_str()), json(value)));
            Value::from(fields.collect::<BTreeMap<_, _>>())
        }
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::from(number),
            // A fraction, or a number beyond 64 bits: the machine has its own form for these.
            None => Value::from(of.clone()),
        },
    }
}

fn method(method: &Method) -> Value {
    let lower = |names: Vec<&str>, prefix: &str| -> Vec<Value> {
        let words = names.iter().map(|name| name.trim_start_matches(prefix));
        words.map(|word| Value::from(word.to_lowercase())).collect()
    };
    macro_rules! names {
        ($roles:ident, $prefix:literal) => {
            lower(
                $roles.iter().map(|role| role.as_str_name()).collect(),
                $prefix,
            )
        };
    }
    let (scope, roles) = match &method.scope {
        Scope::Public => ("public", Vec::new()),
        Scope::Own => ("own", Vec::new()),
        Scope::Tenant(roles) => ("tenant", names!(roles, "TENANT_ROLE_")),
        Scope::Project(roles) => ("project", names!(roles, "PROJECT_ROLE_")),
        Scope::Machine(roles) => ("machine", names!(roles, "MACHINE_ROLE_")),
        Scope::Admin(roles) => ("admin", names!(roles, "ADMIN_ROLE_")),
        Scope::Infra(roles) => ("infra", names!(roles, "INFRA_ROLE_")),
    };
    let fields = [
        ("path", Value::from(method.path.as_str())),
        ("service", Value::from(method.service.as_str())),
        ("name", Value::from(method.name.as_str())),
        ("scope", Value::from(scope)),
        ("roles", Value::from(roles)),
        ("audited", Value::from(method.audited)),
        ("streams", Value::from(method.server_streaming)),
    ];
    let fields = fields.map(|(name, value)| (Value::from(name), value));
    Value::from(BTreeMap::from(fields))
}

fn caller(facts: &CallFacts<'_>, wanted: &WantedFields) -> Value {
    let keys = &*KEYS;
    let who = facts.who;
    let all = ["address", "kind", "partition", "platform", "token", "user"];
    wanted.select(&all, |name| match name {
        "address" => Some(Value::from(facts.address?.to_string())),
        "kind" => Some(match who.kind {
            PrincipalKind::Anonymous => keys.anonymous.clone(),
            PrincipalKind::Api => keys.api.clone(),
            PrincipalKind::User => keys.user.clone(),
        }),
        "partition" => facts.partition.map(Value::from),
        "platform" => Some(Value::from(facts.is_of_platform)),
        "token" => text(&who.token),
        "user" => text(&who.user),
        _ => None,
    })
}

/// The roles of the token for the subject. For a log-in they are the user's current roles there.
fn roles(facts: &CallFacts<'_>, wanted: &WantedFields) -> Value {
    let rights = &facts.who.rights;
    let relation = facts.relation;
    let subject = facts.subject.unwrap_or_default();
    macro_rules! of {
        ($map:ident, $key:expr) => {
            rights
                .$map
                .get($key)
                .or_else(|| rights.$map.get(ALL))
                .copied()
        };
    }
    let all = ["admin", "infra", "machine", "project", "tenant"];
    let word = |name: &str| match (facts.who.kind, name) {
        (PrincipalKind::User, "tenant") => relation.tenant_role.and_then(tenant),
        (PrincipalKind::User, "project") => relation.project_role.and_then(project),
        (PrincipalKind::Api, "tenant") => {
            let in_tenant = relation.tenant.as_deref().unwrap_or_default();
            of!(tenant_roles, in_tenant).and_then(tenant)
        }
        (PrincipalKind::Api, "project") => of!(project_roles, subject).and_then(project),
        (PrincipalKind::Api, "machine") => of!(machine_roles, subject).and_then(machine),
        (PrincipalKind::Api, "admin") => rights.admin_role.and_then(admin),
        (PrincipalKind::Api, "infra") => rights.infra_role.and_then(infra),
        _ => None,
    };
    wanted.select(&all, |name| word(name).cloned())
}

macro_rules! words {
    ($($name:ident $role:ident [$($variant:ident $word:ident),*];)*) => {
        $(fn $name(role: $role) -> Option<&'static Value> {
            match role {
                $($role::$variant => Some(&KEYS.$word),)*
                $role::Unspecified => None,
            }
        })*
    };
}

words! {
    tenant TenantRole [Owner owner, Editor editor, Viewer viewer, Guest guest];
    project ProjectRole [Owner owner, Editor editor, Viewer viewer];
    machine MachineRole [Editor editor, Viewer viewer];
    admin AdminRole [Editor editor, Viewer viewer];
    infra InfraRole [Editor editor, Viewer viewer];
}

fn relation(of: &Relation, wanted: &WantedFields) -> Value {
    let word = |name: &str| match name {
        "project" => of.project_role.and_then(project),
        "tenant" => of.tenant_role.and_then(tenant),
        _ => None,
    };
    wanted.select(&["machine", "project", "tenant"], |name| match name {
        "machine" => of.machine.map(Value::from),
        _ => word(name).cloned(),
    })
}

fn subject(facts: &CallFacts<'_>, wanted: &WantedFields) -> Option<Value> {
    let keys = &*KEYS;
    let kind = match facts.method.scope {
        Scope::Tenant(_) => &keys.tenant,
        Scope::Project(_) => &keys.project,
        Scope::Machine(_) => &keys.machine,
        _ => return None,
    };
    Some(wanted.select(&["id", "kind", "tenant"], |name| match name {
        "id" => facts.subject.map(Value::from),
        "kind" => Some(kind.clone()),
        "tenant" => facts.relation.tenant.as_deref().map(Value::from),
        _ => None,
    }))
}

fn table(of: &Result<Permit, Denied>, wanted: &WantedFields) -> Value {
    let keys = &*KEYS;
    wanted.select(&["permits", "refusal"], |name| match (name, of) {
        ("permits", _) => Some(Value::from(of.is_ok())),
        ("refusal", Err(Denied::Forbidden { .. })) => Some(keys.forbidden.clone()),
        ("refusal", Err(Denied::NotFound { .. })) => Some(keys.not_found.clone()),
        ("refusal", Err(Denied::Unauthenticated)) => Some(keys.unauthenticated.clone()),
        _ => None,
    })
}

fn resource(of: &Resource, wanted: &WantedFields) -> Value {
    let all = ["id", "kind", "labels", "partition", "project", "size"];
    wanted.select(&all, |name| match name {
        "id" => Some(Value::from(of.id.as_str())),
        "kind" => Some(Value::from(of.kind)),
        "labels" => {
            let labels = of.labels.iter();
            let labels =
                labels.map(|(name, value)| (Value::from(name.as_str()), value.as_str().into()));
            Some(Value::from(labels.collect::<BTreeMap<Value, Value>>()))
        }
        "partition" => of.partition.as_deref().map(Value::from),
        "project" => of.project.as_deref().map(Value::from),
        "size" => of.size.as_deref().map(Value::from),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{MOMENTS, SampleCall, callers};

    #[test]
    fn a_field_is_the_same_whether_it_is_named_or_comes_with_all() {
        let resource = Resource {
            kind: "machine",
            id: "1".to_owned(),
            labels: [("rack".to_owned(), "7".to_owned())].into(),
            ..Resource::default()
        };
        let asked = methods()
            .iter()
            .filter(|method| control_authz::is_judged(method));
        let mut seen = 0;
        for (method, caller) in
            asked.flat_map(|method| callers().into_iter().map(move |by| (method, by)))
        {
            let call = SampleCall::new(method, &caller, MOMENTS[0].1, None);
            let facts = CallFacts {
                resource: Some(&resource),
                partition: Some("hall"),
                ..call.facts()
            };
            let whole = document(&facts, &Wants::ALL);
            for (part, fields) in whole.as_object().unwrap().iter() {
                let part = part.as_string().unwrap();
                let fields = fields.as_object().unwrap().iter();
                for (field, value) in fields.filter(|_| &**part != "method") {
                    let named = format!("input.{part}.{}", field.as_string().unwrap());
                    let only = document(&facts, &Wants::of(&named));
                    assert_eq!(only[&**part][field], *value, "{named}");
                    assert_eq!(only[&**part].as_object().unwrap().len(), 1, "{named}");
                    assert_eq!(only.as_object().unwrap().len(), 2, "{named}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 1000, "{seen}");
    }
}
