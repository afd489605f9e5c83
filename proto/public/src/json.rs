//! proto3 JSON of any message of the contract, by its descriptor.
//!
//! Input accepts original (`project_roles`) and lowerCamel (`projectRoles`) names. [`to_proto`]
//! ignores unknown fields, as the published servers do; [`to_proto_strict`] refuses them. Output is
//! lowerCamel and leaves out default values, as the published servers answer.

use prost::Message;
use prost_reflect::{
    DeserializeOptions, DynamicMessage, FieldDescriptor, MessageDescriptor, ReflectMessage,
    SerializeOptions,
};

use crate::RefusedField;

/// The reason why a conversion between JSON and proto bytes failed.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON, or not JSON of this message.
    #[error("not valid JSON of {message}: {source}")]
    Json {
        /// Full name of the message.
        message: String,
        /// The parser's error, with line and column.
        source: serde_json::Error,
    },
    /// The text has something that the message cannot take.
    #[error("not valid JSON of {message}: {field}")]
    Field {
        /// Full name of the message.
        message: String,
        /// The place and the reason.
        field: RefusedField,
    },
    /// The bytes are not this message.
    #[error("not valid protobuf of {message}: {source}")]
    Proto {
        /// Full name of the message.
        message: String,
        /// The decoder's error.
        source: prost::DecodeError,
    },
}

/// Parses JSON. An empty text is the empty message, because Connect clients may send it.
pub fn parse(message: &MessageDescriptor, json: &[u8]) -> Result<DynamicMessage, JsonError> {
    if json.trim_ascii().is_empty() {
        return Ok(DynamicMessage::new(message.clone()));
    }
    parse_with(message, json, false)
}

/// Parses JSON that people wrote. An unknown field is an error, because it is a typing error.
pub fn parse_strict(message: &MessageDescriptor, json: &[u8]) -> Result<DynamicMessage, JsonError> {
    parse_with(message, json, true)
}

fn parse_with(
    message: &MessageDescriptor,
    json: &[u8],
    is_strict: bool,
) -> Result<DynamicMessage, JsonError> {
    let wrap = |source| JsonError::Json {
        message: message.full_name().to_owned(),
        source,
    };
    let options = DeserializeOptions::new().deny_unknown_fields(is_strict);
    let mut input = serde_json::Deserializer::from_slice(json);
    let parsed = DynamicMessage::deserialize_with_options(message.clone(), &mut input, &options)
        .map_err(wrap)?;
    input.end().map_err(wrap)?;
    Ok(parsed)
}

/// Writes a message as JSON: lowerCamel names, default values left out.
pub fn print(message: &DynamicMessage) -> Result<Vec<u8>, JsonError> {
    print_with(message, &SerializeOptions::new())
}

/// Writes a message as JSON with default values, for people and scripts that read fields by name.
pub fn print_full(message: &DynamicMessage) -> Result<Vec<u8>, JsonError> {
    print_with(message, &SerializeOptions::new().skip_default_fields(false))
}

fn print_with(message: &DynamicMessage, options: &SerializeOptions) -> Result<Vec<u8>, JsonError> {
    let mut out = Vec::with_capacity(256);
    message
        .serialize_with_options(&mut serde_json::Serializer::new(&mut out), options)
        .map_err(|source| JsonError::Json {
            message: message.descriptor().full_name().to_owned(),
            source,
        })?;
    Ok(out)
}

/// Decodes proto bytes by descriptor.
pub fn decode(message: &MessageDescriptor, bytes: &[u8]) -> Result<DynamicMessage, JsonError> {
    DynamicMessage::decode(message.clone(), bytes).map_err(|source| JsonError::Proto {
        message: message.full_name().to_owned(),
        source,
    })
}

/// JSON to proto bytes.
pub fn to_proto(message: &MessageDescriptor, json: &[u8]) -> Result<Vec<u8>, JsonError> {
    Ok(parse(message, json)?.encode_to_vec())
}

/// JSON to proto bytes. An unknown field or value is an error, and so is a field that is given twice:
/// ignored, it would change what the rest means.
///
/// # Errors
/// [`JsonError::Field`] for these, with the place; [`JsonError::Json`] for other errors.
pub fn to_proto_strict(message: &MessageDescriptor, json: &[u8]) -> Result<Vec<u8>, JsonError> {
    if json.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    if let Some(field) = RefusedField::find(message, json) {
        let message = message.full_name().to_owned();
        return Err(JsonError::Field { message, field });
    }
    Ok(parse_strict(message, json)?.encode_to_vec())
}

/// A field by either of its names.
pub(crate) fn field(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    let field = message.get_field_by_json_name(name);
    field.or_else(|| message.get_field_by_name(name))
}

/// Proto bytes to JSON.
pub fn from_proto(message: &MessageDescriptor, bytes: &[u8]) -> Result<Vec<u8>, JsonError> {
    // The transcoder covers nearly all messages and avoids the dynamic message. `None` means that it
    // cannot write this one.
    if let Some(json) = crate::transcode::json(message, bytes) {
        return Ok(json);
    }
    print(&decode(message, bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create() -> MessageDescriptor {
        crate::message("metalstack.api.v2.TokenServiceCreateRequest").unwrap()
    }

    #[test]
    fn both_spellings_and_unknown_fields_are_accepted() {
        for name in ["projectRoles", "project_roles"] {
            let text = format!(
                r#"{{"{name}":{{"*":"PROJECT_ROLE_OWNER"}},"expires":"600s","newer":[1]}}"#
            );
            let bytes = to_proto(&create(), text.as_bytes()).unwrap();
            let typed = crate::api::v2::TokenServiceCreateRequest::decode(&bytes[..]).unwrap();
            assert_eq!(typed.project_roles["*"], 1);
            assert_eq!(typed.expires.unwrap().seconds, 600);
        }
    }

    #[test]
    fn output_is_lower_camel_without_defaults() {
        let typed = crate::api::v2::TokenServiceCreateRequest {
            project_roles: [("*".to_owned(), 1)].into(),
            ..Default::default()
        };
        let json = from_proto(&create(), &typed.encode_to_vec()).unwrap();
        assert_eq!(json, br#"{"projectRoles":{"*":"PROJECT_ROLE_OWNER"}}"#);
        let full = print_full(&decode(&create(), &typed.encode_to_vec()).unwrap()).unwrap();
        assert!(
            String::from_utf8(full)
                .unwrap()
                .contains(r#""description":"""#)
        );
    }

    #[test]
    fn empty_is_the_empty_message_and_rubbish_is_named() {
        assert!(to_proto(&create(), b" ").unwrap().is_empty());
        let error = to_proto(&create(), b"{\"description\": 7}")
            .unwrap_err()
            .to_string();
        assert!(error.contains("TokenServiceCreateRequest"), "{error}");
        assert!(to_proto(&create(), b"{} {}").is_err());
    }
}
