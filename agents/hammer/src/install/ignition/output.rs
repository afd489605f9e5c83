//! Ignition's output: masks secrets, drops noise, and finds the lines with the cause of a failure.

use serde_json::Value;

use crate::cmd::tail;

/// Lines that go to the log at most: the last ones.
const SHOWN_MAX: usize = 40;
/// Bytes of a shown line at most: its end.
const LINE_LEN_MAX: usize = 300;
/// Bytes of an error at most: its end.
const ERROR_LEN_MAX: usize = 600;
/// Members of a config whose values only the tenant may see.
const SECRET_MEMBERS: [&str; 5] = ["contents", "inline", "passwordHash", "source", "value"];
/// Shortest value that is masked, bytes. Shorter ones occur in ordinary words.
const SECRET_LEN_MIN: usize = 4;
/// Replacement of a secret.
const MASK: &str = "[masked]";
/// The argument before a password hash, as Ignition prints the commands that it runs.
const PASSWORD_ARGUMENT: &str = "\"--password\" \"";
/// Prefix of the lines of hammer itself.
pub(super) const OWN_PREFIX: &str = "metalmesh: ";
/// Prefix of Ignition's lines of its highest level.
const LEVEL_FATAL: &str = "CRITICAL";

/// The output with the secrets of `config` masked.
pub(super) fn masked(output: &str, config: &[u8]) -> String {
    // The config was parsed before Ignition ran; without it only password arguments are masked.
    let config = serde_json::from_slice(config).unwrap_or(Value::Null);
    let mut secrets = Vec::new();
    collect(&config, &mut secrets);
    // Longest first: a secret may be part of a longer one, whose rest would stay readable.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut text = output.to_string();
    for secret in secrets {
        text = text.replace(secret, MASK);
    }
    without_password_arguments(&text)
}

fn collect<'a>(value: &'a Value, secrets: &mut Vec<&'a str>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| collect(value, secrets)),
        Value::Object(members) => {
            for (name, value) in members {
                match value.as_str() {
                    Some(text) if SECRET_MEMBERS.contains(&name.as_str()) => {
                        secrets.extend((text.len() >= SECRET_LEN_MIN).then_some(text));
                    }
                    _ => collect(value, secrets),
                }
            }
        }
        _ => {}
    }
}

/// Masks password hashes by their position. A config inside another as a `data:` URL has hashes
/// that the search for secrets does not see.
fn without_password_arguments(text: &str) -> String {
    let mut parts = text.split(PASSWORD_ARGUMENT);
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        // Without a closing quote, as in output that was cut, the whole part may be the hash.
        let rest = part.split_once('"').map_or("", |(_, rest)| rest);
        out.push_str(PASSWORD_ARGUMENT);
        out.push_str(MASK);
        out.push('"');
        out.push_str(rest);
    }
    out
}

/// The last lines without noise.
pub(super) fn shown(output: &str) -> Vec<&str> {
    let is_noise = |line: &&str| {
        line.trim().is_empty()
            || line.starts_with("DEBUG")
            // A line with [finished] or [failed] follows.
            || line.contains(": [started] ")
            || line.contains("failed to log systemd journal entry")
    };
    let lines: Vec<&str> = output.lines().filter(|line| !is_noise(line)).collect();
    let first = lines.len().saturating_sub(SHOWN_MAX);
    let lines = lines.into_iter().skip(first);
    lines.map(|line| tail(line, LINE_LEN_MAX)).collect()
}

/// The cause of a failure: Ignition's version with its fatal errors, or with its last lines.
pub(super) fn failure(output: &str) -> String {
    let message = |line: &str| match line.split_once(" : ") {
        Some((_, message)) => message.trim().to_string(),
        None => line.strip_prefix(OWN_PREFIX).unwrap_or(line).to_string(),
    };
    let lines = shown(output);
    let is_fatal = |line: &&str| line.starts_with(LEVEL_FATAL) || line.starts_with(OWN_PREFIX);
    let mut words: Vec<String> = Vec::new();
    for line in lines.iter().copied().filter(is_fatal).map(message) {
        if !words.contains(&line) {
            words.push(line);
        }
    }
    if words.is_empty() {
        let last = lines.len().saturating_sub(3);
        words.extend(lines.iter().skip(last).map(|line| message(line)));
    }
    let version = output.lines().map(message);
    let version = version
        .filter(|line| line.starts_with("Ignition "))
        .find(|line| line.contains(char::is_numeric))
        .unwrap_or_else(|| "Ignition".to_string());
    format!("{version}: {}", tail(&words.join("; "), ERROR_LEN_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: &str = "INFO     : Ignition Debian 2.14.0+ds1-1+b6\n\
        INFO     : Stage: fetch\n\
        DEBUG    : parsed url from cmdline: \"\"\n\
        WARNING  : failed to fetch config: unsupported config version\n\
        CRITICAL : failed to acquire config: unsupported config version\n\
        CRITICAL : Ignition failed: unsupported config version\n\
        metalmesh: stage fetch: exit status: 1\n";

    #[test]
    fn a_failure_is_told_in_ignitions_words() {
        assert_eq!(
            failure(REFUSED),
            "Ignition Debian 2.14.0+ds1-1+b6: failed to acquire config: unsupported config \
             version; Ignition failed: unsupported config version; stage fetch: exit status: 1"
        );
        assert_eq!(failure("a\nb\nc\nd\n"), "Ignition: b; c; d");
        assert_eq!(failure(""), "Ignition: ");
        let long = format!("CRITICAL : {}\n", "x".repeat(5000));
        assert!(failure(&long).len() < 700);
    }

    #[test]
    fn the_log_is_bounded_and_without_noise() {
        let lines = shown(REFUSED);
        assert!(!lines.iter().any(|line| line.starts_with("DEBUG")));
        assert_eq!(lines.len(), 6);
        let many: String = (0..500)
            .map(|n| format!("INFO : {n}{}\n", "y".repeat(999)))
            .collect();
        let lines = shown(&many);
        assert_eq!(lines.len(), SHOWN_MAX);
        assert!(lines.iter().all(|line| line.len() <= LINE_LEN_MAX));
    }

    #[test]
    fn secrets_do_not_come_to_the_log() {
        let config = br#"{"ignition":{"version":"3.3.0"},
            "passwd":{"users":[{"name":"core","passwordHash":"$6$salt$hash"}]},
            "storage":{"files":[{"path":"/etc/token","contents":{"source":"data:,t0ken"}}]}}"#;
        let output = "op(1): executing: \"useradd\" \"--password\" \"$6$salt$hash\" \"core\"\n\
            op(2): executing: \"useradd\" \"--password\" \"$6$nested\" \"other\"\n\
            op(3): writing file \"/etc/token\" from data:,t0ken";
        assert_eq!(
            masked(output, config),
            "op(1): executing: \"useradd\" \"--password\" \"[masked]\" \"core\"\n\
             op(2): executing: \"useradd\" \"--password\" \"[masked]\" \"other\"\n\
             op(3): writing file \"/etc/token\" from [masked]"
        );
        assert_eq!(
            masked("\"--password\" \"cut", b"no json"),
            "\"--password\" \"[masked]\""
        );
    }
}
