//! The input document: all that a policy knows of a call. `docs/reference/policy-input.md` has it
//! for people; what is not there is left out, so that nothing is ever equal to nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::LazyLock;

use control_authz::{Denied, Directory, Permit, Principal, TokenKind, project_role, tenant_role};
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
pub struct Facts<'a> {
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
    ($($name:ident $text:literal;)*) => {
        struct Keys { $($name: Value,)* }
        static KEYS: LazyLock<Keys> = LazyLock::new(|| Keys { $($name: Value::from($text),)* });
    };
}

keys! {
    address "address"; admin "admin"; api "api"; anonymous "anonymous"; caller "caller";
    date "date"; editor "editor"; forbidden "forbidden"; guest "guest"; hour "hour"; id "id";
    infra "infra"; kind "kind"; labels "labels"; machine "machine"; method "method";
    minute "minute"; not_found "not_found"; owner "owner"; partition "partition";
    permits "permits"; platform "platform"; project "project"; refusal "refusal";
    relation "relation"; request "request"; resource "resource"; roles "roles"; size "size";
    subject "subject"; table "table"; tenant "tenant"; time "time"; token "token";
    unauthenticated "unauthenticated"; unix "unix"; user "user"; viewer "viewer";
    weekday "weekday";
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

/// An object that is being made; no key comes twice. To sort it in the end costs less than to look
/// for the place of each.
#[derive(Default)]
struct Object(Vec<(Value, Value)>);

impl Object {
    fn put(&mut self, key: &Value, value: Value) {
        self.0.push((key.clone(), value));
    }

    fn text(&mut self, key: &Value, value: Option<&str>) {
        if let Some(value) = value {
            self.put(key, Value::from(value));
        }
    }

    fn word(&mut self, key: &Value, word: Option<&Value>) {
        if let Some(word) = word {
            self.put(key, word.clone());
        }
    }

    fn into_value(self) -> Value {
        Value::from(self.0.into_iter().collect::<BTreeMap<_, _>>())
    }
}

/// The document.
pub(crate) fn document(facts: &Facts<'_>, wants: &Wants) -> Value {
    let keys = &*KEYS;
    let mut input = Object::default();
    let method = PARTS.methods.get(facts.method.index);
    input.put(&keys.method, method.cloned().unwrap_or(Value::Undefined));
    if wants.caller {
        input.put(&keys.caller, caller(facts));
    }
    if wants.roles {
        input.put(&keys.roles, roles(facts));
    }
    if wants.relation {
        input.put(&keys.relation, relation(facts.relation));
    }
    if let Some(subject) = subject(facts).filter(|_| wants.subject) {
        input.put(&keys.subject, subject);
    }
    if wants.table {
        input.put(&keys.table, table(facts.table));
    }
    if wants.time {
        input.put(&keys.time, facts.now.document());
    }
    if let Some(request) = facts.request.filter(|_| !wants.request.is_none()) {
        input.put(&keys.request, fields(request, &wants.request));
    }
    if let Some(it) = facts.resource.filter(|_| wants.resource) {
        input.put(&keys.resource, resource(it));
    }
    input.into_value()
}

/// Of a request what is looked at.
fn fields(request: &serde_json::Value, wanted: &Fields) -> Value {
    let (serde_json::Value::Object(all), Fields::Named(names)) = (request, wanted) else {
        return json(request);
    };
    let mut found = Object::default();
    for (name, key) in names {
        if let Some(value) = all.get(name) {
            found.put(key, json(value));
        }
    }
    found.into_value()
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

fn caller(facts: &Facts<'_>) -> Value {
    let keys = &*KEYS;
    let who = facts.who;
    let mut caller = Object::default();
    let user = &*who.user;
    caller.text(&keys.user, (!user.is_empty()).then_some(user));
    let kind = match who.kind {
        TokenKind::Anonymous => &keys.anonymous,
        TokenKind::Api => &keys.api,
        TokenKind::User => &keys.user,
    };
    caller.put(&keys.kind, kind.clone());
    caller.put(&keys.platform, Value::from(facts.is_of_platform));
    let token = &*who.token;
    caller.text(&keys.token, (!token.is_empty()).then_some(token));
    if let Some(address) = facts.address {
        caller.put(&keys.address, Value::from(address.to_string()));
    }
    caller.text(&keys.partition, facts.partition);
    caller.into_value()
}

/// What the token carries for the subject; of a log-in that is what the user is there.
fn roles(facts: &Facts<'_>) -> Value {
    let keys = &*KEYS;
    let rights = &facts.who.rights;
    let mut roles = Object::default();
    match facts.who.kind {
        TokenKind::Anonymous => {}
        TokenKind::User => {
            roles.word(&keys.tenant, facts.relation.tenant_role.and_then(tenant));
            roles.word(&keys.project, facts.relation.project_role.and_then(project));
        }
        TokenKind::Api => {
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
            let in_tenant = facts.relation.tenant.as_deref().unwrap_or_default();
            roles.word(&keys.tenant, of!(tenant_roles, in_tenant).and_then(tenant));
            roles.word(&keys.project, of!(project_roles, subject).and_then(project));
            roles.word(&keys.machine, of!(machine_roles, subject).and_then(machine));
            roles.word(&keys.admin, rights.admin_role.and_then(admin));
            roles.word(&keys.infra, rights.infra_role.and_then(infra));
        }
    }
    roles.into_value()
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

fn relation(of: &Relation) -> Value {
    let mut relation = Object::default();
    relation.word(&KEYS.tenant, of.tenant_role.and_then(tenant));
    relation.word(&KEYS.project, of.project_role.and_then(project));
    relation.into_value()
}

fn subject(facts: &Facts<'_>) -> Option<Value> {
    let keys = &*KEYS;
    let kind = match facts.method.scope {
        Scope::Tenant(_) => &keys.tenant,
        Scope::Project(_) => &keys.project,
        Scope::Machine(_) => &keys.machine,
        _ => return None,
    };
    let mut subject = Object::default();
    subject.put(&keys.kind, kind.clone());
    subject.text(&keys.id, facts.subject);
    subject.text(&keys.tenant, facts.relation.tenant.as_deref());
    Some(subject.into_value())
}

fn table(of: &Result<Permit, Denied>) -> Value {
    let keys = &*KEYS;
    let mut table = Object::default();
    table.put(&keys.permits, Value::from(of.is_ok()));
    let refusal = match of {
        Err(Denied::Forbidden { .. }) => Some(&keys.forbidden),
        Err(Denied::NotFound { .. }) => Some(&keys.not_found),
        Err(Denied::Unauthenticated) => Some(&keys.unauthenticated),
        _ => None,
    };
    table.word(&keys.refusal, refusal);
    table.into_value()
}

fn resource(of: &Resource) -> Value {
    let keys = &*KEYS;
    let mut resource = Object::default();
    resource.put(&keys.kind, Value::from(of.kind));
    resource.text(&keys.id, Some(&of.id));
    resource.text(&keys.partition, of.partition.as_deref());
    resource.text(&keys.project, of.project.as_deref());
    resource.text(&keys.size, of.size.as_deref());
    let labels = of.labels.iter();
    let labels = labels.map(|(name, value)| (Value::from(name.as_str()), value.as_str().into()));
    let labels: BTreeMap<Value, Value> = labels.collect();
    resource.put(&keys.labels, Value::from(labels));
    resource.into_value()
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

    fn document(self) -> Value {
        let keys = &*KEYS;
        let (year, month, day) = self.date();
        let date = format!("{year:04}-{month:02}-{day:02}");
        let weekday = usize::try_from(self.days() % 7).unwrap_or_default();
        let mut moment = Object::default();
        moment.put(&keys.date, Value::from(date));
        moment.put(&keys.hour, Value::from(self.ms / 3_600_000 % 24));
        moment.put(&keys.minute, Value::from(self.ms / 60_000 % 60));
        moment.put(&keys.unix, Value::from(self.ms / 1000));
        moment.put(&keys.weekday, DAYS[weekday].clone());
        moment.into_value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_dates() {
        for (s, date, weekday, hour) in [
            (0, "1970-01-01", "thursday", 0),
            (951_782_399, "2000-02-28", "monday", 23),
            (951_782_400, "2000-02-29", "tuesday", 0),
            (1_795_294_800, "2026-11-21", "saturday", 21),
            (4_107_542_400, "2100-03-01", "monday", 0),
        ] {
            let shown = Moment { ms: s * 1000 }.document();
            assert_eq!(shown["date"], Value::from(date), "{s}");
            assert_eq!(shown["weekday"], Value::from(weekday), "{s}");
            assert_eq!(shown["hour"], Value::from(hour), "{s}");
        }
    }
}
