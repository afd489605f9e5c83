use proto_firewall::parts::{NAME_LEN_MAX, is_name};
use serde_norway::Value;

/// A list of objects of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectList<'a> {
    /// Controller and list, as problems name them: `cwnp egress`.
    pub(super) name: &'a str,
    pub(super) values: &'a [Value],
}

impl ObjectList<'_> {
    /// An object in problems: its name, if it has a right one, or its place.
    pub(super) fn place(&self, index: usize) -> String {
        let name = self.values.get(index).and_then(|value| value.get("name"));
        let name = name.and_then(Value::as_str);
        match name.filter(|name| is_name(name, NAME_LEN_MAX)) {
            Some(name) => format!("{}/{name}", self.name),
            None => format!("{}[{index}]", self.name),
        }
    }
}
