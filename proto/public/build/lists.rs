//! Names the list of each answer that has one: `impl ListAnswer for TokenServiceListResponse`.

use std::collections::BTreeSet;
use std::fmt::Write;

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::lint;
use crate::requests::rust_type;

/// The Rust source of all implementations: one for each answer with exactly one repeated field of
/// messages.
pub(crate) fn generate(pool: &DescriptorPool) -> Result<String, String> {
    let mut out = String::new();
    let mut seen = BTreeSet::new();
    let ours = pool.services().filter(|s| lint::ours(s.full_name()));
    for method in ours.flat_map(|s| s.methods().collect::<Vec<_>>()) {
        let answer = method.output();
        if answer.full_name().starts_with(lint::GRPC) || !seen.insert(answer.full_name().to_owned())
        {
            continue;
        }
        let Some((field, item)) = list(&answer) else {
            continue;
        };
        write!(
            out,
            "impl crate::ListAnswer for {} {{\n\
             \x20   type Item = {};\n\
             \x20   const FIELD: u32 = {};\n\
             }}\n",
            rust_type(&answer),
            rust_type(&item),
            field.number(),
        )
        .map_err(|e| e.to_string())?;
    }
    Ok(out)
}

fn list(answer: &MessageDescriptor) -> Option<(FieldDescriptor, MessageDescriptor)> {
    let mut lists = answer.fields().filter_map(|field| match field.kind() {
        Kind::Message(item) if field.is_list() && item.parent_message().is_none() => {
            Some((field, item))
        }
        _ => None,
    });
    let only = lists.next()?;
    lists.next().is_none().then_some(only)
}
