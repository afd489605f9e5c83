/// Longest part of a message, characters. A tenant's text may be of any length.
const MESSAGE_LEN_MAX: usize = 400;

/// A text that may quote a tenant's, without characters that steer a terminal, and at most 400
/// characters of it.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().take(MESSAGE_LEN_MAX) {
        let turns = matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn texts_do_not_steer_a_terminal() {
        for (text, expected) in [
            ("web", "web"),
            ("\u{1B}[2J", "\\u{1b}[2J"),
            ("a\u{202E}b", "a\\u{202e}b"),
            ("\u{2066}\n", "\\u{2066}\\u{a}"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable(&"x".repeat(1000)).len(), 400);
    }
}
