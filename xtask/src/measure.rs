//! `./dev measure`: how far the product's sources are from the rules, as a table and as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};

use crate::check::comments::CommentKind;
use crate::check::hits::Hits;
use crate::check::rules::circles::{self, Circle};
use crate::check::rules::{Hit, RULES, one_word_types};
use crate::check::source::Source;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print every hit of a rule instead, as file, line and what it is
    #[arg(long, value_name = "RULE")]
    list: Option<String>,
    /// Of this crate only
    #[arg(short, long, value_name = "CRATE", requires = "list")]
    package: Option<String>,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let sources = crate::check::sources(root)?;
    if let Some(name) = &options.list {
        return list(&sources, name, options.package.as_deref());
    }
    let rows = rows(&sources, &Hits::of(&sources));
    let circles = circles::circles(&sources);
    print_table(&rows);
    print_circles(&circles);
    println!("\n{}", as_json(&rows, &circles));
    Ok(())
}

fn list(sources: &[Source], name: &str, package: Option<&str>) -> Result<()> {
    let rule = RULES.iter().find(|rule| rule.name == name);
    let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    let context = || format!("no rule {name}; there are {}", names.join(", "));
    let hits = (rule.with_context(context)?.find)(sources);
    for hit in hits {
        if package.is_none_or(|package| hit.krate == package) {
            println!("{}:{}: {}", hit.path, hit.line, hit.what);
        }
    }
    Ok(())
}

/// The numbers of one crate, or of all.
#[derive(Clone, Default)]
struct Row {
    /// Hits of each rule, in the order of `RULES`.
    hits: Vec<usize>,
    one_word_types: usize,
    plain_comment_lines: usize,
    code_lines: usize,
}

impl Row {
    /// Plain comment lines for each hundred lines of code.
    fn plain_per_100(&self) -> f64 {
        let number = |lines: usize| f64::from(u32::try_from(lines).unwrap_or(u32::MAX));
        100.0 * number(self.plain_comment_lines) / number(self.code_lines.max(1))
    }

    fn add(&mut self, other: &Self) {
        self.hits.resize(RULES.len(), 0);
        for (sum, number) in self.hits.iter_mut().zip(&other.hits) {
            *sum += number;
        }
        self.one_word_types += other.one_word_types;
        self.plain_comment_lines += other.plain_comment_lines;
        self.code_lines += other.code_lines;
    }
}

fn rows(sources: &[Source], found: &Hits) -> BTreeMap<String, Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for source in sources {
        let row = rows.entry(source.krate.clone()).or_default();
        row.code_lines += source.code_lines;
        row.plain_comment_lines += source
            .comments
            .iter()
            .filter(|comment| comment.kind == CommentKind::Plain)
            .map(|comment| comment.last_line - comment.line + 1)
            .sum::<usize>();
    }
    let count = |hits: &[Hit], krate: &str| hits.iter().filter(|hit| hit.krate == krate).count();
    let one_word = one_word_types::find(sources);
    for (krate, row) in &mut rows {
        row.hits = found.0.iter().map(|hits| count(hits, krate)).collect();
        row.one_word_types = count(&one_word, krate);
    }
    rows
}

fn total(rows: &BTreeMap<String, Row>) -> Row {
    let mut total = Row::default();
    for row in rows.values() {
        total.add(row);
    }
    total
}

fn print_table(rows: &BTreeMap<String, Row>) {
    print!("{:<18}", "crate");
    for rule in RULES {
        print!(" {:>7}", rule.head);
    }
    println!(" {:>8} {:>7} {:>9}", "one-word", "code", "plain/100");
    let all = ("all".to_owned(), total(rows));
    for (krate, row) in rows.iter().chain([(&all.0, &all.1)]) {
        print!("{krate:<18}");
        for number in &row.hits {
            print!(" {number:>7}");
        }
        let (one_word, code) = (row.one_word_types, row.code_lines);
        println!(" {one_word:>8} {code:>7} {:>9.1}", row.plain_per_100());
    }
    println!();
    for rule in RULES {
        println!("{:<8} {}: {}", rule.head, rule.name, rule.advice);
    }
    println!("one-word type names of one word in control/, a measure without a bound");
    println!("plain/100 plain comment lines for each 100 lines of code, tests left out");
}

fn print_circles(circles: &[Circle]) {
    for circle in circles {
        let names: Vec<&str> = circle.modules.iter().map(String::as_str).collect();
        println!("\ncircle in {}: {}", circle.krate, names.join(", "));
        for edge in &circle.edges {
            let (path, line) = (&edge.place.path, edge.place.line);
            println!("  {} -> {} ({path}:{line})", edge.from, edge.to);
        }
    }
}

fn as_json(rows: &BTreeMap<String, Row>, circles: &[Circle]) -> Value {
    let crates: serde_json::Map<String, Value> = rows
        .iter()
        .map(|(krate, row)| (krate.clone(), row_json(row)))
        .collect();
    let circles: Vec<Value> = circles
        .iter()
        .map(|circle| json!({ "crate": circle.krate, "modules": circle.modules }))
        .collect();
    json!({ "all": row_json(&total(rows)), "crates": crates, "circles": circles })
}

fn row_json(row: &Row) -> Value {
    let mut object: serde_json::Map<String, Value> = RULES
        .iter()
        .zip(&row.hits)
        .map(|(rule, number)| (rule.name.to_owned(), json!(number)))
        .collect();
    object.insert("one-word-types".to_owned(), json!(row.one_word_types));
    object.insert("code-lines".to_owned(), json!(row.code_lines));
    object.insert(
        "plain-comment-lines".to_owned(),
        json!(row.plain_comment_lines),
    );
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::{Hits, RULES, as_json, rows, total};
    use crate::check::source::Source;

    #[test]
    fn numbers_of_crates() {
        let a = "// Why.\npub fn a((b, c): (u8, u8)) {\n    d(|it| it);\n}\n";
        let sources = [
            Source::parse("control-a", "a.rs", &["a"], a).expect("it parses"),
            Source::parse("agents-b", "b.rs", &["b"], "fn b() {}\n").expect("it parses"),
        ];
        let rows = rows(&sources, &Hits::of(&sources));
        let value = as_json(&rows, &[]);
        assert_eq!(value["all"]["code-lines"], 4);
        assert_eq!(value["all"]["plain-comment-lines"], 1);
        for name in ["tuple-parameters", "it-closures", "missing-docs"] {
            assert_eq!(value["crates"]["control-a"][name], 1, "{name}");
            assert_eq!(value["crates"]["agents-b"][name], 0, "{name}");
        }
        let total = total(&rows);
        assert_eq!(total.hits.len(), RULES.len());
        assert!((total.plain_per_100() - 25.0).abs() < 0.001);
    }
}
