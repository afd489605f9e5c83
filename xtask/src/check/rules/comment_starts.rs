//! Comments that begin with Who, What, Whether, Such or None, where a subject should be.

use super::Hit;
use crate::check::comments::Comment;
use crate::check::source::Source;

/// Words that no comment begins with.
const WORDS: [&str; 5] = ["Who", "What", "Whether", "Such", "None"];

pub(super) fn find(sources: &[Source]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for source in sources {
        let mut before: Option<&Comment> = None;
        for comment in &source.comments {
            let is_continued = before.is_some_and(|last| {
                last.kind == comment.kind && last.last_line + 1 == comment.line
            });
            if !is_continued && let Some(word) = bad_start(&comment.text) {
                hits.push(Hit::new(source, comment.line, word));
            }
            before = Some(comment);
        }
    }
    hits
}

fn bad_start(text: &str) -> Option<&'static str> {
    let word = text.split_whitespace().next()?;
    let word = word.trim_end_matches(|sign: char| !sign.is_alphanumeric());
    WORDS
        .into_iter()
        .find(|bad| *bad == word || word.strip_suffix("'s") == Some(bad))
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::check::rules::hits;

    #[test]
    fn starts_of_comments() {
        for (text, expected) in [
            ("/// Who calls.\nfn a() {}", vec!["1 Who"]),
            ("//! What it is.", vec!["1 What"]),
            ("fn a() {} // None: nothing.", vec!["1 None"]),
            ("// What's this?\n", vec!["1 What"]),
            ("/// `None` means all.\nfn a() {}", vec![]),
            ("/// Whoever calls.\nfn a() {}", vec![]),
            ("/// The caller.\n/// Such is life.\nfn a() {}", vec![]),
            ("// The caller.\n\n// Whether.\n", vec!["3 Whether"]),
            ("const A: &str = \"// Who\";", vec![]),
            ("#[cfg(test)]\nmod tests {\n// Who\n}", vec![]),
        ] {
            assert_eq!(hits(find, text), expected, "{text}");
        }
    }
}
