//! Circles between the modules of a crate under `control/`: each module of one is a hit.
//!
//! A module is a file or a folder beside the file that the crate begins with; where the folders are
//! resources, it is a layer of one (`machine/entity`). The first file counts too, for what it
//! defines itself; what it only exports belongs to the module that defines it.
//! A module that only a feature for tests enables is left out: no product has it.
//!
//! Modules that must not use each other at all are hits too (`apart`).

mod apart;
mod exports;
mod graph;

use std::collections::{BTreeMap, BTreeSet};

use self::graph::{Graph, Place};
use super::Hit;
use crate::check::source::Source;

/// Modules that all depend on each other.
pub(crate) struct Circle {
    pub(crate) krate: String,
    pub(crate) modules: BTreeSet<String>,
    /// Dependencies within the circle, each with the first place that has it.
    pub(crate) edges: Vec<Edge>,
}

pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) place: Place,
}

pub(super) fn find(sources: &[Source]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for circle in circles(sources) {
        let names: Vec<&str> = circle.modules.iter().map(String::as_str).collect();
        let all = names.join(", ");
        for module in &circle.modules {
            let edge = circle.edges.iter().find(|edge| edge.from == *module);
            let Some(edge) = edge else { continue };
            hits.push(Hit {
                krate: circle.krate.clone(),
                path: edge.place.path.clone(),
                line: edge.place.line,
                what: format!("{module} needs {}, in the circle {all}", edge.to),
            });
        }
    }
    for (krate, graph) in graphs(sources) {
        for crossing in apart::crossings(&krate, &graph) {
            let apart::Crossing { from, to, place } = crossing;
            hits.push(Hit {
                krate: krate.clone(),
                path: place.path,
                line: place.line,
                what: format!("{from} uses {to}, which is for another audience"),
            });
        }
    }
    hits
}

/// The circles of every crate under `control/`, program by program.
pub(crate) fn circles(sources: &[Source]) -> Vec<Circle> {
    let mut found = Vec::new();
    for (krate, graph) in graphs(sources) {
        for modules in components(&graph) {
            found.push(Circle {
                krate: krate.clone(),
                edges: inner_edges(&graph, &modules),
                modules,
            });
        }
    }
    found
}

/// The graph of each program of every crate under `control/`, with the crate's name.
fn graphs(sources: &[Source]) -> Vec<(String, Graph)> {
    let mut trees: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_control()) {
        trees.entry(&source.tree).or_default().push(source);
    }
    let named = |files: &Vec<&Source>| {
        let krate = files.first()?.krate.clone();
        Some((krate, Graph::of(files)))
    };
    trees.values().filter_map(named).collect()
}

fn inner_edges(graph: &Graph, modules: &BTreeSet<String>) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (from, targets) in graph
        .edges
        .iter()
        .filter(|(from, _)| modules.contains(*from))
    {
        for (to, place) in targets.iter().filter(|(to, _)| modules.contains(*to)) {
            edges.push(Edge {
                from: from.clone(),
                to: to.clone(),
                place: place.clone(),
            });
        }
    }
    edges
}

/// The strongly connected components of more than one module.
fn components(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = graph
        .edges
        .keys()
        .map(|module| (module, reachable(graph, module)))
        .collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (module, below) in &reached {
        if found.iter().any(|circle| circle.contains(*module)) {
            continue;
        }
        let is_mutual = |other: &&&String| {
            reached
                .get(**other)
                .is_some_and(|back| back.contains(*module))
        };
        let mut circle: BTreeSet<String> = below
            .iter()
            .filter(is_mutual)
            .map(|name| (*name).clone())
            .collect();
        circle.insert((*module).clone());
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found
}

/// Every module that a module depends on, also by way of others.
fn reachable<'a>(graph: &'a Graph, from: &'a String) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for target in graph.edges.get(module).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(target) {
                open.push(target);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::circles;
    use crate::check::rules::sources;

    /// Circles as `a b`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        found_of("control-a", files)
    }

    fn found_of(krate: &str, files: &[(&str, &str)]) -> Vec<String> {
        circles(&sources(krate, files))
            .iter()
            .map(|circle| {
                let names: Vec<&str> = circle.modules.iter().map(String::as_str).collect();
                names.join(" ")
            })
            .collect()
    }

    #[test]
    fn circles_of_two_modules() {
        let lib = "mod a; mod b; pub use b::B; pub use b::deep::*;";
        let a_circle = vec!["a b".to_owned()];
        for (a, b, expected) in [
            ("use crate::b::B;", "", vec![]),
            ("use crate::b::B;", "use crate::a::A;", a_circle.clone()),
            ("use crate::B;", "use crate::a::A;", a_circle.clone()),
            (
                "use crate::{B, c::C};",
                "use super::a::A;",
                a_circle.clone(),
            ),
            (
                "fn f() { crate::b::f() }",
                "type T = crate::a::A;",
                a_circle.clone(),
            ),
            (
                "fn f() { p!(x, crate::b::f()) }",
                "use crate::a;",
                a_circle.clone(),
            ),
            (
                "mod c { use super::super::b; }",
                "use crate::a;",
                a_circle.clone(),
            ),
            ("mod c { use super::b; }", "use crate::a;", vec![]),
            (
                "use crate::Deep;",
                "use crate::a;\nmod deep { pub struct Deep; }",
                a_circle,
            ),
            ("use crate::Stranger;", "use crate::a;", vec![]),
            ("pub(in crate::b) fn f() {}", "use crate::a;", vec![]),
            ("#[cfg(test)] use crate::b;", "use crate::a;", vec![]),
        ] {
            let files = [("lib.rs", lib), ("a.rs", a), ("b.rs", b)];
            assert_eq!(found(&files), expected, "{a} | {b}");
        }
    }

    #[test]
    fn files_of_a_folder_are_one_module() {
        let lib = ("lib.rs", "mod a; mod b;");
        let up = ("a/x.rs", "use crate::b::B; use super::y::Y;");
        let down = ("b/mod.rs", "use crate::a::y::Y;");
        assert_eq!(found(&[lib, up, ("a/y.rs", "use super::x::X;")]), [""; 0]);
        assert_eq!(found(&[lib, up, ("a/y.rs", ""), down]), ["a b"]);
    }

    #[test]
    fn layers_of_a_resource_are_modules() {
        let lib = (
            "lib.rs",
            "mod machine; mod network; pub use machine::entity::Machine;",
        );
        let folders = [
            ("machine/mod.rs", "pub mod entity; mod apply;"),
            ("network/mod.rs", "pub mod entity; pub mod apply;"),
        ];
        let downwards = [
            ("machine/entity.rs", "use crate::network::entity::Network;"),
            (
                "machine/apply.rs",
                "use super::entity::Machine; use crate::network::apply::f;",
            ),
            ("network/apply.rs", "use crate::Machine;"),
        ];
        let up = [("network/entity.rs", "use crate::machine::apply::f;")];
        let layered = |files: &[_]| found_of("control-state", files);
        let base = [&[lib][..], &folders, &downwards].concat();
        assert_eq!(layered(&base), [""; 0]);
        assert_eq!(found(&base), ["machine network"]);
        let expected = "machine/apply machine/entity network/apply network/entity";
        assert_eq!(layered(&[&base[..], &up].concat()), [expected]);
    }

    #[test]
    fn modules_that_only_tests_have() {
        let a = ("a.rs", "fn f() { crate::sim::hit() }");
        let sim = ("sim.rs", "use crate::a::A;");
        for (lib, expected) in [
            ("mod a; #[cfg(feature = \"sim\")] mod sim;", vec![]),
            ("mod a; #[cfg(feature = \"other\")] mod sim;", vec!["a sim"]),
            (
                "mod a; #[cfg(not(feature = \"sim\"))] mod sim;",
                vec!["a sim"],
            ),
        ] {
            let files = [("lib.rs", lib), a, sim];
            let found = found_of("control-store", &files);
            assert_eq!(found, expected, "{lib}");
        }
    }

    #[test]
    fn longer_circles_and_the_root() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d; pub use a::A;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "use crate::A;"),
            ("d.rs", "use crate::a::A;"),
        ];
        assert_eq!(found(&files), ["a b c"]);
        let root = "mod a; use a::A; pub struct Root(A);";
        assert_eq!(
            found(&[("lib.rs", root), ("a.rs", "use crate::Root;")]),
            ["a lib.rs"]
        );
        let facade = "mod a; pub use a::A; pub struct Root(u8);";
        assert_eq!(
            found(&[("lib.rs", facade), ("a.rs", "use crate::Root;")]),
            [""; 0]
        );
    }
}
