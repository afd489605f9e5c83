//! Paths of JSON Patch (RFC 6901).

use crate::error::IronicError;

/// Most parts of a path; a longer one is refused.
const PARTS_MAX: usize = 32;

/// The parts of a path such as `/extra/a~1b`.
///
/// # Errors
/// 400 for a path that names no field, or is malformed.
pub(super) fn parse(text: &str) -> Result<Vec<String>, IronicError> {
    let refused = |rule: &str| {
        let text = format!("Invalid path \"{text}\" in the patch: it {rule}");
        IronicError::invalid(text)
    };
    let Some(rest) = text.strip_prefix('/') else {
        return Err(refused("must begin with a slash"));
    };
    let mut parts = Vec::new();
    for part in rest.split('/') {
        if part.is_empty() {
            return Err(refused("must have no empty part"));
        }
        if parts.len() == PARTS_MAX {
            return Err(refused("must have at most 32 parts"));
        }
        let part = decoded(part).ok_or_else(|| refused("must write ~ as ~0, and / as ~1"))?;
        parts.push(part);
    }
    Ok(parts)
}

/// The text of a path with these parts.
pub(super) fn text(parts: &[String]) -> String {
    let parts = parts.iter();
    let encoded = parts.map(|part| part.replace('~', "~0").replace('/', "~1"));
    let encoded: Vec<String> = encoded.collect();
    format!("/{}", encoded.join("/"))
}

/// A part without its escapes. `None` if one is unknown.
fn decoded(part: &str) -> Option<String> {
    let mut text = String::with_capacity(part.len());
    let mut signs = part.chars();
    while let Some(sign) = signs.next() {
        if sign != '~' {
            text.push(sign);
            continue;
        }
        match signs.next() {
            Some('0') => text.push('~'),
            Some('1') => text.push('/'),
            _ => return None,
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_their_parts() {
        for (path, expected) in [
            ("/extra", vec!["extra"]),
            ("/extra/k", vec!["extra", "k"]),
            ("/extra/a~1b~0c", vec!["extra", "a/b~c"]),
            ("/extra/~01", vec!["extra", "~1"]),
        ] {
            let parts = parse(path).unwrap();
            assert_eq!(parts, expected, "{path}");
            assert_eq!(text(&parts), path);
        }
    }

    #[test]
    fn malformed_paths_are_refused() {
        let deep = "/a".repeat(PARTS_MAX + 1);
        for path in ["", "extra", "/", "/extra/", "//a", "/a~", "/a~2", &deep] {
            assert!(parse(path).is_err(), "{path}");
        }
        assert!(parse(&"/a".repeat(PARTS_MAX)).is_ok());
    }
}
