use serde_norway::{Mapping, Value};

use super::KubeconfigError;
use proto_firewall::printable;

/// A field that a kubeconfig must not have here.
struct RefusedField {
    name: &'static str,
    problem: &'static str,
    remedy: &'static str,
}

const INLINE: &str = "put the content into the field whose name ends with -data";
const FILE: &str = "a kubeconfig must not make the agent read other files";
const PROGRAM: &str = "a kubeconfig must not make the agent run a program";
const OTHER_USER: &str = "the agent acts as nobody but itself";
const REMOVE: &str = "remove it";
const TOKEN: &str = "use token, or client-certificate-data and client-key-data";

const REFUSED: &[RefusedField] = &[
    refused("certificate-authority", FILE, INLINE),
    refused("client-certificate", FILE, INLINE),
    refused("client-key", FILE, INLINE),
    refused(
        "tokenFile",
        FILE,
        "put the token itself into the field token",
    ),
    refused("exec", PROGRAM, TOKEN),
    refused("auth-provider", PROGRAM, TOKEN),
    refused("username", "API servers have no passwords any more", TOKEN),
    refused("password", "API servers have no passwords any more", TOKEN),
    refused("as", OTHER_USER, REMOVE),
    refused("as-uid", OTHER_USER, REMOVE),
    refused("as-groups", OTHER_USER, REMOVE),
    refused("as-user-extra", OTHER_USER, REMOVE),
    refused(
        "insecure-skip-tls-verify",
        "anybody in between could change the rules",
        "remove it, and put the cluster's CA into certificate-authority-data",
    ),
    refused(
        "proxy-url",
        "a kubeconfig must not send the credential elsewhere",
        "remove it, and route to the API server",
    ),
];

const fn refused(name: &'static str, problem: &'static str, remedy: &'static str) -> RefusedField {
    RefusedField {
        name,
        problem,
        remedy,
    }
}

/// The fields of a mapping of a kubeconfig, with its path for errors. Errors never quote a value:
/// it may be a credential.
pub(super) struct KubeconfigFields<'a> {
    mapping: &'a Mapping,
    path: String,
}

impl<'a> KubeconfigFields<'a> {
    /// Checks that a value is a mapping with no other fields than those that are known.
    pub(super) fn new(
        value: &'a Value,
        path: &str,
        known: &[&str],
    ) -> Result<Self, KubeconfigError> {
        let Some(mapping) = value.as_mapping() else {
            return Err(fault(path, "it is no mapping", "write it as kubectl does"));
        };
        for key in mapping.keys() {
            let Some(name) = key.as_str() else {
                return Err(fault(path, "a name of a field is no text", "correct it"));
            };
            let inner = join(path, &printable(name));
            if let Some(refused) = REFUSED.iter().find(|refused| refused.name == name) {
                return Err(fault(&inner, refused.problem, refused.remedy));
            }
            if !known.contains(&name) {
                return Err(fault(&inner, "there is no such field", REMOVE));
            }
        }
        Ok(Self {
            mapping,
            path: path.to_owned(),
        })
    }

    /// A text. `None` if it is absent or empty, which kubectl writes for absent.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, KubeconfigError> {
        match self.mapping.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(self.fault(name, "it is no text", "put it into quotes")),
        }
    }

    /// A text that must be there.
    pub(super) fn required(&self, name: &str) -> Result<&'a str, KubeconfigError> {
        let missing = || self.fault(name, "it is missing", "add it");
        self.text(name)?.ok_or_else(missing)
    }

    /// A value that must be there.
    pub(super) fn value(&self, name: &str) -> Result<&'a Value, KubeconfigError> {
        let missing = || self.fault(name, "it is missing", "add it");
        self.mapping.get(name).ok_or_else(missing)
    }

    /// The elements of a list. Empty if it is absent.
    pub(super) fn list(&self, name: &str) -> Result<&'a [Value], KubeconfigError> {
        match self.mapping.get(name) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Sequence(list)) => Ok(list),
            Some(_) => Err(self.fault(name, "it is no list", "write it as kubectl does")),
        }
    }

    pub(super) fn fault(&self, name: &str, problem: &str, remedy: &str) -> KubeconfigError {
        fault(&join(&self.path, name), problem, remedy)
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn fault(field: &str, problem: &str, remedy: &str) -> KubeconfigError {
    KubeconfigError::Field {
        field: if field.is_empty() { "the file" } else { field }.to_owned(),
        problem: problem.to_owned(),
        remedy: remedy.to_owned(),
    }
}
