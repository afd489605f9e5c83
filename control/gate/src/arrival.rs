//! Decodes, validates and normalises a request: behind the gate each id has one spelling.

use std::time::SystemTime;

use control_front::Call;
use prost_reflect::{DynamicMessage, Value};
use proto_public::{json, one_spelling};
use tonic::Status;

use crate::refusal::of_violations;

/// A decoded request whose ids have their canonical spelling.
pub(crate) struct Arrived {
    pub(crate) message: DynamicMessage,
    /// Result of the contract's validation rules on the request as the caller wrote it.
    pub(crate) valid: Result<(), Status>,
    /// `true` if an id was rewritten to its canonical spelling.
    pub(crate) is_respelled: bool,
}

pub(crate) fn arrived(call: &Call<'_>) -> Result<Arrived, Status> {
    let mut message = json::decode(&call.method.input, call.message)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    // The rules judge the request as the caller wrote it, so normalisation comes second.
    let valid = validated(&message);
    let respelled = one_spelling(&mut message).map_err(|found| of_violations(&found));
    let (is_respelled, valid) = match respelled {
        Ok(is_respelled) => (is_respelled, valid),
        Err(status) => (false, valid.and(Err(status))),
    };
    Ok(Arrived {
        message,
        valid,
        is_respelled,
    })
}

/// The value of the request field that names the subject: a login or a project id.
pub(crate) fn subject(call: &Call<'_>, message: &DynamicMessage) -> Option<String> {
    let field = call.method.scope.subject_field()?;
    match message.get_field_by_name(field)?.as_ref() {
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// The contract's validation rules.
fn validated(message: &DynamicMessage) -> Result<(), Status> {
    proto_public::validate(message, SystemTime::now())
        .map_err(|violations| of_violations(&violations))
}
