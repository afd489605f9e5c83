//! Fields of a node that a deployment must not obey.
//!
//! Each of them led from the fields of a tenant to the hosts of Ironic, or past its isolation. None
//! has an effect in metalmesh; they are refused all the same, so that nobody believes in one.

use control_state::JsonFields;
use serde_json::Value;

use super::instance::value_field;
use crate::error::IronicError;

/// Names that are refused, each with the thing that decides in its place.
const REFUSED: [(&str, &str); 12] = [
    (
        "kernel_append_params",
        "the image decides on the arguments of its kernel",
    ),
    ("pxe_template", "the boot server decides on its scripts"),
    (
        "pxe_config_template",
        "the boot server decides on its scripts",
    ),
    (
        "uefi_pxe_config_template",
        "the boot server decides on its scripts",
    ),
    ("ks_template", "hammer installs without kickstart"),
    ("ks_options", "hammer installs without kickstart"),
    ("stage2", "hammer installs without kickstart"),
    ("boot_iso", "machines boot the installer of their partition"),
    (
        "deploy_iso",
        "machines boot the installer of their partition",
    ),
    (
        "rescue_iso",
        "machines boot the installer of their partition",
    ),
    ("kernel", "the image has its own kernel"),
    ("ramdisk", "the image has its own kernel"),
];
/// Begin of an address within the file system of a host.
const FILE: &str = "file:";
/// The field with the configuration drive.
const DRIVE: &str = "configdrive";

/// Refuses fields that name a file of a host, or that would change how the machine boots.
///
/// # Errors
/// 400, which names the field and what decides in its place.
pub(super) fn check_fields(info: &JsonFields) -> Result<(), IronicError> {
    for name in info.keys() {
        let known = REFUSED.into_iter().find(|(refused, _)| refused == name);
        let value = value_field(info, name);
        // An unset field is left by clients that reset it.
        if let Some((_, instead)) = known
            && !value.is_null()
        {
            let text = format!("instance_info/{name} is not obeyed: {instead}; remove the field");
            return Err(IronicError::invalid(text));
        }
        // The texts of a drive are its own, and its addresses are refused anyway.
        if name != DRIVE && names_file(&value) {
            let text = format!(
                "instance_info/{name} names a file of a host: image_source is the id or the address of \
                 an image"
            );
            return Err(IronicError::invalid(text));
        }
    }
    Ok(())
}

/// `true` if a text in the value is the address of a file.
fn names_file(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let begin = text.trim_start().get(..FILE.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(FILE))
        }
        Value::Array(items) => items.iter().any(names_file),
        Value::Object(fields) => fields.values().any(names_file),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(name: &str, value: &Value) -> Result<(), String> {
        let info = JsonFields::from([(name.to_owned(), value.to_string())]);
        check_fields(&info).map_err(|error| error.text)
    }

    #[test]
    fn fields_that_reach_for_hosts_are_refused() {
        // The advisories of 2025 and 2026: OSSA-2025-001 and the templates, kickstart files, images
        // and kernel arguments after it.
        for (name, value) in [
            ("image_source", json!("file:///etc/shadow")),
            ("image_source", json!("  FILE:///dev/zero")),
            ("image_checksum", json!("file:///etc/passwd")),
            ("capabilities", json!({"deep": ["x", "File:/etc/passwd"]})),
            ("kernel_append_params", json!("init=/bin/sh")),
            ("pxe_template", json!("/etc/passwd")),
            ("ks_template", json!("http://c/{{ x }}")),
            ("boot_iso", json!("http://c/x.iso")),
            ("kernel", json!("http://c/vmlinuz")),
        ] {
            let refused = checked(name, &value).unwrap_err();
            assert!(refused.contains(name), "{refused}");
        }
        for (name, _) in REFUSED {
            assert!(checked(name, &json!("x")).is_err(), "{name}");
            assert!(checked(name, &Value::Null).is_ok(), "{name}");
        }
    }

    #[test]
    fn other_fields_pass() {
        for (name, value) in [
            ("image_source", json!("debian-12")),
            ("image_source", json!("https://i/file:x")),
            ("display_name", json!("my file: one")),
            ("root_gb", json!(49)),
            ("capabilities", json!({"boot_option": "local"})),
            ("image_source", json!("fil")),
            ("configdrive", json!({"user_data": "file: a"})),
        ] {
            assert_eq!(checked(name, &value), Ok(()), "{name} {value}");
        }
    }
}
