//! Reads Redfish's JSON: texts that may be absent, null or a number, and links.

use serde_json::Value;

/// Longest error message that is passed on, characters. The rest is cut.
const MESSAGE_LEN_MAX: usize = 300;

/// Longest text that is read, bytes. The rest is cut: control refuses a whole report for one text
/// beyond its own bound, and names, versions and serial numbers are far shorter.
const TEXT_LEN_MAX: usize = 256;
/// Texts read of a list, such as allowable values. Further ones are ignored.
const TEXTS_MAX: usize = 64;

/// Reads a text. Absent, null and blank values are empty.
pub(crate) fn text(value: &Value, name: &str) -> String {
    cut(value[name].as_str().unwrap_or_default().trim())
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_LEN_MAX)].to_owned()
}

/// Reads the path of a link `{"@odata.id": …}`.
pub(crate) fn link(value: &Value) -> Option<String> {
    value["@odata.id"].as_str().map(str::to_owned)
}

/// Reads a list of texts. `None` means that it is absent.
pub(crate) fn texts(value: &Value, name: &str) -> Option<Vec<String>> {
    let list = value[name].as_array()?;
    Some(
        list.iter()
            .take(TEXTS_MAX)
            .filter_map(|text| text.as_str().map(cut))
            .collect(),
    )
}

/// The message of an error answer: its extended information, else its message, else its first
/// bytes.
pub(crate) fn error_message(body: &[u8]) -> String {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let told = parsed.as_ref().and_then(|value| {
        let error = &value["error"];
        let extended = error["@Message.ExtendedInfo"]
            .get(0)
            .map(|info| &info["Message"]);
        extended
            .into_iter()
            .chain([&error["message"]])
            .find_map(Value::as_str)
    });
    let message = match told {
        Some(told) => told.to_owned(),
        None => String::from_utf8_lossy(body.get(..MESSAGE_LEN_MAX).unwrap_or(body)).into_owned(),
    };
    message
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(MESSAGE_LEN_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_tell_the_most_precise_message() {
        let body = br#"{"error": {"message": "general", "@Message.ExtendedInfo":
            [{"Message": "the value\n  is wrong"}]}}"#;
        assert_eq!(error_message(body), "the value is wrong");
        assert_eq!(
            error_message(br#"{"error": {"message": "general"}}"#),
            "general"
        );
        assert_eq!(error_message(b"<html>oops"), "<html>oops");
        assert_eq!(error_message(b""), "");
        assert_eq!(error_message(&[b'x'; 5000]).len(), MESSAGE_LEN_MAX);
    }

    #[test]
    fn long_texts_are_cut_and_lists_end() {
        let long = "ä".repeat(5000);
        let value = serde_json::json!({ "Model": long, "Values": vec![long.as_str(); 500] });
        assert_eq!(text(&value, "Model"), "ä".repeat(TEXT_LEN_MAX / 2));
        let values = texts(&value, "Values").unwrap();
        assert_eq!(values.len(), TEXTS_MAX);
        assert!(values.iter().all(|text| text.len() <= TEXT_LEN_MAX));
    }

    #[test]
    fn fuzz_error_message() {
        bolero::check!().for_each(|bytes: &[u8]| {
            assert!(error_message(bytes).chars().count() <= MESSAGE_LEN_MAX);
        });
    }
}
