//! The input document: all that a policy knows of a call. `docs/reference/policy-input.md` has it
//! for people; what is not there is left out, so that nothing is ever equal to nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::LazyLock;

use control_authz::{
    Denied, Directory, Permit, Principal, PrincipalKind, project_role, tenant_role,
};
use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};
use proto_public::{Method, Scope, methods};
use regorus::Value;

use crate::wants::{Fields, Wants};

/// The subject that stands for all in the rights of a token.
const ALL: &str = "*";

/// What the user is, at this moment, in what the call is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relation {
    /// The tenant: the call's own, or that of its project.
    pub tenant: Option<String>,
    /// The user's role in it.
    pub tenant_role: Option<TenantRole>,
    /// The user's role in the project, its own or the one that its tenant lends.
    pub project_role: Option<ProjectRole>,
}

impl Relation {
    /// As the memberships are now.
    pub fn of(
        method: &Method,
        who: &Principal,
        directory: &dyn Directory,
        subject: Option<&str>,
    ) -> Self {
        let subject = subject.unwrap_or_default();
        match method.scope {
            Scope::Tenant(_) => Self {
                tenant: Some(subject.to_owned()),
                tenant_role: tenant_role(directory, &who.user, subject),
                project_role: None,
            },
            Scope::Project(_) => {
                let Some(project) = directory.project(&who.user, subject) else {
                    return Self::default();
                };
                let direct = directory.tenant_role(&who.user, project.tenant);
                let guest = || project.role.map(|_| TenantRole::Guest);
                Self {
                    tenant: Some(project.tenant.to_owned()),
                    tenant_role: direct.or_else(guest),
                    project_role: project_role(directory, &who.user, subject),
                }
            }
            _ => Self::default(),
        }
    }
}

/// What a request names beside its subject, where the caller may see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource {
    /// Such as `machine`.
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// Where it is.
    pub partition: Option<String>,
    /// Of a machine.
    pub size: Option<String>,
    /// Whose it is.
    pub project: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// A moment, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the Unix epoch.
    pub ms: u64,
}

/// What a call is, beside what its token is.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// The method.
    pub method: &'static Method,
    /// Who calls.
    pub who: &'a Principal,
    /// Whether it administers the platform.
    pub is_of_platform: bool,
    /// Whom the call is about.
    pub subject: Option<&'a str>,
    /// What the user is there.
    pub relation: &'a Relation,
    /// What the table says.
    pub table: &'a Result<Permit, Denied>,
    /// Where the call comes from.
    pub address: Option<IpAddr>,
    /// The partition that the token is bound to.
    pub partition: Option<&'a str>,
    /// The request without its secrets.
    pub request: Option<&'a serde_json::Value>,
    /// What it names.
    pub resource: Option<&'a Resource>,
    /// When.
    pub now: Moment,
}

/// Parts of inputs that are always the same.
struct Parts {
    methods: Vec<Value>,
}

static PARTS: LazyLock<Parts> = LazyLock::new(|| Parts {
    methods: methods().iter().map(method).collect(),
});

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

/// Days of the week, from that of the Unix epoch on.
static DAYS: LazyLock<[Value; 7]> = LazyLock::new(|| {
    [
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "monday",
        "tuesday",
        "wednesday",
    ]
    .map(Value::from)
});

/// A part of the input with those of its fields that are wanted and that there are.
fn part(wanted: &Fields, all: &[&str], value: impl Fn(&str) -> Option<Value>) -> Value {
    let found: BTreeMap<Value, Value> = match wanted {
        Fields::Named(names) => {
            let names = names.iter();
            names
                .filter_map(|(name, key)| Some((key.clone(), value(name)?)))
                .collect()
        }
        Fields::All => {
            let names = all.iter();
            names
                .filter_map(|name| Some((Value::from(*name), value(name)?)))
                .collect()
        }
    };
    Value::from(found)
}

fn text(of: &str) -> Option<Value> {
    (!of.is_empty()).then(|| Value::from(of))
}

/// One part of the document, where a call has it.
type Part = fn(&CallFacts<'_>, &Fields) -> Option<Value>;

/// The document.
pub(crate) fn document(facts: &CallFacts<'_>, wants: &Wants) -> Value {
    let keys = &*KEYS;
    let method = PARTS.methods.get(facts.method.index);
    let mut input = vec![(
        keys.method.clone(),
        method.cloned().unwrap_or(Value::Undefined),
    )];
    let parts: [(&Value, &Fields, Part); 8] = [
        (&keys.caller, &wants.caller, |of, it| Some(caller(of, it))),
        (&keys.roles, &wants.roles, |of, it| Some(roles(of, it))),
        (&keys.relation, &wants.relation, |of, it| {
            Some(relation(of.relation, it))
        }),
        (&keys.subject, &wants.subject, subject),
        (&keys.table, &wants.table, |of, it| {
            Some(table(of.table, it))
        }),
        (&keys.time, &wants.time, |of, it| Some(of.now.document(it))),
        (&keys.request, &wants.request, |of, it| {
            Some(fields(of.request?, it))
        }),
        (&keys.resource, &wants.resource, |of, it| {
            Some(resource(of.resource?, it))
        }),
    ];
    let wanted = parts.into_iter().filter(|(_, wanted, _)| !wanted.is_none());
    input
        .extend(wanted.filter_map(|(key, wanted, part)| Some((key.clone(), part(facts, wanted)?))));
    Value::from(input.into_iter().collect::<BTreeMap<_, _>>())
}

/// Of a request what is looked at.
fn fields(request: &serde_json::Value, wanted: &Fields) -> Value {
    match (request, wanted) {
        (serde_json::Value::Object(all), Fields::Named(_)) => {
            part(wanted, &[], |name| all.get(name).map(json))
        }
        _ => json(request),
    }
}

/// JSON as the machine has it, without a copy in between.
fn json(of: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match of {
        Json::Null => Value::Null,
        Json::Bool(it) => Value::from(*it),
        Json::String(it) => Value::from(it.as_str()),
        Json::Array(items) => Value::from(items.iter().map(json).collect::<Vec<_>>()),
        Json::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (Value::from(name.as_str()), json(value)));
            Value::from(fields.collect::<BTreeMap<_, _>>())
        }
        Json::Number(it) => match it.as_i64() {
            Some(it) => Value::from(it),
            // Larger than that, or a fraction: as the machine reads it.
            None => Value::from(of.clone()),
        },
    }
}

fn method(method: &Method) -> Value {
    let lower = |names: Vec<&str>, prefix: &str| -> Vec<Value> {
        let words = names.iter().map(|it| it.trim_start_matches(prefix));
        words.map(|it| Value::from(it.to_lowercase())).collect()
    };
    macro_rules! names {
        ($roles:ident, $prefix:literal) => {
            lower($roles.iter().map(|it| it.as_str_name()).collect(), $prefix)
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

fn caller(facts: &CallFacts<'_>, wanted: &Fields) -> Value {
    let keys = &*KEYS;
    let who = facts.who;
    let all = ["address", "kind", "partition", "platform", "token", "user"];
    part(wanted, &all, |name| match name {
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

/// What the token carries for the subject; of a log-in that is what the user is there.
fn roles(facts: &CallFacts<'_>, wanted: &Fields) -> Value {
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
    part(wanted, &all, |name| word(name).cloned())
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

fn relation(of: &Relation, wanted: &Fields) -> Value {
    let word = |name: &str| match name {
        "project" => of.project_role.and_then(project),
        "tenant" => of.tenant_role.and_then(tenant),
        _ => None,
    };
    part(wanted, &["project", "tenant"], |name| word(name).cloned())
}

fn subject(facts: &CallFacts<'_>, wanted: &Fields) -> Option<Value> {
    let keys = &*KEYS;
    let kind = match facts.method.scope {
        Scope::Tenant(_) => &keys.tenant,
        Scope::Project(_) => &keys.project,
        Scope::Machine(_) => &keys.machine,
        _ => return None,
    };
    Some(part(wanted, &["id", "kind", "tenant"], |name| match name {
        "id" => facts.subject.map(Value::from),
        "kind" => Some(kind.clone()),
        "tenant" => facts.relation.tenant.as_deref().map(Value::from),
        _ => None,
    }))
}

fn table(of: &Result<Permit, Denied>, wanted: &Fields) -> Value {
    let keys = &*KEYS;
    part(wanted, &["permits", "refusal"], |name| match (name, of) {
        ("permits", _) => Some(Value::from(of.is_ok())),
        ("refusal", Err(Denied::Forbidden { .. })) => Some(keys.forbidden.clone()),
        ("refusal", Err(Denied::NotFound { .. })) => Some(keys.not_found.clone()),
        ("refusal", Err(Denied::Unauthenticated)) => Some(keys.unauthenticated.clone()),
        _ => None,
    })
}

fn resource(of: &Resource, wanted: &Fields) -> Value {
    let all = ["id", "kind", "labels", "partition", "project", "size"];
    part(wanted, &all, |name| match name {
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

impl Moment {
    /// Year, month and day.
    fn date(self) -> (u64, u64, u64) {
        // Days are counted from March on, in eras of 400 years, so that leap days come last.
        let days = self.days() + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let shifted = (5 * day + 2) / 153;
        let month = if shifted < 10 {
            shifted + 3
        } else {
            shifted - 9
        };
        let year = era * 400 + year + u64::from(month <= 2);
        (year, month, day - (153 * shifted + 2) / 5 + 1)
    }

    const fn days(self) -> u64 {
        self.ms / 86_400_000
    }

    fn document(self, wanted: &Fields) -> Value {
        let all = ["date", "hour", "minute", "unix", "weekday"];
        part(wanted, &all, |name| match name {
            "date" => {
                let (year, month, day) = self.date();
                Some(Value::from(format!("{year:04}-{month:02}-{day:02}")))
            }
            "hour" => Some(Value::from(self.ms / 3_600_000 % 24)),
            "minute" => Some(Value::from(self.ms / 60_000 % 60)),
            "unix" => Some(Value::from(self.ms / 1000)),
            "weekday" => {
                let weekday = usize::try_from(self.days() % 7).unwrap_or_default();
                DAYS.get(weekday).cloned()
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{MOMENTS, SampleCall, callers};

    #[test]
    fn moments_have_dates() {
        for (s, date, weekday, hour) in [
            (0, "1970-01-01", "thursday", 0),
            (951_782_399, "2000-02-28", "monday", 23),
            (951_782_400, "2000-02-29", "tuesday", 0),
            (1_795_294_800, "2026-11-21", "saturday", 21),
            (4_107_542_400, "2100-03-01", "monday", 0),
        ] {
            let shown = Moment { ms: s * 1000 }.document(&Fields::All);
            assert_eq!(shown["date"], Value::from(date), "{s}");
            assert_eq!(shown["weekday"], Value::from(weekday), "{s}");
            assert_eq!(shown["hour"], Value::from(hour), "{s}");
        }
    }

    #[test]
    fn a_field_is_the_same_whether_it_is_named_or_comes_with_all() {
        let resource = Resource {
            kind: "machine",
            id: "1".to_owned(),
            labels: [("rack".to_owned(), "7".to_owned())].into(),
            ..Resource::default()
        };
        let asked = methods().iter().filter(|it| control_authz::is_judged(it));
        let mut seen = 0;
        for (method, caller) in asked.flat_map(|it| callers().into_iter().map(move |by| (it, by))) {
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
