//! Items that are `pub` and have no doc comment: functions, methods, types, constants, modules.

use std::collections::BTreeSet;

use syn::Ident;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemConst, ImplItemFn, Item, ItemMod, Visibility};

use super::Hit;
use crate::check::source::Source;

pub(super) fn find(sources: &[Source]) -> Vec<Hit> {
    // A module may say what it is in its own file.
    let documented: BTreeSet<(&str, Vec<String>)> = sources
        .iter()
        .filter(|source| has_docs(&source.syntax.attrs))
        .map(|source| (source.tree.as_str(), source.module.clone()))
        .collect();
    let mut hits = Vec::new();
    for source in sources {
        let mut finder = Finder {
            source,
            module: source.module.clone(),
            documented: &documented,
            hits: &mut hits,
        };
        finder.visit_file(&source.syntax);
    }
    hits
}

struct Finder<'a> {
    source: &'a Source,
    module: Vec<String>,
    documented: &'a BTreeSet<(&'a str, Vec<String>)>,
    hits: &'a mut Vec<Hit>,
}

impl Finder<'_> {
    fn judge(&mut self, visibility: &Visibility, attributes: &[Attribute], name: &Ident) {
        if matches!(visibility, Visibility::Public(_)) && !has_docs(attributes) {
            let line = name.span().start().line;
            self.hits
                .push(Hit::new(self.source, line, name.to_string()));
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Const(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Enum(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Fn(item) => self.judge(&item.vis, &item.attrs, &item.sig.ident),
            Item::Static(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Struct(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Trait(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Type(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            Item::Union(item) => self.judge(&item.vis, &item.attrs, &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module
            .push(item.ident.to_string().trim_start_matches("r#").to_owned());
        let key = (self.source.tree.as_str(), self.module.clone());
        if !self.documented.contains(&key) {
            self.judge(&item.vis, &item.attrs, &item.ident);
        }
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.judge(&item.vis, &item.attrs, &item.sig.ident);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast ImplItemConst) {
        self.judge(&item.vis, &item.attrs, &item.ident);
    }
}

fn has_docs(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("doc"))
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::check::rules::{hits, sources};

    #[test]
    fn items_without_docs() {
        for (text, expected) in [
            ("pub fn a() {}", vec!["1 a"]),
            ("/// A.\npub fn a() {}", vec![]),
            ("pub(crate) fn a() {}\nfn b() {}", vec![]),
            (
                "/// S.\npub struct S;\nimpl S {\npub fn a() {}\n}",
                vec!["4 a"],
            ),
            ("impl T for S {\nfn a() {}\n}", vec![]),
            (
                "pub enum A {}\npub trait B {}\npub type C = u8;",
                vec!["1 A", "2 B", "3 C"],
            ),
            ("pub const A: u8 = 1;\npub use b::C;", vec!["1 A"]),
            ("pub mod a { pub fn b() {} }", vec!["1 a", "1 b"]),
            ("pub mod a {\n//! A.\n}", vec![]),
            ("#[cfg(test)]\nmod tests { pub fn a() {} }", vec![]),
        ] {
            assert_eq!(hits(find, text), expected, "{text}");
        }
    }

    #[test]
    fn modules_in_files_of_their_own() {
        let text = "pub mod a;\npub mod b;\n/// C.\npub mod c;\n";
        let files = [
            ("lib.rs", text),
            ("a.rs", "//! A."),
            ("b.rs", ""),
            ("c.rs", ""),
        ];
        let found = find(&sources("control-a", &files));
        let names: Vec<&str> = found.iter().map(|hit| hit.what.as_str()).collect();
        assert_eq!(names, ["b"]);
    }
}
