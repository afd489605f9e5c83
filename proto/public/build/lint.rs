//! A method that nobody authorised must not compile: each one names exactly one kind of caller
//! and whether it is audited, and its request carries the field that names the subject.

use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MethodDescriptor, Value};

const PREFIX: &str = "metalstack.api.v2.";
/// Option, and the request field from which the server takes the subject.
const SCOPES: [(&str, Option<&str>); 6] = [
    ("tenant_roles", Some("login")),
    ("project_roles", Some("project")),
    ("machine_roles", Some("uuid")),
    ("admin_roles", None),
    ("infra_roles", None),
    ("visibility", None),
];

/// Checks all methods of the pool; the error lists every offender.
pub(crate) fn check(pool: &DescriptorPool) -> Result<(), String> {
    let mut wrong = Vec::new();
    for service in pool.services() {
        let name = service.full_name();
        if !name.starts_with("metalstack.") && !name.starts_with("metalmesh.") {
            continue;
        }
        for method in service.methods() {
            if let Err(reason) = check_method(pool, &method) {
                wrong.push(format!("{}: {reason}", method.full_name()));
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "methods without authorisation or auditing:\n  {}",
        wrong.join("\n  ")
    ))
}

fn check_method(pool: &DescriptorPool, method: &MethodDescriptor) -> Result<(), String> {
    let options = method.options();
    let scopes: Vec<_> = SCOPES
        .iter()
        .filter(|(name, _)| is_set(pool, &options, name))
        .collect();
    let [(scope, subject)] = scopes[..] else {
        return Err(format!(
            "wants exactly one of the options {}; it has {}",
            SCOPES.map(|(name, _)| name).join(", "),
            scopes.len()
        ));
    };
    if !is_set(pool, &options, "auditing") {
        return Err("has no option auditing".to_owned());
    }
    if let Some(field) = *subject {
        let found = method.input().get_field_by_name(field);
        if !found.is_some_and(|f| f.kind() == Kind::String && !f.is_list()) {
            return Err(format!(
                "has {scope}, but its request has no string field {field}"
            ));
        }
    }
    Ok(())
}

/// Whether an option is present and not (only) the unspecified value.
fn is_set(pool: &DescriptorPool, options: &DynamicMessage, name: &str) -> bool {
    let Some(extension) = pool.get_extension_by_name(&format!("{PREFIX}{name}")) else {
        return false;
    };
    match options.get_extension(&extension).as_ref() {
        Value::EnumNumber(number) => *number != 0,
        Value::List(values) => {
            !values.is_empty()
                && values
                    .iter()
                    .all(|v| v.as_enum_number().is_some_and(|n| n != 0))
        }
        _ => false,
    }
}
