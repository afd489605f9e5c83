//! One decision about a call: by the contract's table alone, and where a site's policy is asked.
//!
//! It is the product's own code over the product's own state: a directory of tenants and projects,
//! a token's principal, the path of a method. What is before it (the token's signature, reading
//! the state) and behind it is not measured.

mod oslo;
mod timing;

use anyhow::{Result, ensure};
use clap::Args;
use control_authz::{Principal, PrincipalKind, TokenRights};
use control_gate::{Looked, Policies};
use control_policy::check;
use control_state::{
    AnnounceNode, Command, CreateProject, CreateTenant, FEATURE_LEVEL, Op, SetPolicy,
    SetProjectMember, Tables,
};
use proto_public::api::v2::ProjectRole;
use proto_types::{ProjectId, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use timing::{DecisionReport, Measured, ROUNDS, timed};

pub(crate) use timing::median_mean_ns;

const TENANTS: u64 = 2_000;
const PROVIDER: &str = "metal-stack";
/// Where no rule exists.
const TABLE_NS_MAX: f64 = 200.0;
/// Where one does.
const RULE_NS_MAX: f64 = 5_000.0;
const DELETE: &str = "/metalstack.api.v2.MachineService/Delete";
const LIST: &str = "/metalstack.api.v2.MachineService/List";
const CREATE: &str = "/metalstack.api.v2.MachineService/Create";
const BMC: &str = "/metalstack.api.v2.MachineService/GetBMC";

#[derive(Debug, Args)]
pub(crate) struct AuthzArgs {
    /// Decisions of each row, in thousands
    #[arg(long, default_value_t = 2_000)]
    thousands: u32,
    /// table, or json: the last line alone
    #[arg(short, long, default_value = "table")]
    output: String,
}

/// What is decided.
struct Row {
    name: &'static str,
    title: &'static str,
    who: Principal,
    path: &'static str,
    request: Option<Value>,
    permitted: bool,
    max_ns: f64,
    policies: bool,
}

#[expect(clippy::print_stdout, reason = "the report is the output")]
pub(crate) fn run(args: &AuthzArgs) -> Result<()> {
    let plain = site(&[])?;
    let judged = site(&[
        (
            "guests",
            include_str!("../../../../control/policy/tests/examples/guests.rego"),
        ),
        (
            "office-hours",
            include_str!("../../../../control/policy/tests/examples/office-hours.rego"),
        ),
        (
            "big-machines",
            include_str!("../../../../control/policy/tests/examples/big-machines.rego"),
        ),
    ])?;
    let (rows, oslo_rows) = (rows(), oslo::rows()?);
    let mut rounds = vec![Vec::new(); rows.len()];
    let mut oslo_rounds = vec![Vec::new(); oslo_rows.len()];
    for _ in 0..ROUNDS {
        for (row, taken) in rows.iter().zip(&mut rounds) {
            let tables = if row.policies { &judged } else { &plain };
            taken.push(measure(row, tables, args.thousands)?);
        }
        for (row, taken) in oslo_rows.iter().zip(&mut oslo_rounds) {
            taken.push(row.measure(args.thousands)?);
        }
    }
    let mut report = DecisionReport::default();
    for (row, taken) in rows.iter().zip(rounds) {
        report.add(row.name, row.title, row.max_ns, taken)?;
    }
    for (row, taken) in oslo_rows.iter().zip(oslo_rounds) {
        report.add(row.name, row.title, oslo::MAX_NS, taken)?;
    }
    if args.output != "json" {
        println!("{}", report.table());
    }
    println!("{}", report.json());
    ensure!(
        report.missed.is_empty(),
        "missed: {}",
        report.missed.join(", ")
    );
    Ok(())
}

fn rows() -> Vec<Row> {
    let mut rows = table_rows();
    rows.extend(rule_rows());
    rows
}

/// A decision by the table alone that permits.
fn row(name: &'static str, title: &'static str, who: &Principal, path: &'static str) -> Row {
    Row {
        name,
        title,
        who: who.clone(),
        path,
        request: None,
        permitted: true,
        max_ns: TABLE_NS_MAX,
        policies: false,
    }
}

/// The same with the rules of the policies.
fn rule(row: Row) -> Row {
    Row {
        max_ns: RULE_NS_MAX,
        policies: true,
        ..row
    }
}

/// Owner of the project of the requests.
fn owner() -> Principal {
    principal("user-7", PrincipalKind::User, TokenRights::default())
}

/// Decisions that no rule takes part in.
fn table_rows() -> Vec<Row> {
    let owner = owner();
    let ci = TokenRights {
        project_roles: [(project(7).to_string(), ProjectRole::Editor)].into(),
        ..TokenRights::default()
    };
    let ci = principal("user-7", PrincipalKind::Api, ci);
    vec![
        row(
            "table_login",
            "table alone, a log-in, permitted",
            &owner,
            LIST,
        ),
        row(
            "table_token",
            "table alone, an API token, permitted",
            &ci,
            LIST,
        ),
        Row {
            permitted: false,
            ..row(
                "table_stranger",
                "table alone, not found",
                &principal("user-9", PrincipalKind::User, TokenRights::default()),
                LIST,
            )
        },
        Row {
            policies: true,
            ..row(
                "unnamed",
                "three policies in force, none names the method",
                &owner,
                LIST,
            )
        },
    ]
}

/// Decisions in which a rule of a policy is evaluated.
fn rule_rows() -> Vec<Row> {
    let owner = owner();
    let guest = principal("guest", PrincipalKind::User, TokenRights::default());
    let power = json!({
        "project": project(7).to_string(), "uuid": Uuid::nil(),
        "command": "MACHINE_BMC_COMMAND_ON"
    });
    vec![
        rule(row(
            "relation",
            "a rule about the relation does not fire, permitted",
            &owner,
            DELETE,
        )),
        Row {
            permitted: false,
            ..rule(row(
                "denied",
                "the rule fires, refused with its message",
                &guest,
                DELETE,
            ))
        },
        Row {
            request: Some(power),
            ..rule(row(
                "allowed",
                "a rule about the request permits beyond the table",
                &guest,
                "/metalstack.api.v2.MachineService/BMCCommand",
            ))
        },
        rule(row(
            "clock",
            "a rule about the clock does not fire, permitted",
            &owner,
            BMC,
        )),
        Row {
            request: Some(json!({
                "project": project(7).to_string(), "name": "web-1", "size": "c1-small",
                "image": "debian-12.0", "partition": "lab",
                "networks": [{ "network": "acme-private" }],
            })),
            ..rule(row(
                "request",
                "a rule about the request does not fire, permitted",
                &owner,
                CREATE,
            ))
        },
    ]
}

fn measure(row: &Row, tables: &Tables, thousands: u32) -> Result<Measured> {
    let policies = Policies::default();
    let looked = Looked {
        policies: &policies,
        tables,
        provider: PROVIDER,
        who: &row.who,
        address: Some([192, 0, 2, 1].into()),
        partition: None,
        now: Timestamp::from_ms(1_795_608_000_000),
    };
    let subject = project(7).to_string();
    let decide = || looked.decide(row.path, Some(&subject), row.request.as_ref());
    let answer = decide();
    ensure!(answer.is_ok() == row.permitted, "{}: {answer:?}", row.name);
    timed(thousands, || decide().is_ok())
}

fn principal(user: &str, kind: PrincipalKind, rights: TokenRights) -> Principal {
    Principal {
        user: user.into(),
        token: Uuid::from_u128(1).to_string().into(),
        kind,
        rights,
    }
}

fn project(number: u64) -> ProjectId {
    ProjectId::new(Uuid::from_u128(u128::from(number) + 1))
}

/// Tenants with a project each, a guest in one of them, and policies.
fn site(policies: &[(&str, &str)]) -> Result<Tables> {
    let mut tables = Tables::new();
    let mut apply = |op: Op| -> Result<()> {
        let command = Command::new(Timestamp::from_ms(1), "bench", op);
        control_state::apply(&mut tables, &command).result?;
        Ok(())
    };
    apply(Op::from(AnnounceNode {
        id: 1,
        peer_address: String::new(),
        mesh_addresses: Vec::new(),
        level: FEATURE_LEVEL,
        version: String::new(),
    }))?;
    for number in 0..TENANTS {
        tenant(number, &mut apply)?;
    }
    let guest = SetProjectMember {
        id: project(7),
        member: "guest".parse()?,
        role: control_state::ProjectRole::Viewer,
        must_be_new: None,
    };
    apply(Op::from(guest))?;
    for (name, source) in policies {
        let compiled = check(name, source)?.compiled;
        apply(Op::from(SetPolicy {
            name: (*name).to_owned(),
            source: (*source).to_owned(),
            methods: compiled.paths(),
            expected: None,
        }))?;
    }
    Ok(tables)
}

/// A tenant with one project, both owned by the user of that number.
fn tenant(number: u64, apply: &mut impl FnMut(Op) -> Result<()>) -> Result<()> {
    let login: proto_types::TenantId = format!("user-{number}").parse()?;
    apply(Op::from(CreateTenant {
        login: login.clone(),
        name: login.to_string(),
        email: String::new(),
        description: String::new(),
        avatar_url: String::new(),
        labels: Default::default(),
        owner: Some(login.clone()),
    }))?;
    apply(Op::from(CreateProject {
        id: project(number),
        tenant: login.clone(),
        name: format!("project-{number}"),
        description: String::new(),
        avatar_url: None,
        labels: Default::default(),
        owner: None,
    }))
}
