//! The spelling of values, and the commands that the catalogues of errors and issues name.

use std::path::{Path, PathBuf};

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

/// The Rust files below a directory of the repository.
fn sources(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut waiting = vec![root.join(folder)];
    let mut found = Vec::new();
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// A source as one line for each text: a text that is continued on the next line is put together.
fn joined_texts(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |joined, part| joined + part.trim_start())
}

/// The fault of a command in a message, given without the name of the program. `None` means that it exists.
fn fault(mut command: &Command, said: &str) -> Option<String> {
    for (index, word) in said.split(' ').enumerate() {
        let name = word.trim_end_matches(['.', ':']);
        if let Some(flag) = name.strip_prefix("--") {
            let flag = flag.split('=').next().unwrap_or_default();
            let has_flag = |arg: &clap::Arg| arg.get_long() == Some(flag);
            if flag != "help" && !command.get_arguments().any(has_flag) {
                return Some(format!("--{flag} is no flag of {}", command.get_name()));
            }
        } else if command.has_subcommands() {
            match command.find_subcommand(name) {
                Some(below) => command = below,
                // A word in capitals, or the value of a field, stands for a command.
                None if name.starts_with(|c: char| c.is_ascii_lowercase()) || index == 0 => {
                    return Some(format!("{name:?} is no command of {}", command.get_name()));
                }
                None => return None,
            }
        }
        if name != word {
            break;
        }
    }
    None
}

#[test]
fn messages_name_commands_and_flags_that_exist() {
    let mut command = CommandLine::command();
    // Gives the commands below the global flags.
    command.build();
    let mut count = 0;
    for path in ["control", "agents", "bmc", "pixie"]
        .into_iter()
        .flat_map(sources)
    {
        let text = joined_texts(&std::fs::read_to_string(&path).unwrap());
        for (at, program) in text.match_indices("metalmesh ") {
            let said = &text[at + program.len()..];
            let end = said.find(['"', '`', '\n', '\\', ';', ',', '(', ')', '\'']);
            let said = said[..end.unwrap_or(said.len())].trim_end();
            let first = said.split(' ').next().unwrap_or_default();
            // Of the program alone, or prose about the project.
            let is_quoted = text[..at].ends_with('`') && !said.is_empty();
            if !is_quoted && command.find_subcommand(first).is_none() {
                continue;
            }
            // The name of a format, and no command.
            if said == "audit trail 1" {
                continue;
            }
            let fault = fault(&command, said);
            assert_eq!(fault, None, "{}: metalmesh {said}", path.display());
            count += 1;
        }
    }
    assert!(count > 200, "{count}");
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
