//! Booleans as clients of OpenStack write them.

use crate::error::IronicError;
use crate::request::IronicCall;

/// A boolean of the query. `None` means that the request does not name it.
///
/// # Errors
/// 400 for a text that is no boolean.
pub(crate) fn asked_flag(call: &IronicCall<'_>, name: &str) -> Result<Option<bool>, IronicError> {
    let text = call.asked(name);
    text.map(|text| flag(name, text)).transpose()
}

/// The boolean that a text stands for.
///
/// # Errors
/// 400 for a text that is none.
pub(crate) fn flag(name: &str, text: &str) -> Result<bool, IronicError> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "t" | "true" | "on" | "y" | "yes" => Ok(true),
        "0" | "f" | "false" | "off" | "n" | "no" => Ok(false),
        _ => {
            let text = format!("{name}: \"{text}\" is no boolean: send True or False");
            Err(IronicError::invalid(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_booleans() {
        for (text, expected) in [
            ("True", Some(true)),
            ("true", Some(true)),
            ("1", Some(true)),
            (" yes ", Some(true)),
            ("False", Some(false)),
            ("off", Some(false)),
            ("", None),
            ("maybe", None),
            ("2", None),
        ] {
            assert_eq!(flag("detail", text).ok(), expected, "{text}");
        }
    }
}
