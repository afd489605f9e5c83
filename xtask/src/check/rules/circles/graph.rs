//! The dependencies between the modules of a crate, read from the paths in its files.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{ItemMod, ItemUse, Macro, Visibility};

use super::exports::{Exports, Owner, paths, plain};
use crate::check::source::Source;

/// Crates whose top-level folders are resources: there each layer of a resource is a module of its
/// own (`machine/entity`), as the resources refer to each other layer by layer.
const LAYERED: [&str; 1] = ["control-state"];
/// The layers of a resource.
const LAYERS: [&str; 4] = ["entity", "command", "read", "apply"];

/// A line that names another module.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) line: usize,
}

/// For each module the modules that it names, with the first place of each.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) edges: BTreeMap<String, BTreeMap<String, Place>>,
}

impl Graph {
    /// Reads the files of one module tree.
    pub(super) fn of(files: &[&Source]) -> Self {
        let exports = Exports::of(files);
        let mut graph = Self::default();
        let is_product = |file: &&&Source| {
            let module = file.module.first();
            module.is_none_or(|module| !exports.of_tests.contains(module))
        };
        for file in files.iter().filter(is_product) {
            let mut reader = Reader {
                file,
                exports: &exports,
                module: file.module.clone(),
                graph: &mut graph,
            };
            reader.visit_file(&file.syntax);
        }
        graph
    }
}

struct Reader<'a> {
    file: &'a Source,
    exports: &'a Exports,
    /// Path of the module that is read.
    module: Vec<String>,
    graph: &'a mut Graph,
}

impl Reader<'_> {
    fn root(&self) -> String {
        let name = self.file.tree.rsplit('/').next();
        name.unwrap_or(&self.file.tree).to_owned()
    }

    /// The module that a path from the root of the crate leads to.
    fn module_of(&self, path: &[String]) -> String {
        match path {
            [folder, layer, ..]
                if LAYERED.contains(&self.file.krate.as_str())
                    && LAYERS.contains(&layer.as_str()) =>
            {
                format!("{folder}/{layer}")
            }
            [module, ..] => module.clone(),
            [] => self.root(),
        }
    }

    /// Notes what a path names, if it begins with `crate`, `self` or `super`.
    fn note(&mut self, segments: &[String], line: usize) {
        let mut base = self.module.clone();
        let mut rest = segments;
        let mut is_anchored = false;
        while let [first, after @ ..] = rest {
            match first.as_str() {
                "crate" => base.clear(),
                "super" => drop(base.pop()),
                "self" => {}
                _ => break,
            }
            is_anchored = true;
            rest = after;
        }
        let Some(name) = rest.first() else { return };
        // In the first file of the crate a path may begin with one of its modules.
        let is_child = self.module.is_empty() && self.exports.modules.contains(name);
        if !(is_anchored || is_child) {
            return;
        }
        let to = if base.is_empty() {
            match self.exports.owner(rest) {
                Some(Owner::Module(path)) => self.module_of(&path),
                Some(Owner::Root) => self.root(),
                None => return,
            }
        } else {
            self.module_of(&[&base, rest].concat())
        };
        let from = self.module_of(&self.module);
        if from == to {
            return;
        }
        let place = Place {
            path: self.file.path.clone(),
            line,
        };
        let targets = self.graph.edges.entry(from).or_default();
        targets.entry(to).or_insert(place);
    }

    /// Notes the paths in the arguments of a macro, which the parser leaves unread.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) if colons == 2 && !path.is_empty() => {
                    path.push(plain(&name));
                    colons = 0;
                }
                other => {
                    self.note(&path, line);
                    path.clear();
                    colons = 0;
                    match other {
                        TokenTree::Ident(name) => {
                            line = name.span().start().line;
                            path.push(plain(&name));
                        }
                        TokenTree::Group(group) => self.read_tokens(group.stream()),
                        _ => {}
                    }
                }
            }
        }
        self.note(&path, line);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(plain(&item.ident));
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_export = !matches!(item.vis, Visibility::Inherited);
        // An export alone makes the first file depend on nothing.
        if self.module.is_empty() && is_export {
            return;
        }
        for path in paths(&item.tree) {
            self.note(&path.segments, item.span().start().line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| plain(&segment.ident))
            .collect();
        self.note(&segments, path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {
        // `pub(in crate::module)` names who may see an item, and depends on nothing.
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.read_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}
