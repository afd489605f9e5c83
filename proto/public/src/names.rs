//! Short names of enum values (option 52000), as clients print and accept them.

use prost_reflect::{EnumDescriptor, Value};

/// The short name of a value, such as `waiting`. `None` if the contract defines none.
///
/// `enum_name` is the full name: `metalstack.api.v2.MachineProvisioningEventType`.
pub fn enum_string(enum_name: &str, number: i32) -> Option<String> {
    short(&crate::pool().get_enum_by_name(enum_name)?, number)
}

/// The number of a value, by its short or full name. Case is ignored.
pub fn enum_number(enum_name: &str, name: &str) -> Option<i32> {
    let found = crate::pool().get_enum_by_name(enum_name)?;
    found
        .values()
        .find(|v| {
            v.name().eq_ignore_ascii_case(name)
                || short(&found, v.number()).is_some_and(|s| s.eq_ignore_ascii_case(name))
        })
        .map(|v| v.number())
}

fn short(of: &EnumDescriptor, number: i32) -> Option<String> {
    let extension = crate::pool().get_extension_by_name("metalstack.api.v2.enum_string_value")?;
    let options = of.get_value(number)?.options();
    if !options.has_extension(&extension) {
        return None;
    }
    match options.get_extension(&extension).as_ref() {
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_go_both_ways() {
        let events = "metalstack.api.v2.MachineProvisioningEventType";
        assert_eq!(enum_string(events, 7).as_deref(), Some("Waiting"));
        assert_eq!(enum_number(events, "waiting"), Some(7));
        assert_eq!(
            enum_number(events, "MACHINE_PROVISIONING_EVENT_TYPE_WAITING"),
            Some(7)
        );
        assert_eq!(enum_string(events, 0), None);
        assert_eq!(enum_string(events, 99), None);
    }
}
