//! The credential of a request: a token of metalmesh, and the scope that it is used in.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use proto_types::ProjectId;

/// Header of OpenStack with a token.
const TOKEN_HEADER: &str = "x-auth-token";
/// Name of the scope of the whole site.
const SYSTEM: &str = "system";

/// The objects that a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FacadeScope {
    /// The whole site; for administrators.
    System,
    /// A project.
    Project(ProjectId),
}

/// A credential as a request presents it. The token is not checked yet.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct FacadeCredential {
    /// The token of metalmesh.
    pub(crate) token: String,
    /// The scope that the request names. `None` means that it follows from the token's rights.
    pub(crate) scope: Option<FacadeScope>,
}

impl std::fmt::Debug for FacadeCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FacadeCredential")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl FacadeScope {
    /// The scope of this name: `system`, or the id of a project.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == SYSTEM {
            return Some(Self::System);
        }
        text.parse().ok().map(Self::Project)
    }

    /// The name of the scope.
    pub(crate) fn text(self) -> String {
        match self {
            Self::System => SYSTEM.to_owned(),
            Self::Project(project) => project.to_string(),
        }
    }
}

impl FacadeCredential {
    /// The credential of a request: a token in its own header, or Basic with the scope as the user and
    /// the token as the password. `None` means that there is none that can be read.
    pub(crate) fn of_request(headers: &HeaderMap) -> Option<Self> {
        if let Some(value) = headers.get(TOKEN_HEADER) {
            return Self::parse(value.to_str().ok()?.trim());
        }
        let (kind, value) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        if kind.eq_ignore_ascii_case("bearer") {
            return Self::parse(value.trim());
        }
        if !kind.eq_ignore_ascii_case("basic") {
            return None;
        }
        let plain = String::from_utf8(STANDARD.decode(value.trim()).ok()?).ok()?;
        let (user, password) = plain.split_once(':')?;
        // Any other user name would be taken for the scope of the token, whatever was meant.
        let scope = FacadeScope::parse(user)?;
        Some(Self {
            token: password.to_owned(),
            scope: Some(scope),
        })
    }

    /// A token, or a scope and a token as Keystone's calls issue them: `SCOPE:TOKEN`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let Some((scope, token)) = text.split_once(':') else {
            return Some(Self {
                token: text.to_owned(),
                scope: None,
            });
        };
        Some(Self {
            token: token.to_owned(),
            scope: Some(FacadeScope::parse(scope)?),
        })
    }

    /// The text that [`FacadeCredential::parse`] reads.
    pub(crate) fn text(&self) -> String {
        match self.scope {
            Some(scope) => format!("{}:{}", scope.text(), self.token),
            None => self.token.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const PROJECT: &str = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";

    fn read(name: &'static str, value: &str) -> Option<FacadeCredential> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        FacadeCredential::of_request(&headers)
    }

    fn credential(scope: Option<FacadeScope>) -> Option<FacadeCredential> {
        Some(FacadeCredential {
            token: "a.b.c".to_owned(),
            scope,
        })
    }

    #[test]
    fn the_three_ways_to_authenticate() {
        let project = Some(FacadeScope::Project(PROJECT.parse().unwrap()));
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let plain = PROJECT.replace('-', "");
        for (name, value, expected) in [
            ("x-auth-token", "a.b.c".to_owned(), credential(None)),
            (
                "x-auth-token",
                format!("{PROJECT}:a.b.c"),
                credential(project),
            ),
            (
                "x-auth-token",
                "system:a.b.c".to_owned(),
                credential(Some(FacadeScope::System)),
            ),
            ("x-auth-token", "nonsense:a.b.c".to_owned(), None),
            ("authorization", "Bearer a.b.c".to_owned(), credential(None)),
            (
                "authorization",
                basic(&format!("{plain}:a.b.c")),
                credential(project),
            ),
            ("authorization", basic("ada:a.b.c"), None),
            ("authorization", basic("system"), None),
            ("authorization", "Digest x".to_owned(), None),
        ] {
            assert_eq!(read(name, &value), expected, "{name}: {value}");
        }
        assert_eq!(FacadeCredential::of_request(&HeaderMap::new()), None);
    }

    #[test]
    fn a_text_comes_back_and_a_token_is_not_printed() {
        let with_scope = credential(Some(FacadeScope::System)).unwrap();
        assert_eq!(
            FacadeCredential::parse(&with_scope.text()),
            Some(with_scope.clone())
        );
        assert!(!format!("{with_scope:?}").contains("a.b.c"));
    }
}
