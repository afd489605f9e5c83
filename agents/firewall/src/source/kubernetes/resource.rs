use super::store::StoredObject;
use super::{KubernetesObject, ObjectKey};

/// Objects of one kind that a source follows.
#[derive(Clone, Debug)]
pub(super) struct WatchedResource {
    /// Path of the list: `/api/v1/services`.
    pub(super) path: String,
    /// Namespace of the objects. `None` for all of them.
    pub(super) namespace: Option<String>,
    /// Name of the one object. `None` for all of them.
    pub(super) name: Option<String>,
    /// Name of the kind for people: `services`.
    pub(super) kind: &'static str,
    /// Converts an object. `None` if it means nothing here.
    pub(super) convert: fn(&KubernetesObject) -> Option<StoredObject>,
}

impl WatchedResource {
    /// The verb, to complete "may not …".
    pub(super) fn what(&self, verb: &str) -> String {
        let place = match &self.namespace {
            Some(namespace) => format!("in the namespace {namespace}"),
            None => "in all namespaces".to_owned(),
        };
        format!("{verb} {} {place}", self.kind)
    }

    /// Path of a page of the list.
    pub(super) fn list_path(&self, page: usize, after: &str) -> String {
        let mut path = format!("{}?limit={page}{}", self.path, self.selector());
        if !after.is_empty() {
            path += "&continue=";
            path += &escaped(after);
        }
        path
    }

    /// Path of a watch from a version on.
    pub(super) fn watch_path(&self, version: &str, seconds: u64) -> String {
        format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={}{}",
            self.path,
            escaped(version),
            self.selector()
        )
    }

    /// Path of the status of an object.
    pub(super) fn status_path(&self, key: &ObjectKey) -> String {
        format!("{}/{}/status", self.path, escaped(&key.name))
    }

    fn selector(&self) -> String {
        let name = self.name.as_deref().map(escaped);
        name.map_or_else(String::new, |name| {
            format!("&fieldSelector=metadata.name%3D{name}")
        })
    }
}

/// A text as a part of a path or of a query: what a server says is no part of either's syntax.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_') {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn texts_cannot_leave_their_part_of_a_url() {
        for (text, expected) in [
            ("10234", "10234"),
            ("shoot--a.b_c", "shoot--a.b_c"),
            ("../x?y=z&w#", "..%2Fx%3Fy%3Dz%26w%23"),
            ("a b\u{e9}", "a%20b%C3%A9"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }
}
