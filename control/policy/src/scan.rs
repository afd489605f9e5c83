//! Static checks of a policy's tokens, before any of it runs: the dependencies of its rules, their
//! depth, and the called functions.

use std::collections::{BTreeMap, BTreeSet};

use proto_public::Spelling;
use regorus::unstable::{Lexer, Token, TokenKind};

use crate::Invalid;
use crate::invalid::SourcePosition;

/// Maximum length of a chain of rules that use each other. Each is a step down the evaluator's
/// stack, so a longer chain is refused.
const DEPTH_MAX: usize = 32;
/// Maximum nesting of brackets and braces. The parser reads the contents twice at each level, so its
/// time doubles with each one; deeper nesting is refused.
const NESTING_MAX: usize = 6;
/// Words that may stand before a parenthesis without being a call.
const KEYWORDS: [&str; 10] = [
    "if", "contains", "in", "not", "some", "every", "with", "as", "else", "default",
];
/// Functions that a policy may call. They depend on their arguments alone, give the same result on
/// every node, and produce no output much larger than their input.
const FUNCTIONS: [&str; 58] = [
    "abs",
    "array.concat",
    "array.reverse",
    "array.slice",
    "ceil",
    "concat",
    "contains",
    "count",
    "endswith",
    "floor",
    "format_int",
    "indexof",
    "indexof_n",
    "intersection",
    "is_array",
    "is_boolean",
    "is_null",
    "is_number",
    "is_object",
    "is_set",
    "is_string",
    "json.filter",
    "json.remove",
    "lower",
    "max",
    "min",
    "object.filter",
    "object.get",
    "object.keys",
    "object.remove",
    "object.subset",
    "object.union",
    "product",
    "regex.is_valid",
    "regex.match",
    "round",
    "sort",
    "split",
    "sprintf",
    "startswith",
    "strings.any_prefix_match",
    "strings.any_suffix_match",
    "strings.count",
    "strings.reverse",
    "substring",
    "sum",
    "to_number",
    "trim",
    "trim_left",
    "trim_prefix",
    "trim_right",
    "trim_space",
    "trim_suffix",
    "type_name",
    "union",
    "units.parse",
    "units.parse_bytes",
    "upper",
];

/// The name of a rule, and the position where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedRule {
    pub(crate) name: String,
    pub(crate) at: SourcePosition,
}

/// The dependencies of a rule, from its tokens.
#[derive(Debug, Default)]
struct ScannedRule {
    at: SourcePosition,
    /// Names of other rules that its tokens contain.
    uses: BTreeSet<String>,
}

/// `true` if a policy may call this function.
pub(crate) fn is_listed(function: &str) -> bool {
    FUNCTIONS.contains(&function)
}

/// The source of a policy that can be parsed in bounded time.
///
/// # Errors
/// Its lines are too long, or its brackets nest too deeply.
pub(crate) fn read(file: &str, text: &str) -> Result<regorus::Source, Invalid> {
    let source = regorus::Source::from_contents(file.to_owned(), text.to_owned());
    let source = source.map_err(|error| Invalid::of_engine(file, &error.to_string()))?;
    let mut depth = 0_usize;
    for token in tokens(file, &source)? {
        let is_symbol = token.0 == TokenKind::Symbol;
        match token.1.text() {
            "[" | "{" if is_symbol => depth += 1,
            "]" | "}" if is_symbol => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTING_MAX {
            let message = format!("more than {NESTING_MAX} brackets or braces within each other");
            return Err(Invalid::at(file, place(&token), message));
        }
    }
    Ok(source)
}

/// Checks the tokens of a policy and returns its rules. `starts` are the positions where they begin,
/// in order.
///
/// # Errors
/// The first construct that a policy must not contain.
pub(crate) fn scan(
    file: &str,
    source: &regorus::Source,
    starts: &[SourcePosition],
) -> Result<Vec<PlacedRule>, Invalid> {
    let tokens = tokens(file, source)?;
    imports(file, &tokens)?;
    spellings(file, &tokens)?;
    let mut rules: BTreeMap<String, ScannedRule> = BTreeMap::new();
    let names: Vec<String> = starts
        .iter()
        .map(|start| name(file, &tokens, *start))
        .collect::<Result<_, _>>()?;
    for (name, start) in names.iter().zip(starts) {
        let rule = rules.entry(name.clone()).or_default();
        rule.at = *start;
    }
    for (index, token) in tokens.iter().enumerate() {
        let at = place(token);
        let Some(rule) = starts.iter().rposition(|start| *start <= at) else {
            continue;
        };
        if token.0 != TokenKind::Ident || follows_dot(&tokens, index) {
            continue;
        }
        let word = token.1.text();
        if word == "data" {
            let message = "a policy has no data but its own rules; call them by their names";
            return Err(Invalid::at(file, at, message));
        }
        called(file, &tokens, index, &names)?;
        let is_head = starts[rule] == at;
        if rules.contains_key(word)
            && !is_head
            && let Some(user) = rules.get_mut(&names[rule])
            && (word != names[rule] || !is_default_head(&tokens, index))
        {
            user.uses.insert(word.to_owned());
        }
    }
    depth(file, &rules)?;
    let placed = names.into_iter().zip(starts.iter().copied());
    Ok(placed.map(|(name, at)| PlacedRule { name, at }).collect())
}

/// Refuses imports other than `rego.v1`: their effect could not be checked here.
fn imports(file: &str, tokens: &[Token]) -> Result<(), Invalid> {
    for (index, token) in tokens.iter().enumerate() {
        let is_import = token.1.text() == "import" && token.0 == TokenKind::Ident;
        if !is_import || follows_dot(tokens, index) {
            continue;
        }
        let words = ["rego", ".", "v1"];
        if (1..)
            .zip(words)
            .any(|(next, word)| !is(tokens, index + next, word))
        {
            let message = "a policy imports nothing but rego.v1";
            return Err(Invalid::at(file, place(token), message));
        }
    }
    Ok(())
}

/// Refuses ids in another spelling than the one of the input document. A rule with such an id would
/// never fire, so a `deny` would permit every call.
fn spellings(file: &str, tokens: &[Token]) -> Result<(), Invalid> {
    let texts = [TokenKind::String, TokenKind::RawString];
    for token in tokens.iter().filter(|token| texts.contains(&token.0)) {
        let text = token.1.text().trim_matches(['"', '`']);
        if let Some(one) = Spelling::rewrite_any(text) {
            let message = format!("ids are compared in one spelling; write \"{one}\"");
            return Err(Invalid::at(file, place(token), message));
        }
    }
    Ok(())
}

fn tokens(file: &str, source: &regorus::Source) -> Result<Vec<Token>, Invalid> {
    let mut lexer = Lexer::new(source);
    let mut tokens = Vec::new();
    loop {
        let next = lexer.next_token();
        let token = next.map_err(|error| Invalid::of_engine(file, &error.to_string()))?;
        if token.0 == TokenKind::Eof {
            return Ok(tokens);
        }
        tokens.push(token);
    }
}

fn place(token: &Token) -> SourcePosition {
    SourcePosition {
        line: token.1.line,
        column: token.1.col,
    }
}

fn is(tokens: &[Token], index: usize, text: &str) -> bool {
    tokens
        .get(index)
        .is_some_and(|token| token.1.text() == text)
}

fn follows_dot(tokens: &[Token], index: usize) -> bool {
    index > 0 && is(tokens, index - 1, ".")
}

/// `true` in `default allow := ...`, where the name after the word is the head of the rule.
fn is_default_head(tokens: &[Token], index: usize) -> bool {
    index > 0 && is(tokens, index - 1, "default")
}

/// The name of the rule that begins at `start`. A name must have one part: a rule `a.b` would be
/// missing from the rules that `scan` checks.
fn name(file: &str, tokens: &[Token], start: SourcePosition) -> Result<String, Invalid> {
    let lost = || Invalid::at(file, start, "a rule must begin with its name");
    let mut at = tokens
        .iter()
        .position(|token| place(token) == start)
        .ok_or_else(lost)?;
    if is(tokens, at, "default") {
        at += 1;
    }
    let name = tokens.get(at).filter(|token| token.0 == TokenKind::Ident);
    let name = name.ok_or_else(lost)?.1.text();
    if is(tokens, at + 1, ".") || is(tokens, at + 1, "[") {
        let message = format!(
            "the name of a rule has one part; of a set write `{name} contains \"...\" if {{ ... }}`"
        );
        return Err(Invalid::at(file, start, message));
    }
    Ok(name.to_owned())
}

/// Refuses a call of anything but a rule of the policy or a listed function.
fn called(file: &str, tokens: &[Token], index: usize, rules: &[String]) -> Result<(), Invalid> {
    let mut name = tokens[index].1.text().to_owned();
    let mut next = index + 1;
    while is(tokens, next, ".") {
        let Some(part) = tokens.get(next + 1) else {
            return Ok(());
        };
        name = format!("{name}.{}", part.1.text());
        next += 2;
    }
    let is_call = is(tokens, next, "(");
    if !is_call || KEYWORDS.contains(&name.as_str()) && name != "contains" {
        return Ok(());
    }
    if rules.contains(&name) || is_listed(&name) {
        return Ok(());
    }
    let message = format!("{name} is no function that a policy may call, and no rule of this one");
    Err(Invalid::at(file, place(&tokens[index]), message))
}

/// Refuses rules that depend on themselves, and chains of rules longer than `DEPTH_MAX`. Either would
/// exhaust the stack of the evaluator.
fn depth(file: &str, rules: &BTreeMap<String, ScannedRule>) -> Result<(), Invalid> {
    let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
    // Each round settles the rules whose dependencies are settled. A round that settles none has
    // found a cycle.
    loop {
        let before = depths.len();
        for (name, rule) in rules {
            let below: Option<Vec<usize>> = rule
                .uses
                .iter()
                .map(|used| depths.get(used.as_str()).copied())
                .collect();
            if let Some(below) = below {
                let depth = below.into_iter().max().unwrap_or_default() + 1;
                if depth > DEPTH_MAX {
                    let message =
                        format!("{name} needs more than {DEPTH_MAX} rules one below the other");
                    return Err(Invalid::at(file, rule.at, message));
                }
                depths.insert(name, depth);
            }
        }
        if depths.len() == rules.len() {
            return Ok(());
        }
        if depths.len() == before {
            let stuck = rules
                .iter()
                .find(|(name, _)| !depths.contains_key(name.as_str()));
            let (name, rule) = stuck.map_or(("", None), |(name, rule)| (name, Some(rule)));
            let at = rule.map(|rule| rule.at).unwrap_or_default();
            let message = format!(
                "{name} needs itself, or a rule that does; rules cannot recur (a variable with the \
                 name of a rule counts as the rule: rename it)"
            );
            return Err(Invalid::at(file, at, message));
        }
    }
}
