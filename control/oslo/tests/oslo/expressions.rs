//! Check strings: which are read, and as what.

use control_oslo::CheckExpression;

/// Check strings and their printed form.
const READ: &[(&str, &str)] = &[
    ("", "@"),
    ("@", "@"),
    ("!", "!"),
    ("role:admin", "role:admin"),
    ("ROLE:Admin", "ROLE:Admin"),
    ("rule:baremetal:node:get", "rule:baremetal:node:get"),
    ("project_id:%(node.owner)s", "project_id:%(node.owner)s"),
    ("(project_id:%(node.owner)s)", "project_id:%(node.owner)s"),
    ("((a:b))", "a:b"),
    ("( a:b )", "a:b"),
    ("a:b and c:d", "a:b and c:d"),
    ("a:b AND c:d Or e:f", "a:b and c:d or e:f"),
    ("a:b or c:d and e:f", "a:b or c:d and e:f"),
    ("(a:b or c:d) and e:f", "(a:b or c:d) and e:f"),
    ("a:b and (c:d or e:f)", "a:b and (c:d or e:f)"),
    ("a:b or (c:d or e:f)", "a:b or (c:d or e:f)"),
    ("(a:b and c:d) and e:f", "(a:b and c:d) and e:f"),
    ("(a:b and c:d) or e:f", "a:b and c:d or e:f"),
    ("not a:b", "not a:b"),
    ("not not a:b", "not not a:b"),
    ("not a:b and c:d", "not a:b and c:d"),
    ("not (a:b and c:d)", "not (a:b and c:d)"),
    ("NOT (a:b)", "not a:b"),
    ("not((a:b))and:x", "not((a:b))and:x"),
    ("@ and !", "@ and !"),
    ("not @", "not @"),
    ("a:b:c", "a:b:c"),
    ("'Member':%(project_name)s", "'Member':%(project_name)s"),
    ("a:(b", "a:(b"),
    ("\t a:b\n", "a:b"),
];

/// Check strings that are refused, the character, and a part of the reason.
const REFUSED: &[(&str, Option<usize>, &str)] = &[
    (" ", None, "blank"),
    ("admin", Some(1), "no colon"),
    ("role:", Some(1), "nothing on one side"),
    (":admin", Some(1), "nothing on one side"),
    ("a:b c:d", Some(5), "without an operator"),
    ("a:b not c:d", Some(5), "without an operator"),
    ("a:b and", Some(8), "a check is missing"),
    ("or a:b", Some(1), "a check is missing"),
    ("a:b and or c:d", Some(9), "a check is missing"),
    ("not", Some(4), "a check is missing"),
    ("()", Some(2), "a check is missing"),
    ("(a:b", Some(1), "never closed"),
    ("((a:b) or c:d", Some(1), "never closed"),
    ("(a:b c:d)", Some(6), "without an operator"),
    ("a:b)", Some(4), "closes nothing"),
    ("NOT(a:b)", Some(8), "closes nothing"),
    ("ä:b and x", Some(9), "no colon"),
    ("'a:b'", Some(1), "text in quotes"),
    ("\"role:admin\"", Some(1), "text in quotes"),
    ("a:b\u{7}", Some(1), "control character \\u{7}"),
    ("a:b and @ !", Some(11), "without an operator"),
];

#[test]
fn check_strings_are_read() {
    for (text, printed) in READ {
        let read: CheckExpression = text.parse().unwrap();
        assert_eq!(read.to_string(), *printed, "{text:?}");
        assert_eq!(printed.parse(), Ok(read), "{text:?}");
    }
}

#[test]
fn malformed_check_strings_are_refused_with_the_place() {
    for (text, at, problem) in REFUSED {
        let fault = text.parse::<CheckExpression>().unwrap_err();
        assert_eq!(fault.at, *at, "{text:?}: {fault}");
        assert!(fault.problem.contains(problem), "{text:?}: {fault}");
        assert!(!fault.remedy.is_empty(), "{text:?}");
    }
}

#[test]
fn lists_are_alternatives_of_checks_that_all_hold() {
    type Alternatives<'a> = Vec<Vec<&'a str>>;
    let cases: [(Alternatives<'_>, &str); 6] = [
        (vec![], "@"),
        (vec![vec![]], "!"),
        (vec![vec!["a:b"]], "a:b"),
        (vec![vec!["a:b", "c:d"]], "a:b and c:d"),
        (vec![vec!["a:b"], vec!["c:d", "@"]], "a:b or c:d and @"),
        (vec![vec![], vec!["!"]], "!"),
    ];
    for (list, printed) in cases {
        let read = CheckExpression::from_list(list).unwrap();
        assert_eq!(read.to_string(), printed);
    }
    for wrong in ["role:a or role:b", "not role:a", "(a:b", "a:b)", "admin"] {
        assert!(
            CheckExpression::from_list([vec![wrong]]).is_err(),
            "{wrong}"
        );
    }
}
