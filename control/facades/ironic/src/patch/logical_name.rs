//! Names that stand in an address as they are.

use uuid::Uuid;

/// Longest name, characters.
const NAME_LEN_MAX: usize = 255;

/// `true` for a text that Ironic accepts as a name: unreserved characters of URLs (RFC 3986), and no
/// UUID, which would be taken for an id.
pub(crate) fn is_logical_name(text: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "-._~".contains(sign);
    (1..=NAME_LEN_MAX).contains(&text.len())
        && text.chars().all(is_sign)
        && Uuid::parse_str(text).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_ids_and_fit_into_an_address() {
        let longest = "n".repeat(NAME_LEN_MAX);
        let too_long = "n".repeat(NAME_LEN_MAX + 1);
        for (text, expected) in [
            ("kn1", true),
            ("meow-node_1.a~b", true),
            (longest.as_str(), true),
            (too_long.as_str(), false),
            ("", false),
            ("a b", false),
            ("a/b", false),
            ("n\u{e4}", false),
            ("1ab63b9e-66d7-4cd7-8618-dddd0f9f7881", false),
            ("1ab63b9e66d74cd78618dddd0f9f7881", false),
        ] {
            assert_eq!(is_logical_name(text), expected, "{text}");
        }
    }
}
