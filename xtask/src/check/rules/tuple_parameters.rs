//! Parameters of named functions that are tuples: they pair values that have no name together.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{FnArg, Signature, Type};

use super::Hit;
use crate::check::source::Source;

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
    fn visit_signature(&mut self, signature: &'ast Signature) {
        for input in &signature.inputs {
            if let FnArg::Typed(parameter) = input
                && is_pair(&parameter.ty)
            {
                let line = parameter.span().start().line;
                self.hits
                    .push(Hit::new(self.source, line, signature.ident.to_string()));
            }
        }
        visit::visit_signature(self, signature);
    }
}

/// `true` for a tuple of two or more, also behind a reference.
fn is_pair(of: &Type) -> bool {
    match of {
        Type::Tuple(tuple) => tuple.elems.len() > 1,
        Type::Reference(reference) => is_pair(&reference.elem),
        Type::Paren(inner) => is_pair(&inner.elem),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::check::rules::hits;

    #[test]
    fn parameters_that_pair() {
        for (text, expected) in [
            ("fn a(b: u8, c: u8) {}", vec![]),
            ("fn a((b, c): (u8, u8)) {}", vec!["1 a"]),
            ("fn a(b: &(u8, u8)) {}", vec!["1 a"]),
            ("fn a(b: &mut (u8, u8), c: (u8, u8)) {}", vec!["1 a", "1 a"]),
            ("trait T { fn a(&self, b: (u8, u8)); }", vec!["1 a"]),
            ("impl S {\nfn a(b: (u8, u8)) {}\n}", vec!["2 a"]),
            ("fn a(b: ()) -> (u8, u8) {}", vec![]),
            ("fn a(b: &[(u8, u8)]) {}", vec![]),
            ("fn a() { b(|(c, d)| c) }", vec![]),
        ] {
            assert_eq!(hits(find, text), expected, "{text}");
        }
    }
}
