//! Terms of selectors as `kubectl` has them: `a=b`, `a!=b`, `a`, `!a`, `a in (b,c)`, `a notin (b,c)`.

use anyhow::{Result, bail};
use proto_public::metalmesh::tenant::v1::{ClaimSelector, ClaimSelectorTerm};

/// The selector of all terms together.
///
/// # Errors
/// A text is no term.
pub(super) fn selector(terms: &[String]) -> Result<ClaimSelector> {
    let mut selector = ClaimSelector::default();
    for text in terms {
        let term = term(text)?;
        match (term.operator.as_str(), term.values.as_slice()) {
            ("In", [value]) => {
                selector.match_labels.insert(term.key, value.clone());
            }
            _ => selector.match_expressions.push(term),
        }
    }
    Ok(selector)
}

fn term(text: &str) -> Result<ClaimSelectorTerm> {
    let text = text.trim();
    let made = |key: &str, operator: &str, values: Vec<String>| {
        let key = key.trim();
        if key.is_empty()
            || key.contains(|sign: char| sign.is_whitespace() || "=!(),".contains(sign))
        {
            bail!("{text:?} is no term of a selector, for example \"kind=medium\" or \"gpu\"");
        }
        Ok(ClaimSelectorTerm {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values,
        })
    };
    for (word, operator) in [(" notin ", "NotIn"), (" in ", "In")] {
        if let Some((key, list)) = text.split_once(word) {
            let inner = list.trim().strip_prefix('(');
            let Some(inner) = inner.and_then(|inner| inner.strip_suffix(')')) else {
                bail!("{text:?}: the values must be in parentheses, for example (a,b)");
            };
            let values = inner.split(',').map(|value| value.trim().to_owned());
            return made(key, operator, values.collect());
        }
    }
    if let Some((key, value)) = text.split_once("!=") {
        return made(key, "NotIn", vec![value.trim().to_owned()]);
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return made(key, "In", vec![value.trim().to_owned()]);
    }
    match text.strip_prefix('!') {
        Some(key) => made(key, "DoesNotExist", Vec::new()),
        None => made(text, "Exists", Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_every_kind() {
        for (text, key, operator, values) in [
            ("a=b", "a", "In", &["b"][..]),
            ("a==b", "a", "In", &["b"]),
            ("a!=b", "a", "NotIn", &["b"]),
            ("a in (b,c)", "a", "In", &["b", "c"]),
            ("a notin (b, c)", "a", "NotIn", &["b", "c"]),
            ("a", "a", "Exists", &[]),
            ("!a", "a", "DoesNotExist", &[]),
            ("x/y-z=1", "x/y-z", "In", &["1"]),
        ] {
            let found = term(text).unwrap();
            assert_eq!(
                (found.key.as_str(), found.operator.as_str()),
                (key, operator),
                "{text}"
            );
            assert_eq!(found.values, values, "{text}");
        }
        for bad in ["", "=b", "a in b", "a in (b", "a b", "!", "(a)"] {
            assert!(term(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn equalities_become_labels() {
        let found = selector(&["a=b".into(), "c in (d,e)".into()]).unwrap();
        assert_eq!(found.match_labels["a"], "b");
        assert_eq!(found.match_expressions.len(), 1);
    }
}
