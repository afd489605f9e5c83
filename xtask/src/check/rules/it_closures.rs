//! Closures whose argument is called `it`, which says nothing about the thing.

use syn::visit::{self, Visit};
use syn::{ExprClosure, Macro, PatIdent};

use super::Hit;
use crate::check::source::{Source, macro_arguments};

pub(super) fn find(sources: &[Source]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for source in sources {
        let mut finder = Finder {
            source,
            hits: &mut hits,
        };
        finder.visit_file(&source.syntax);
    }
    hits
}

struct Finder<'a> {
    source: &'a Source,
    hits: &'a mut Vec<Hit>,
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        let mut names = Names(false);
        for input in &closure.inputs {
            names.visit_pat(input);
        }
        if names.0 {
            let line = closure.or1_token.span.start().line;
            self.hits.push(Hit::new(self.source, line, "|it|"));
        }
        visit::visit_expr_closure(self, closure);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        for argument in macro_arguments(call) {
            self.visit_expr(&argument);
        }
    }
}

/// `true` inside once a pattern binds `it`.
struct Names(bool);

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.0 |= pattern.ident == "it";
    }
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::check::rules::hits;

    #[test]
    fn closures_with_it() {
        for (text, expected) in [
            ("fn a() { b(|machine| machine.id) }", vec![]),
            ("fn a() { b(|it| it.id) }", vec!["1 |it|"]),
            ("fn a() { b(|&it| it); }", vec!["1 |it|"]),
            ("fn a() { b(|(it, c)| it) }", vec!["1 |it|"]),
            ("fn a() { b(move |it: &u8| it) }", vec!["1 |it|"]),
            (
                "fn a() { b(|it| {\nc(|it| it)\n}) }",
                vec!["1 |it|", "2 |it|"],
            ),
            ("fn a() { vec![1,\nb(|it| it)] }", vec!["2 |it|"]),
            ("fn a() { let it = 1; b(|c| it) }", vec![]),
        ] {
            assert_eq!(hits(find, text), expected, "{text}");
        }
    }
}
