//! Shell patterns.

/// Shell pattern: `*` is anything, `?` is one byte.
///
/// On a mismatch only the newest star takes one byte more: what an earlier one could take instead
/// cannot help. So the steps are at most pattern times text, however many stars there are.
pub(crate) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Behind the newest star, and where the text goes on that the star does not take.
    let mut newest: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(read) {
        match (pattern.get(at), &mut newest) {
            (Some(b'*'), _) => {
                at += 1;
                newest = Some((at, read));
            }
            (Some(wanted), _) if *wanted == b'?' || wanted == byte => {
                at += 1;
                read += 1;
            }
            (_, Some((after, from))) => {
                *from += 1;
                (at, read) = (*after, *from);
            }
            (_, None) => return false,
        }
    }
    pattern.iter().skip(at).all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_globs() {
        for (pattern, text, expected) in [
            ("/dev/sd*", "/dev/sda", true),
            ("/dev/sd*", "/dev/nvme0n1", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*EPYC*", "AMD EPYC 7502", true),
            ("", "", true),
            ("", "a", false),
            ("**", "a", true),
            ("*a*b", "xaxxab", true),
            ("*a*b", "xaxxaba", false),
            ("*ab", "aab", true),
            ("*a?b", "aaab", true),
            ("a*", "", false),
            ("a", "ab", false),
        ] {
            assert_eq!(
                glob(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
