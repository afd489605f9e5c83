//! The value of a check: text with places for attributes, `%(node.owner)s`.

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValuePart<'a> {
    Text(&'a str),
    /// Name of an attribute.
    Attribute(&'a str),
}

/// Splits a value at its places for attributes. `%%` is one percent sign.
///
/// # Errors
/// The text behind a percent sign that begins no place.
pub(crate) fn parts(value: &str) -> Result<Vec<ValuePart<'_>>, &str> {
    let mut found = Vec::new();
    let mut rest = value;
    while let Some(percent) = rest.find('%') {
        let (before, placed) = rest.split_at(percent);
        if !before.is_empty() {
            found.push(ValuePart::Text(before));
        }
        if let Some(behind) = placed.strip_prefix("%%") {
            found.push(ValuePart::Text("%"));
            rest = behind;
            continue;
        }
        let name = placed
            .strip_prefix("%(")
            .and_then(|inner| inner.split_once(")s"));
        let (name, behind) = name.ok_or(placed)?;
        if name.is_empty() || name.contains(['(', ')', '%']) {
            return Err(placed);
        }
        found.push(ValuePart::Attribute(name));
        rest = behind;
    }
    if !rest.is_empty() {
        found.push(ValuePart::Text(rest));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::ValuePart::{Attribute, Text};
    use super::parts;

    #[test]
    fn values() {
        for (value, expected) in [
            ("admin", Ok(vec![Text("admin")])),
            ("%(node.owner)s", Ok(vec![Attribute("node.owner")])),
            (
                "a-%(x)s-%%%(y)s",
                Ok(vec![
                    Text("a-"),
                    Attribute("x"),
                    Text("-"),
                    Text("%"),
                    Attribute("y"),
                ]),
            ),
            ("%(x", Err("%(x")),
            ("%(x)d", Err("%(x)d")),
            ("%()s", Err("%()s")),
            ("a%s", Err("%s")),
            ("100%", Err("%")),
            ("%((x)s)s", Err("%((x)s)s")),
        ] {
            assert_eq!(parts(value), expected, "{value}");
        }
    }
}
