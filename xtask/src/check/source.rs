//! The product's sources as rules read them: parsed, and without their tests.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ImplItem, Item, Macro, Token};

use super::comments::{self, Comment};
use super::metadata::Metadata;

/// Folders of crates that are no product: tests, automation and stand-ins for published crates.
const NO_PRODUCT: [&str; 3] = ["tests", "xtask", "patches"];

/// One file of a product crate.
pub(crate) struct Source {
    /// Name of the crate.
    pub(crate) krate: String,
    /// Path of the file that the module tree begins with; a crate may have several programs.
    pub(crate) tree: String,
    /// Path from the root of the workspace.
    pub(crate) path: String,
    /// Path of the module within its tree. Empty for the file that the tree begins with.
    pub(crate) module: Vec<String>,
    /// The file without items that only tests have.
    pub(crate) syntax: syn::File,
    /// Comments outside of tests.
    pub(crate) comments: Vec<Comment>,
    /// Lines of code outside of tests.
    pub(crate) code_lines: usize,
}

impl Source {
    /// Parses a file of a crate.
    ///
    /// # Errors
    ///
    /// The text is no Rust.
    pub(crate) fn parse(krate: &str, path: &str, module: &[&str], text: &str) -> Result<Self> {
        let mut syntax = syn::parse_file(text).with_context(|| format!("cannot parse {path}"))?;
        let mut tests = Vec::new();
        drop_tests(&mut syntax.items, &mut tests);
        let lines = comments::read(text);
        let is_test = |line: usize| tests.iter().any(|range| range.contains(&line));
        Ok(Self {
            krate: krate.to_owned(),
            tree: path.to_owned(),
            path: path.to_owned(),
            module: module.iter().map(|name| (*name).to_owned()).collect(),
            syntax,
            comments: lines
                .comments
                .into_iter()
                .filter(|comment| !is_test(comment.line))
                .collect(),
            code_lines: lines.code.iter().filter(|line| !is_test(**line)).count(),
        })
    }

    /// `true` for a file of a crate under `control/`.
    pub(crate) fn is_control(&self) -> bool {
        self.krate.starts_with("control-")
    }
}

/// Reads the sources of every product crate: the modules that its programs and its library reach.
pub(crate) fn load(root: &Path, metadata: &Metadata) -> Result<Vec<Source>> {
    let mut loader = Loader {
        root,
        seen: BTreeSet::new(),
        sources: Vec::new(),
    };
    for package in metadata.ours() {
        let folder = metadata.folder(package);
        if NO_PRODUCT.iter().any(|no| folder.starts_with(no)) {
            continue;
        }
        for begin in tree_roots(&root.join(folder).join("src"))? {
            let tree = loader.name(&begin);
            loader.read(&package.name, &tree, &begin, &[])?;
        }
    }
    loader.sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(loader.sources)
}

/// The files with which the module trees of a crate begin.
fn tree_roots(src: &Path) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = ["lib.rs", "main.rs"]
        .iter()
        .map(|name| src.join(name))
        .filter(|path| path.is_file())
        .collect();
    let programs = src.join("bin");
    if programs.is_dir() {
        let context = || format!("cannot read {}", programs.display());
        for entry in fs::read_dir(&programs).with_context(context)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

struct Loader<'a> {
    root: &'a Path,
    seen: BTreeSet<PathBuf>,
    sources: Vec<Source>,
}

impl Loader<'_> {
    fn name(&self, path: &Path) -> String {
        let from_root = path.strip_prefix(self.root).unwrap_or(path);
        from_root.display().to_string()
    }

    /// Reads a file and the modules that it declares.
    fn read(&mut self, krate: &str, tree: &str, path: &Path, module: &[&str]) -> Result<()> {
        if !self.seen.insert(path.to_path_buf()) {
            return Ok(());
        }
        let name = self.name(path);
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        let mut source = Source::parse(krate, &name, module, &text)?;
        source.tree = tree.to_owned();
        let folder = path.parent().unwrap_or(path).to_path_buf();
        let stem = path.file_stem().unwrap_or_default();
        let is_folder_root = module.is_empty() || stem == "mod";
        let below = if is_folder_root {
            folder.clone()
        } else {
            folder.join(stem)
        };
        for declared in declared(&source.syntax.items, &folder, &below, &[]) {
            let names: Vec<&str> = declared.module.iter().map(String::as_str).collect();
            let inner = [module, &names].concat();
            self.read(krate, tree, &declared.file()?, &inner)?;
        }
        self.sources.push(source);
        Ok(())
    }
}

/// A module that a file declares and that is in a file of its own.
struct Declared {
    /// Path from the module of the file that declares it.
    module: Vec<String>,
    /// Where the module may be, the one that is there counts.
    candidates: Vec<PathBuf>,
}

impl Declared {
    fn file(&self) -> Result<PathBuf> {
        let found = self.candidates.iter().find(|path| path.is_file());
        let module = self.module.join("::");
        found.cloned().with_context(|| {
            format!(
                "module {module} has no file; looked at {:?}",
                self.candidates
            )
        })
    }
}

fn declared(items: &[Item], folder: &Path, below: &Path, outer: &[String]) -> Vec<Declared> {
    let mut found = Vec::new();
    for item in items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        let name = name.trim_start_matches("r#");
        let path = [outer, &[name.to_owned()]].concat();
        if let Some((_, inner)) = &module.content {
            found.extend(declared(inner, folder, &below.join(name), &path));
            continue;
        }
        let candidates = match path_attribute(&module.attrs) {
            Some(file) => vec![folder.join(file)],
            None => vec![
                below.join(format!("{name}.rs")),
                below.join(name).join("mod.rs"),
            ],
        };
        found.push(Declared {
            module: path,
            candidates,
        });
    }
    found
}

/// The file that `#[path = "…"]` names.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let pair = attribute.meta.require_name_value().ok()?;
        let syn::Expr::Lit(literal) = &pair.value else {
            return None;
        };
        match &literal.lit {
            syn::Lit::Str(text) if pair.path.is_ident("path") => Some(text.value()),
            _ => None,
        }
    })
}

/// Removes items that only tests have, in modules too, and notes their lines.
fn drop_tests(items: &mut Vec<Item>, tests: &mut Vec<RangeInclusive<usize>>) {
    items.retain(|item| {
        let is_test = is_test(attributes(item));
        if is_test {
            tests.push(item.span().start().line..=item.span().end().line);
        }
        !is_test
    });
    for item in items {
        match item {
            Item::Mod(module) => {
                if let Some((_, inner)) = &mut module.content {
                    drop_tests(inner, tests);
                }
            }
            Item::Impl(block) => block.items.retain(|item| {
                let ImplItem::Fn(function) = item else {
                    return true;
                };
                let is_test = is_test(&function.attrs);
                if is_test {
                    tests.push(item.span().start().line..=item.span().end().line);
                }
                !is_test
            }),
            _ => {}
        }
    }
}

/// `true` if the attributes keep an item out of every build but a test's.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        if path
            .segments
            .last()
            .is_some_and(|last| last.ident == "test")
        {
            return true;
        }
        let Ok(list) = attribute.meta.require_list() else {
            return false;
        };
        let condition = list.tokens.to_string().replace(' ', "");
        path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The arguments of a macro's call, as far as they are expressions. The parser leaves them unread.
pub(crate) fn macro_arguments(call: &Macro) -> Vec<Expr> {
    let list = Punctuated::<Expr, Token![,]>::parse_terminated;
    let parsed = list.parse2(call.tokens.clone());
    parsed.map_or_else(|_| Vec::new(), |list| list.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn tests_are_left_out() {
        let text = "\
            // a\n\
            fn one() {}\n\
            struct S;\n\
            impl S {\n\
                /// b\n\
                #[cfg(test)]\n\
                fn two() {}\n\
            }\n\
            #[cfg(not(test))]\n\
            fn three() {}\n\
            /// c\n\
            #[cfg(test)]\n\
            mod tests {\n\
                // d\n\
            }\n";
        let source = Source::parse("a", "a.rs", &[], text).expect("it parses");
        let comments: Vec<&str> = source.comments.iter().map(|c| c.text.as_str()).collect();
        assert_eq!(comments, [" a"]);
        assert_eq!(source.code_lines, 6);
        assert_eq!(source.syntax.items.len(), 4);
    }
}
