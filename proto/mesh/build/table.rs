//! Reads the method options 50100 (`callers`) and 50101 (`audit`).

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow, bail};
use prost_reflect::{DescriptorPool, ExtensionDescriptor, MethodDescriptor, Value};

/// Options of one method, as Rust names.
pub(crate) struct Options {
    pub(crate) callers: Vec<String>,
    pub(crate) audit: &'static str,
}

/// Options by `package.Service/Method`.
pub(crate) type Table = BTreeMap<String, Options>;

pub(crate) fn read(pool: &DescriptorPool) -> anyhow::Result<Table> {
    let extension = |name: &str| {
        pool.get_extension_by_name(&format!("metalmesh.mesh.v1.{name}"))
            .ok_or_else(|| anyhow!("option {name} is not declared"))
    };
    let (callers, audit) = (extension("callers")?, extension("audit")?);
    let mut table = Table::new();
    for service in pool.services() {
        for method in service.methods() {
            let name = format!("{}/{}", service.full_name(), method.name());
            let options = options(&method, &callers, &audit).with_context(|| name.clone())?;
            table.insert(name, options);
        }
    }
    Ok(table)
}

fn options(
    method: &MethodDescriptor,
    callers: &ExtensionDescriptor,
    audit: &ExtensionDescriptor,
) -> anyhow::Result<Options> {
    let options = method.options();
    let mut names = Vec::new();
    if let Value::List(list) = options.get_extension(callers).as_ref() {
        for value in list {
            let number = value.as_enum_number().context("callers is not an enum")?;
            names.push(caller(number)?.to_owned());
        }
    }
    if names.is_empty() {
        bail!("has no option `callers`: nobody could call it");
    }
    let audit = match options.get_extension(audit).as_enum_number() {
        Some(1) => "Always",
        Some(2) => "Never",
        _ => bail!("has no option `audit`"),
    };
    Ok(Options {
        callers: names,
        audit,
    })
}

/// The variant of `proto_identity::CallerKind`.
fn caller(number: i32) -> anyhow::Result<&'static str> {
    Ok(match number {
        1 => "Anonymous",
        2 => "Core",
        3 => "Bmc",
        4 => "Pixie",
        5 => "Machine",
        6 => "ProjectMachine",
        other => bail!("caller {other} is unknown to the generator"),
    })
}
