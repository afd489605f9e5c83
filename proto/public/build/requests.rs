//! Ties each request type to its method: `impl Request for IpServiceGetRequest { … }`, so that
//! the server finds method and subject of a typed request without comparing strings.

use std::collections::BTreeSet;
use std::fmt::Write;

use heck::{ToSnakeCase, ToUpperCamelCase};
use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::lint;

/// The Rust source of all implementations; methods are numbered as the pool lists them.
pub(crate) fn generate(pool: &DescriptorPool) -> Result<String, String> {
    let mut out = String::new();
    let mut seen = BTreeSet::new();
    let ours = pool.services().filter(|s| lint::ours(s.full_name()));
    for (index, method) in ours
        .flat_map(|s| s.methods().collect::<Vec<_>>())
        .enumerate()
    {
        let input = method.input();
        // Their requests belong to several methods, and no client of ours calls them.
        if input.full_name().starts_with(lint::GRPC) {
            continue;
        }
        if !seen.insert(input.full_name().to_owned()) {
            return Err(format!(
                "{} is the request of two methods",
                input.full_name()
            ));
        }
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let subject = match lint::subject_field(pool, &method) {
            Some(field) => format!("Some(&self.{})", field.to_snake_case()),
            None => "None".to_owned(),
        };
        write!(
            out,
            "impl crate::Request for {} {{\n\
             \x20   type Response = {};\n\
             \x20   const PATH: &'static str = {path:?};\n\
             \x20   const INDEX: usize = {index};\n\
             \x20   fn subject(&self) -> Option<&str> {{ {subject} }}\n\
             }}\n",
            rust_type(&input),
            rust_type(&method.output()),
        )
        .map_err(|e| e.to_string())?;
    }
    Ok(out)
}

/// `metalstack.api.v2.IPQuery` is `crate::api::v2::IpQuery`.
pub(crate) fn rust_type(message: &MessageDescriptor) -> String {
    let package = message.package_name();
    let module = package
        .strip_prefix("metalstack.")
        .unwrap_or(package)
        .replace('.', "::");
    format!("crate::{module}::{}", message.name().to_upper_camel_case())
}
