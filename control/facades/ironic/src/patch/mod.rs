//! Changes that requests make: JSON Patch (RFC 6902) as clients of OpenStack send it, and the typed
//! fields of objects.

mod json_fields;
mod json_patch;
mod json_path;
mod logical_name;
mod object_reader;
mod patch_operation;

pub(crate) use json_fields::{check_levels, fields_of};
pub(crate) use json_patch::JsonPatch;
pub(crate) use logical_name::is_logical_name;
pub(crate) use object_reader::ObjectReader;
