use proto_firewall::Violation;
use proto_firewall::parts::shortened;

/// Longest interface name, bytes: the kernel's limit.
const INTERFACE_LEN_MAX: usize = 15;

/// A name of an interface.
pub(super) fn interface(field: &str, text: &str) -> Result<String, Violation> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !text.is_empty() && text.len() <= INTERFACE_LEN_MAX && text.chars().all(is_part) {
        return Ok(text.to_owned());
    }
    let problem = format!("{:?} is not the name of an interface", shortened(text));
    let remedy = "use at most 15 letters, digits, `-`, `_` and `.`";
    Err(Violation::new(field, problem, remedy))
}
