//! JSON Patch (RFC 6902) as clients of OpenStack send it: add, replace, remove and test.

mod json_fields;
mod json_patch;
mod json_path;
mod patch_operation;

pub(crate) use json_fields::fields_of;
pub(crate) use json_patch::JsonPatch;
