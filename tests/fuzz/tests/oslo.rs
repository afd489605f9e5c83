//! Fuzzes policy files in oslo.policy's language, as an operator may be given them.

use bolero::check;
use control_oslo::{
    CheckExpression, Credentials, OsloPolicy, PolicyFile, PolicyLint, PolicyTarget, ironic,
};

/// Words of check strings, so that random bytes make some that are right.
const WORDS: &[&str] = &[
    "role:admin ",
    "role:%(node.owner)s ",
    "rule:is_admin ",
    "rule:x ",
    "project_id:%(node.owner)s ",
    "'x':x%(project_id)s-%% ",
    "True:%(is_public_api)s ",
    "None:None ",
    "roles:a",
    "http:x ",
    "%(",
    ")s ",
    "and ",
    "or ",
    "not ",
    "(",
    ")",
    "@ ",
    "! ",
];
/// Words of files.
const LINES: &[&str] = &[
    "a: rule:b\n",
    "b: rule:a or rule:c\n",
    "c: '@'\n",
    "\"baremetal:node:get\": ",
    "baremetal:node:update: role:admin\n",
    "\"role:reader\"\n",
    "[[\"role:admin\", ",
    "\"rule:c\"]]\n",
    "- x\n",
    "&a ",
    "*a\n",
    "!\n",
    "{",
    "}",
    ",",
    "---\n",
    "\t",
];

fn words(bytes: &[u8], of: &[&str]) -> String {
    bytes
        .iter()
        .filter_map(|byte| of.get(usize::from(*byte) % of.len()).copied())
        .collect()
}

fn callers() -> [Credentials; 3] {
    [
        Credentials::system(["admin", "member"]),
        Credentials::project("p", ["Admin"]),
        Credentials::new([]),
    ]
}

/// A check string that is read prints to itself, and a decision by it is made, with its reason.
#[test]
fn fuzz_oslo_check() {
    let callers = callers();
    check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        for text in [text.as_ref(), words(bytes, WORDS).as_str()] {
            let Ok(read) = text.parse::<CheckExpression>() else {
                continue;
            };
            let printed = read.to_string();
            assert_eq!(
                printed.parse::<CheckExpression>().as_ref(),
                Ok(&read),
                "{text:?}: {printed:?}"
            );
            let file = serde_json::json!({ "x": printed }).to_string();
            let file = PolicyFile::parse(&file).unwrap();
            assert_eq!(file.get("x"), Some(&read));
            let Ok(policy) = OsloPolicy::new(&[], &file) else {
                continue;
            };
            for caller in &callers {
                for target in [PolicyTarget::node(Some("p"), None), PolicyTarget::none()] {
                    let reason = policy.decide("x", caller, &target).to_string();
                    assert!(reason.contains("by rule x: "), "{reason}");
                }
            }
        }
    });
}

/// A file is refused, or compiled over Ironic's rules and compared with them.
#[test]
fn fuzz_oslo_file() {
    let callers = callers();
    let lints = std::sync::atomic::AtomicU32::new(0);
    check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        for text in [text.as_ref(), words(bytes, LINES).as_str()] {
            let Ok(file) = PolicyFile::parse(text) else {
                continue;
            };
            let Ok(policy) = ironic::policy(&file) else {
                assert!(PolicyLint::of(&file).is_err());
                continue;
            };
            let target = PolicyTarget::node(None, None);
            for rule in policy.rules() {
                for caller in &callers {
                    let decision = policy.decide(&rule.name, caller, &target);
                    assert!(!decision.to_string().is_empty());
                }
            }
            // A comparison takes milliseconds: one of many files has it.
            if lints
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
                .is_multiple_of(64)
            {
                let lint = PolicyLint::of(&file).unwrap();
                let dangers = lint.changes.iter().filter(|change| change.danger.is_some());
                assert_eq!(dangers.count() == 0, lint.dangerous.is_empty());
            }
        }
    });
}
