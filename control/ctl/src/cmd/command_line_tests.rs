//! The spelling of values, and the commands that the catalogues of errors and issues name.

use clap::{Command, CommandFactory};
use proto_errors::{ErrorCode, IssueCode};

use super::*;

/// Values of the words in capitals that stand for something other than any text.
fn example(word: &str) -> &str {
    match word {
        "NUMBER" => "2",
        "KIND" => "core",
        word => word,
    }
}

/// Parses the commands in backticks of a text, and returns how many there are.
fn parse_commands(of: &str, text: &str) -> usize {
    let mut count = 0;
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 0 {
            let outside = part.contains("metalmesh ");
            assert!(!outside, "{of}: a command is outside backticks: {text}");
            continue;
        }
        for command in part.split(" && ") {
            let words = command.split(' ').map(example);
            let parsed = CommandLine::try_parse_from(words);
            assert!(parsed.is_ok(), "{of}: {command}: {}", parsed.unwrap_err());
            count += 1;
        }
    }
    count
}

#[test]
fn hints_of_errors_name_commands_that_exist() {
    let count: usize = ErrorCode::ALL
        .iter()
        .map(|code| parse_commands(&code.to_string(), code.hint()))
        .sum();
    assert!(count > 50, "{count}");
}

#[test]
fn remedies_of_issues_name_commands_that_exist() {
    for code in IssueCode::ALL {
        let count = parse_commands(code.as_str(), code.mend());
        assert!(count > 0, "{code} names no command");
    }
}

/// Calls `check` for a command and all commands below it.
fn walk(command: &Command, check: &mut impl FnMut(&Command)) {
    check(command);
    for below in command.get_subcommands() {
        walk(below, check);
    }
}

#[test]
fn listed_values_are_lower_case_and_accepted_in_any_case() {
    let mut count = 0;
    walk(&CommandLine::command(), &mut |command| {
        for arg in command.get_arguments() {
            let is_flag = !arg.get_action().takes_values();
            let values = arg.get_possible_values();
            // `bool` has possible values of its own: true and false.
            let is_bool = values.iter().any(|value| value.get_name() == "true");
            if is_flag || is_bool || values.is_empty() {
                continue;
            }
            count += 1;
            let place = format!("{} {}", command.get_name(), arg.get_id());
            assert!(arg.is_ignore_case_set(), "{place} depends on the case");
            for value in values {
                let name = value.get_name();
                assert_eq!(name, name.to_ascii_lowercase(), "{place}");
            }
        }
    });
    assert!(count >= 6, "{count}");
}

#[test]
fn values_are_accepted_in_upper_case() {
    for words in [
        "metalmesh switch port leaf1 swp1 UP",
        "metalmesh machine power m1 LED-ON",
        "metalmesh completion BASH",
    ] {
        let parsed = CommandLine::try_parse_from(words.split(' '));
        assert!(parsed.is_ok(), "{words}: {}", parsed.unwrap_err());
    }
}
