//! `metalmesh explain` from outside, without a server and without a context.
#![expect(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::process::{Command, Output};

use serde_json::Value;

fn explain(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metalmesh"));
    command.env_clear().arg("explain").args(arguments);
    command.output().unwrap()
}

#[test]
fn a_code_is_explained_without_a_server() {
    let printed = |arguments: &[&str]| {
        let output = explain(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (code, word) in [
        ("MM-1203", "RESOURCE_EXHAUSTED"),
        ("quorum", "metalmesh cluster status"),
        ("crashloop", "metalmesh machine events"),
    ] {
        let text = printed(&[code]);
        assert!(text.starts_with(&format!("{code}\n\n")), "{text}");
        for part in [word, "\nRemedy: ", "\nVerify: "] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json = printed(&[code, "-o", "json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["code"], code);
        assert!(text.contains(json["meaning"].as_str().unwrap()), "{json}");
        let line = printed(&[code, "-o", "jsonpath={.doc}"]);
        assert!(line.starts_with("docs/reference/"), "{line}");
    }
    let table = printed(&[]);
    assert!(table.starts_with("CODE "), "{table}");
    let all = printed(&["-o", "json"]);
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all.as_array().unwrap().len() + 1, table.lines().count());
    let unknown = explain(&["MM-9203"]);
    assert!(!unknown.status.success(), "{unknown:?}");
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(error.contains("MM-1203"), "{error}");
}
