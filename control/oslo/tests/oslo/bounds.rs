//! Files that are refused: shapes, circles, bounds.

use control_oslo::{
    CHECK_BYTES_MAX, CHECKS_MAX, CheckExpression, DECISION_CHECKS_MAX, DEPTH_MAX, FILE_BYTES_MAX,
    PolicyFile, RULES_MAX,
};

use crate::compiled;

#[test]
fn files_are_mappings_of_names_to_check_strings() {
    for (text, rules) in [
        ("", 0),
        ("# only comments\n---\n", 0),
        ("{}", 0),
        ("null", 0),
        ("a: role:admin", 1),
        ("\"a\": \"\"\n'b': '@'\n", 2),
        ("{\"a\": \"!\",\n\t\"b\": [[\"role:a\"]]}", 2),
        ("{a: 'role:x', b: []}", 2),
        ("a:\n- role:x\n- [role:y, role:z]\n", 1),
        ("a: &x role:x\nb: *x\n", 2),
        ("1: role:x", 1),
    ] {
        let file = PolicyFile::parse(text).unwrap();
        assert_eq!(file.rules().len(), rules, "{text}");
    }
    let file = PolicyFile::parse("b: role:x\na: [[role:y, role:z], '@']").unwrap();
    let names: Vec<&str> = file.rules().iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(file.get("a").unwrap().to_string(), "role:y and role:z or @");
    assert_eq!(file.get("c"), None);
}

#[test]
fn other_files_are_refused() {
    let many = |part: &str, count: usize| part.repeat(count);
    let rules: String = (0..=RULES_MAX)
        .map(|number| format!("r{number}: '@'\n"))
        .collect();
    for (text, wanted) in [
        ("- a", "a mapping of names to check strings"),
        ("a", "a mapping of names to check strings"),
        (
            "a: 1",
            "a: invalid type: integer `1`, expected a check string",
        ),
        (
            "a: true",
            "a: invalid type: boolean `true`, expected a check string",
        ),
        ("a:", "expected a check string: \"@\" for everybody"),
        (
            "{\"a\": null}",
            "expected a check string: \"@\" for everybody",
        ),
        ("a: {b: c}", "expected a check string"),
        ("a: !", "an unquoted ! is a tag of YAML"),
        ("a: [! ]", "an unquoted ! is a tag of YAML"),
        ("a: @", "cannot start any token"),
        ("a: [[[x]]]", "expected a string"),
        ("a: [1]", "expected a check or a list of checks"),
        (
            "a: '@'\nb: '@'\na: '!'",
            "rule \"a\": the file has it twice; remove one of them",
        ),
        (
            "{\"a\": \"@\", \"a\": \"!\"}",
            "rule \"a\": the file has it twice",
        ),
        (
            "'a b': '@'",
            "rule \"a b\": its name is empty or has white space",
        ),
        ("'': '@'", "its name is empty"),
        ("a: '@'\n---\nb: '@'", "more than one document"),
        (
            "a: role:x role:y",
            "rule \"a\": at character 8: two checks without an operator",
        ),
        (
            "a: [role:x role:y]",
            "rule \"a\": \"role:x role:y\" in its list is not one check",
        ),
        (rules.as_str(), "more than 1024 rules"),
        (many("[", 2000).as_str(), "more than 1024 brackets"),
        (many("a: ", 300).as_str(), "the file: "),
        (
            format!("{}: '@'", many("n", 300)).as_str(),
            "its name has 300 bytes, at most 256",
        ),
        (many("#", FILE_BYTES_MAX + 1).as_str(), "at most 262144"),
    ] {
        let fault = PolicyFile::parse(text).unwrap_err().to_string();
        let start: String = text.chars().take(40).collect();
        assert!(fault.contains(wanted), "{start}: {fault}");
    }
}

#[test]
fn circles_are_refused_with_all_their_rules() {
    for (text, wanted) in [
        ("a: rule:a", "rule \"a\": it refers to itself: a -> a"),
        (
            "a: rule:b\nb: rule:c\nc: not rule:a",
            "it refers to itself: a -> b -> c -> a",
        ),
        (
            "a: '@ or rule:b'\nb: rule:c\nc: rule:b",
            "rule \"b\": it refers to itself: b -> c -> b",
        ),
        (
            "admin_api: rule:is_admin",
            "rule \"admin_api\": it refers to itself: admin_api -> is_admin -> admin_api",
        ),
    ] {
        let fault = compiled(text).unwrap_err();
        assert!(fault.to_string().contains(wanted), "{fault}");
        assert_eq!(fault.remedy, "remove one of the references");
    }
    // Two ways to one rule are no circle.
    compiled("a: rule:b and rule:c\nb: rule:d\nc: rule:d\nd: role:x").unwrap();
}

#[test]
fn check_strings_are_bounded() {
    let deep = |count: usize| format!("{}a:b{}", "(".repeat(count), ")".repeat(count));
    let inverted = |count: usize| format!("{}a:b", "not ".repeat(count));
    let wide = |count: usize| vec!["a:b"; count].join(" or ");
    for (text, wanted) in [
        (deep(DEPTH_MAX + 1), "nested deeper than 32"),
        (inverted(DEPTH_MAX + 1), "nested deeper than 32"),
        (deep(100_000), "at most 8192"),
        (wide(CHECKS_MAX + 1), "more than 512 checks"),
        ("a:b ".repeat(CHECK_BYTES_MAX), "at most 8192"),
    ] {
        let fault = text.parse::<CheckExpression>().unwrap_err().to_string();
        assert!(fault.contains(wanted), "{fault}");
    }
    for text in [deep(DEPTH_MAX), inverted(DEPTH_MAX), wide(CHECKS_MAX)] {
        text.parse::<CheckExpression>().unwrap();
    }
    let list = vec![vec!["a:b"; CHECKS_MAX + 1]];
    assert!(CheckExpression::from_list(list).is_err());
}

#[test]
fn a_decision_visits_so_many_checks() {
    // Each rule refers to the one before twice: the work doubles with each.
    let doubling = |count: usize| -> String {
        let rule = |number: usize| format!("r{}: rule:r{number} or rule:r{number}\n", number + 1);
        let rules: String = (0..count).map(rule).collect();
        format!("r0: role:x\n{rules}")
    };
    compiled(&doubling(10)).unwrap();
    let fault = compiled(&doubling(11)).unwrap_err().to_string();
    let wanted = format!(
        "would visit 2048 checks, with the rules that it refers to; at most {DECISION_CHECKS_MAX}"
    );
    assert!(fault.contains(&wanted), "{fault}");
    let fault = compiled(&doubling(1000)).unwrap_err().to_string();
    assert!(fault.contains("rule "), "{fault}");

    let chain = |count: usize| -> String {
        let rule = |number: usize| format!("r{number}: rule:r{}\n", number + 1);
        (0..count).map(rule).collect::<String>() + &format!("r{count}: role:x\n")
    };
    compiled(&chain(31)).unwrap();
    // The order of the file does not matter.
    let backwards = |count: usize| -> String {
        let text = chain(count);
        text.lines().rev().map(|line| format!("{line}\n")).collect()
    };
    compiled(&backwards(31)).unwrap();
    let fault = compiled(&backwards(32)).unwrap_err().to_string();
    assert!(fault.contains("for more than 32 rules"), "{fault}");
    let fault = compiled(&chain(32)).unwrap_err().to_string();
    assert!(
        fault.contains("rule \"r0\": it refers to a rule that refers to a rule"),
        "{fault}"
    );
}
