//! The build fails for a method without authorisation: each method names exactly one kind of caller
//! and whether it is audited, and its request has the field that names the subject.

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

/// `true` if a service is part of the public API and not of an import.
pub(crate) fn ours(service: &str) -> bool {
    ["metalstack.", "metalmesh.", GRPC]
        .iter()
        .any(|package| service.starts_with(package))
}

/// gRPC's own services: generic clients and probes call them.
pub(crate) const GRPC: &str = "grpc.";

/// Checks all methods of the pool. The error lists every method that fails.
pub(crate) fn check(pool: &DescriptorPool) -> Result<(), String> {
    let mut wrong = Vec::new();
    for service in pool.services().filter(|s| ours(s.full_name())) {
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
        "methods without proper authorisation or auditing:\n  {}",
        wrong.join("\n  ")
    ))
}

/// The request field that names the subject of a method.
pub(crate) fn subject_field(
    pool: &DescriptorPool,
    method: &MethodDescriptor,
) -> Option<&'static str> {
    let options = method.options();
    SCOPES
        .iter()
        .find(|(name, _)| is_set(pool, &options, name))
        .and_then(|(_, field)| *field)
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
    if method.is_client_streaming() && !is_public(pool, &options) {
        return Err(
            "takes a stream, but the gate looks at one message: only what everybody may \
                    call can"
                .to_owned(),
        );
    }
    if !is_set(pool, &options, "auditing") {
        return Err("has no option auditing".to_owned());
    }
    if let Some(field) = *subject {
        let found = method.input().get_field_by_name(field);
        let plain = |f: prost_reflect::FieldDescriptor| {
            f.kind() == Kind::String && !f.is_list() && !f.supports_presence()
        };
        if !found.is_some_and(plain) {
            return Err(format!(
                "has {scope}, but its request has no string field {field}"
            ));
        }
    }
    Ok(())
}

/// `true` if all callers may call the method, also without a token.
fn is_public(pool: &DescriptorPool, options: &DynamicMessage) -> bool {
    let Some(extension) = pool.get_extension_by_name(&format!("{PREFIX}visibility")) else {
        return false;
    };
    let Some(values) = pool.get_enum_by_name(&format!("{PREFIX}Visibility")) else {
        return false;
    };
    let public = values.get_value_by_name("VISIBILITY_PUBLIC");
    public.is_some_and(|value| {
        *options.get_extension(&extension) == Value::EnumNumber(value.number())
    })
}

/// `true` if an option is present and contains no unspecified value.
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
