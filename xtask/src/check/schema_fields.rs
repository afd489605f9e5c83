//! The fields that `.proto` files declare, read from their text.

/// The fields of a `.proto` file's messages, as `api.Message.field`.
pub(super) fn fields(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut package = "";
    // The message that each open block belongs to, outermost first.
    let mut blocks: Vec<Option<String>> = Vec::new();
    let mut statement: Vec<&str> = Vec::new();
    let mut brackets = 0_usize;
    for token in tokens(text) {
        match token {
            "[" => brackets += 1,
            "]" => brackets = brackets.saturating_sub(1),
            // Options of a field may hold blocks of their own.
            _ if brackets > 0 => {}
            "{" => {
                let around = blocks.last().and_then(Option::as_deref);
                let message = opened(package, around, &statement);
                blocks.push(message);
                statement.clear();
            }
            "}" => {
                blocks.pop();
                statement.clear();
            }
            ";" => {
                if let ["package", name] = statement[..] {
                    package = name.split('.').nth(1).unwrap_or(name);
                }
                let message = blocks.last().and_then(Option::as_deref);
                if let (Some(message), Some(field)) = (message, field_name(&statement)) {
                    found.push(format!("{message}.{field}"));
                }
                statement.clear();
            }
            _ => statement.push(token),
        }
    }
    found
}

/// The message whose fields a block holds. `None` for enums, services, extensions and options.
fn opened(package: &str, around: Option<&str>, statement: &[&str]) -> Option<String> {
    match statement {
        ["message", name] => Some(format!("{}.{name}", around.unwrap_or(package))),
        ["oneof", _] => around.map(str::to_owned),
        _ => None,
    }
}

/// The name of the field that a statement in a message declares. `None` for other statements.
fn field_name<'a>(statement: &[&'a str]) -> Option<&'a str> {
    if matches!(statement.first(), None | Some(&("option" | "reserved"))) {
        return None;
    }
    let assigned = statement.iter().position(|token| *token == "=")?;
    statement.get(assigned.checked_sub(1)?).copied()
}

/// Words, string literals and single signs, without comments.
fn tokens(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_line = rest.starts_with("//");
        let is_block = rest.starts_with("/*");
        let end = match first {
            _ if is_line => rest.find('\n'),
            _ if is_block => rest.find("*/").map(|at| at + 2),
            '"' | '\'' => literal_end(rest, first),
            _ if is_word(first) => rest.find(|c| !is_word(c)),
            _ => Some(first.len_utf8()),
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        if !is_line && !is_block {
            found.push(token);
        }
        rest = after.trim_start();
    }
    found
}

/// The end of the string literal that `text` begins with. `None` if it has none.
fn literal_end(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return Some(at + c.len_utf8());
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn fields_of_schemas() {
        let package = "syntax = \"proto3\"; package metalstack.api.v2;";
        for (text, expected) in [
            ("message A {}", vec![]),
            ("message A { string a = 1; }", vec!["api.A.a"]),
            ("message A { optional b.C a = 1; }", vec!["api.A.a"]),
            ("message A { repeated string a = 1; }", vec!["api.A.a"]),
            ("message A { map<string, B> a = 1; }", vec!["api.A.a"]),
            (
                "message A { oneof b { option (c).required = true; D d = 1; E e = 2; } F f = 3; }",
                vec!["api.A.d", "api.A.e", "api.A.f"],
            ),
            (
                "message A { message B { string b = 1; } B a = 2; }",
                vec!["api.A.B.b", "api.A.a"],
            ),
            (
                "message A { enum B { C = 0; } reserved 1; B a = 2; }",
                vec!["api.A.a"],
            ),
            (
                "message A { string a = 1 [(v).cel = { id: \"}\", x: \"it's\" }, (w) = true]; }",
                vec!["api.A.a"],
            ),
            (
                "// message Z { string z = 1; }\nmessage A { /* b */ string a = 1; // c = 2;\n}",
                vec!["api.A.a"],
            ),
            (
                "message A { option (b) = { c: 1 }; string a = 1; }",
                vec!["api.A.a"],
            ),
            (
                "service S { rpc Get(A) returns (B) { option (c) = D; } }\nenum E { F = 0; }",
                vec![],
            ),
            ("extend b.C { bool d = 1 [(e) = { f: \"g\" }]; }", vec![]),
        ] {
            assert_eq!(fields(&format!("{package}{text}")), expected, "{text}");
        }
    }
}
