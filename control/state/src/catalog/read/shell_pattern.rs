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
