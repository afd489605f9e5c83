//! A conversion that failed and became a default: `parse`, `try_into`, `try_from` or `from_str`
//! and then `unwrap_or_default()`, in one chain.

use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, ExprPath, Macro};

use super::Hit;
use crate::check::source::{Source, macro_arguments};

/// Conversions that can fail.
const CONVERSIONS: [&str; 5] = [
    "parse",
    "try_into",
    "try_from",
    "from_str",
    "from_str_radix",
];

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
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if is_default(call)
            && let Some(conversion) = conversion(&call.receiver)
        {
            let line = call.method.span().start().line;
            self.hits.push(Hit::new(self.source, line, conversion));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        for argument in macro_arguments(call) {
            self.visit_expr(&argument);
        }
    }
}

fn is_default(call: &ExprMethodCall) -> bool {
    call.method == "unwrap_or_default"
}

/// Name of the first conversion in what a default may stand for.
fn conversion(chain: &Expr) -> Option<String> {
    let mut conversions = Conversions(None);
    conversions.visit_expr(chain);
    conversions.0
}

struct Conversions(Option<String>);

impl Conversions {
    fn note(&mut self, name: String) {
        if CONVERSIONS.contains(&name.as_str()) {
            self.0.get_or_insert(name);
        }
    }
}

impl<'ast> Visit<'ast> for Conversions {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        // A default within the chain is a hit of its own.
        if !is_default(call) {
            self.note(call.method.to_string());
            visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        // `u8::try_from(x)`, and `str::parse` that is handed to `and_then`.
        if let Some(last) = path.path.segments.last()
            && path.path.segments.len() > 1
        {
            self.note(last.ident.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::check::rules::hits;

    #[test]
    fn conversions_that_are_lost() {
        for (expression, expected) in [
            ("a.parse().unwrap_or_default()", vec!["1 parse"]),
            ("a.parse::<u8>().ok().unwrap_or_default()", vec!["1 parse"]),
            ("a\n.try_into()\n.unwrap_or_default()", vec!["3 try_into"]),
            ("u8::try_from(a).unwrap_or_default()", vec!["1 try_from"]),
            (
                "a.and_then(|b| b.parse().ok()).unwrap_or_default()",
                vec!["1 parse"],
            ),
            (
                "a.and_then(str::parse).unwrap_or_default()",
                vec!["1 parse"],
            ),
            ("vec![a.parse().unwrap_or_default()]", vec!["1 parse"]),
            (
                "b(a.parse().unwrap_or_default()).unwrap_or_default()",
                vec!["1 parse"],
            ),
            ("a.parse().unwrap_or(1)", vec![]),
            ("a.parse()?", vec![]),
            ("a.get(1).unwrap_or_default()", vec![]),
            ("try_from(a).unwrap_or_default()", vec![]),
        ] {
            let text = format!("fn a() {{ {expression} }}");
            assert_eq!(hits(find, &text), expected, "{text}");
        }
    }
}
