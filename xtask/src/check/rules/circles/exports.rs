//! Names that the first file of a crate has: modules, exports and definitions of its own.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Attribute, Item, UseTree, Visibility};

use crate::check::products::is_for_tests;
use crate::check::source::Source;

/// The meaning of `crate::name`, for each name.
#[derive(Default)]
pub(super) struct Exports {
    /// Modules that the first file declares.
    pub(super) modules: BTreeSet<String>,
    /// Modules that no product has: only a feature for tests brings them.
    pub(super) of_tests: BTreeSet<String>,
    /// Names that it uses from a module, with the path of the name.
    used: BTreeMap<String, Vec<String>>,
    /// Modules of which it uses every name.
    globs: Vec<String>,
    /// Names that it defines.
    defined: BTreeSet<String>,
    /// Names that modules define, with the module.
    names: BTreeMap<String, BTreeSet<String>>,
}

/// The module or the first file of a crate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The path that the name stands for, which begins with a top-level module.
    Module(Vec<String>),
    Root,
}

impl Exports {
    pub(super) fn of(files: &[&Source]) -> Self {
        let mut exports = Self::default();
        for file in files {
            match file.module.first() {
                Some(module) => {
                    let names = exports.names.entry(module.clone()).or_default();
                    collect_names(&file.syntax.items, names);
                }
                None => exports.read_root(&file.krate, &file.syntax.items),
            }
        }
        exports
    }

    fn read_root(&mut self, krate: &str, items: &[Item]) {
        for item in items {
            if let Item::Mod(module) = item {
                if is_of_tests(krate, &module.attrs) {
                    self.of_tests.insert(plain(&module.ident));
                    continue;
                }
                self.modules.insert(plain(&module.ident));
                if let Some((_, inner)) = &module.content {
                    let names = self.names.entry(plain(&module.ident)).or_default();
                    collect_names(inner, names);
                }
            } else if let Some(name) = defined_name(item) {
                self.defined.insert(name);
            }
        }
        for item in items {
            let Item::Use(item) = item else { continue };
            for path in paths(&item.tree) {
                let begin = usize::from(["crate", "self"].contains(&path.segments[0].as_str()));
                let Some(module) = path.segments.get(begin) else {
                    continue;
                };
                if !self.modules.contains(module) {
                    continue;
                }
                match path.name {
                    Some(name) => drop(self.used.insert(name, path.segments[begin..].to_vec())),
                    None => self.globs.push(module.clone()),
                }
            }
        }
    }

    /// The module that `crate::path` is from. `None` for names that are not of this crate.
    pub(super) fn owner(&self, path: &[String]) -> Option<Owner> {
        let name = path.first()?;
        if self.modules.contains(name) {
            return Some(Owner::Module(path.to_vec()));
        }
        if let Some(used) = self.used.get(name) {
            return Some(Owner::Module(used.clone()));
        }
        if self.defined.contains(name) {
            return Some(Owner::Root);
        }
        let has_name = |module: &&String| {
            let names = self.names.get(*module);
            names.is_some_and(|names| names.contains(name))
        };
        let module = self.globs.iter().find(has_name)?;
        Some(Owner::Module(vec![module.clone(), name.clone()]))
    }
}

/// `true` if the attributes ask for a feature that only tests are built with.
fn is_of_tests(krate: &str, attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Ok(list) = attribute.meta.require_list() else {
            return false;
        };
        let condition = list.tokens.to_string().replace(' ', "");
        let feature = condition
            .strip_prefix("feature=\"")
            .and_then(|rest| rest.strip_suffix('"'));
        list.path.is_ident("cfg") && feature.is_some_and(|name| is_for_tests(krate, name))
    })
}

/// One path of a `use`, with the name that it gets. No name means every name of the path.
pub(super) struct UsePath {
    pub(super) segments: Vec<String>,
    pub(super) name: Option<String>,
}

/// The paths of a `use`, without braces.
pub(super) fn paths(tree: &UseTree) -> Vec<UsePath> {
    let mut found = Vec::new();
    expand(tree, &[], &mut found);
    found.retain(|path| !path.segments.is_empty());
    found
}

fn expand(tree: &UseTree, outer: &[String], found: &mut Vec<UsePath>) {
    let with = |name: String| [outer, &[name]].concat();
    match tree {
        UseTree::Path(path) => expand(&path.tree, &with(plain(&path.ident)), found),
        UseTree::Group(group) => {
            for tree in &group.items {
                expand(tree, outer, found);
            }
        }
        UseTree::Glob(_) => found.push(UsePath {
            segments: outer.to_vec(),
            name: None,
        }),
        UseTree::Name(leaf) if leaf.ident == "self" => found.push(UsePath {
            segments: outer.to_vec(),
            name: outer.last().cloned(),
        }),
        UseTree::Name(leaf) => found.push(UsePath {
            segments: with(plain(&leaf.ident)),
            name: Some(plain(&leaf.ident)),
        }),
        UseTree::Rename(leaf) => found.push(UsePath {
            segments: with(plain(&leaf.ident)),
            name: Some(plain(&leaf.rename)),
        }),
    }
}

/// The names that items define or use for others, at any depth.
fn collect_names(items: &[Item], names: &mut BTreeSet<String>) {
    for item in items {
        names.extend(defined_name(item));
        match item {
            Item::Mod(module) => {
                let inner = module.content.iter().flat_map(|(_, inner)| inner);
                for item in inner {
                    collect_names(std::slice::from_ref(item), names);
                }
            }
            Item::Use(item) if !matches!(item.vis, Visibility::Inherited) => {
                names.extend(paths(&item.tree).into_iter().filter_map(|path| path.name));
            }
            _ => {}
        }
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(plain(ident))
}

/// A name without the mark that lets it be a keyword.
pub(super) fn plain(ident: &syn::Ident) -> String {
    let name = ident.to_string();
    name.trim_start_matches("r#").to_owned()
}
