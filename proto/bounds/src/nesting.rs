//! Nesting of YAML, bounded before a parser sees it.

/// Opening brackets and braces that a text of strangers may have: more than any that a program
/// writes, and the parser is done with as many nested ones at once.
pub const BRACKETS_MAX: usize = 1024;
/// Brackets and braces that may be open at once in a text with more than [`BRACKETS_MAX`].
pub const NESTING_MAX: usize = 64;
/// Sequences and keys that may begin on one line, each in the one before: `- - - x`.
const LINE_STARTS_MAX: usize = NESTING_MAX;

/// The problem of a text that is not [flat](is_flat).
pub const NESTED_PROBLEM: &str =
    "it is nested deeper than 64 levels, by brackets or by `- ` on one line";
/// Its remedy.
pub const NESTED_REMEDY: &str = "close the brackets, or write each level on a line of its own";

/// `true` if a text has so few brackets and braces that no parser is slow on it, however they are
/// nested, and no line of many beginnings. Parsers of YAML take time that grows with the square of
/// the nesting.
///
/// It counts bytes, also those in texts and comments, so that nobody can hide one.
#[must_use]
pub fn has_few_brackets(text: &[u8]) -> bool {
    let opening = text.iter().filter(|byte| matches!(byte, b'[' | b'{'));
    opening.take(BRACKETS_MAX + 1).count() <= BRACKETS_MAX && lines(text).all(has_few_starts)
}

/// `true` if a text [has few brackets](has_few_brackets), or never more than [`NESTING_MAX`] open
/// at once: JSON of any length. It knows texts in quotes and comments as a writer of files means
/// them; for a stranger's text, who may not, ask [`has_few_brackets`].
#[must_use]
pub fn is_flat(text: &[u8]) -> bool {
    has_few_brackets(text)
        || (lines(text).all(has_few_starts) && Nesting::deepest(text) <= NESTING_MAX)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b'\n' | b'\r'))
}

/// `true` if so few beginnings follow one another, wherever they are: a line also ends at NEL, LS and
/// PS (YAML 1.1), and has a byte order mark in front of it.
fn has_few_starts(line: &[u8]) -> bool {
    let words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let mut words = words.filter(|word| !word.is_empty());
    let mut starts = 0;
    words.all(|word| {
        starts = if is_start(word) { starts + 1 } else { 0 };
        starts <= LINE_STARTS_MAX
    })
}

/// `true` for `-`, `?` and `:` beside nothing but bytes of line ends, of a byte order mark or of
/// UTF-16.
fn is_start(word: &[u8]) -> bool {
    let mut ascii = word.iter().filter(|byte| matches!(byte, 1..=0x7f));
    let first = ascii.next();
    matches!(first, Some(b'-' | b'?' | b':')) && ascii.next().is_none()
}

/// A walk over a text.
#[derive(Default)]
struct Nesting {
    open: usize,
    deepest: usize,
    /// Quote of the text that the walk is in.
    quote: Option<u8>,
    is_escaped: bool,
    is_comment: bool,
}

impl Nesting {
    fn deepest(text: &[u8]) -> usize {
        let mut walk = Self::default();
        // The last byte that is no blank, and whether blanks followed it.
        let (mut last, mut after_blank) = (b'\n', true);
        for byte in text {
            walk.step(*byte, last, after_blank);
            after_blank = byte.is_ascii_whitespace();
            if !after_blank || *byte == b'\n' {
                last = *byte;
            }
        }
        walk.deepest
    }

    fn step(&mut self, byte: u8, last: u8, after_blank: bool) {
        match (self.quote, byte) {
            _ if self.is_comment => self.is_comment = byte != b'\n',
            (Some(_), _) if self.is_escaped => self.is_escaped = false,
            (Some(b'"'), b'\\') => self.is_escaped = true,
            (Some(quote), _) => self.quote = Some(quote).filter(|quote| *quote != byte),
            (None, b'#') => self.is_comment = after_blank,
            (None, b'"' | b'\'') => {
                let is_start = matches!(last, b'[' | b'{' | b',' | b':' | b'-' | b'\n');
                self.quote = Some(byte).filter(|_| is_start);
            }
            (None, b'[' | b'{') => {
                self.open += 1;
                self.deepest = self.deepest.max(self.open);
            }
            (None, b']' | b'}') => self.open = self.open.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BRACKETS_MAX, NESTED_PROBLEM, NESTING_MAX, has_few_brackets, is_flat};

    #[test]
    fn the_problem_names_the_bound() {
        let bound = format!(" {NESTING_MAX} levels");
        assert!(NESTED_PROBLEM.contains(&bound), "{NESTED_PROBLEM}");
    }

    #[test]
    fn nesting_is_bounded_before_it_is_parsed() {
        let many = |part: &str, count: usize| part.repeat(count);
        let json = many("{\"a\": [\"]]\\\"[[[\", {}]}, ", BRACKETS_MAX);
        for (text, few, flat) in [
            (String::new(), true, true),
            ("a: [1, {b: 2}]\n- - - x".to_owned(), true, true),
            (format!("contexts: {}", many("[", 250_000)), false, false),
            (format!("contexts: {}", many("[", BRACKETS_MAX)), true, true),
            (many("{a: ", 5000), false, false),
            (many("- ", 5000), false, false),
            (many("? ", 5000), false, false),
            (many("- x\n", 5000), true, true),
            (many("- x ", 5000), true, true),
            (format!("x:\u{85}{}", many("- ", 5000)), false, false),
            (format!("x:\u{2028}{}", many("- ", 5000)), false, false),
            (format!("\u{feff}{}", many("- ", 65)), false, false),
            (many("- ", 64), true, true),
            (format!("# {}", many("- ", 5000)), false, false),
            (many("-\0 \0", 5000), false, false),
            (many("\0-\0 ", 5000), false, false),
            (format!("[{json}1]"), false, true),
            (many("- {a: ['[[']} # [[[[\n", BRACKETS_MAX), false, true),
            (format!("{}{}", many("[ # ]\n", 2000), "x"), false, false),
            (format!("# it's {{\n{}", many("[", 2000)), false, false),
        ] {
            let start: String = text.chars().take(30).collect();
            assert_eq!(has_few_brackets(text.as_bytes()), few, "{start}");
            assert_eq!(is_flat(text.as_bytes()), flat, "{start}");
        }
    }
}
