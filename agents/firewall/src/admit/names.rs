use super::problem::Fault;

/// Longest name, bytes: the limit of names in Kubernetes.
const NAME_LEN_MAX: usize = 63;
/// Longest interface name, bytes: the kernel's limit.
const INTERFACE_LEN_MAX: usize = 15;

/// A name of an object: small letters, digits, `-` and `.`, first and last a letter or a digit.
pub(super) fn name(field: &str, text: &str) -> Result<String, Fault> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_valid = text.len() <= NAME_LEN_MAX
        && text.starts_with(is_end)
        && text.ends_with(is_end)
        && text.chars().all(is_inner);
    if is_valid {
        return Ok(text.to_owned());
    }
    let problem = format!("{:?} is not a name", shortened(text));
    let remedy = "use at most 63 small letters, digits, `-` and `.`, and a letter or digit at both \
                  ends";
    Err(Fault::new(field, &problem, remedy))
}

/// A name of an interface.
pub(super) fn interface(field: &str, text: &str) -> Result<String, Fault> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !text.is_empty() && text.len() <= INTERFACE_LEN_MAX && text.chars().all(is_part) {
        return Ok(text.to_owned());
    }
    let problem = format!("{:?} is not the name of an interface", shortened(text));
    let remedy = "use at most 15 letters, digits, `-`, `_` and `.`";
    Err(Fault::new(field, &problem, remedy))
}

/// The beginning of a text, for messages.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(NAME_LEN_MAX).collect()
}
