//! The types that files define, which several rules count.

use syn::{Ident, Item};

/// A struct, an enum, a union, a trait or a type alias.
pub(super) struct TypeName {
    pub(super) name: String,
    pub(super) line: usize,
}

/// The types of a file's top level, in order.
pub(super) fn top_level(items: &[Item]) -> Vec<TypeName> {
    items.iter().filter_map(ident).map(type_name).collect()
}

/// The types of a file, those of its inline modules included.
pub(super) fn all(items: &[Item]) -> Vec<TypeName> {
    let mut found = top_level(items);
    for item in items {
        if let Item::Mod(module) = item
            && let Some((_, inner)) = &module.content
        {
            found.extend(all(inner));
        }
    }
    found
}

fn type_name(ident: &Ident) -> TypeName {
    TypeName {
        name: ident.to_string(),
        line: ident.span().start().line,
    }
}

fn ident(item: &Item) -> Option<&Ident> {
    match item {
        Item::Struct(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        _ => None,
    }
}
