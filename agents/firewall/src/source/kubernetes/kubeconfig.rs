use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use proto_bounds::BRACKETS_MAX;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_norway::Value;

use super::KubeconfigError;
use super::kubeconfig_fields::KubeconfigFields;

/// Largest file, bytes. Those of Gardener have about 5 KiB.
const FILE_LEN_MAX: usize = 256 * 1024;
/// Largest token, bytes: API servers read no more of a request's head.
const TOKEN_LEN_MAX: usize = 64 * 1024;

/// The way to an API server, and the credential. A file with it may come from a tenant, so only
/// what is in the file itself is used: no program, no other file, no proxy, always TLS.
#[derive(Clone)]
pub struct Kubeconfig {
    /// Address of the API server: `https://HOST:PORT`, and the beginning of every path.
    pub(super) server: Uri,
    /// Name in the API server's certificate, if it is not the host of `server`.
    pub(super) server_name: Option<ServerName<'static>>,
    /// Value of the header `Authorization`. `None` if the client certificate is the credential.
    pub(super) authorization: Option<HeaderValue>,
    /// Trust in the API server, and the client certificate.
    pub(super) tls: ClientConfig,
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the credential.
        out.debug_struct("Kubeconfig")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Kubeconfig {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, others may write it, or [`Kubeconfig::parse`] refuses it.
    pub fn load(path: &Path) -> Result<Self, KubeconfigError> {
        let refused = |problem| KubeconfigError::Unsafe {
            path: path.to_owned(),
            problem,
        };
        let failed = |source| KubeconfigError::Read {
            path: path.to_owned(),
            source,
        };
        // Asked before it is opened: opening a pipe waits for its writer.
        let meta = fs::metadata(path).map_err(failed)?;
        if !meta.is_file() {
            return Err(refused("is no regular file; name a file"));
        }
        if meta.permissions().mode() & 0o022 != 0 {
            return Err(refused("may be written by others; run chmod go-w on it"));
        }
        let limit = u64::try_from(FILE_LEN_MAX).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        let read = fs::File::open(path)
            .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes));
        read.map_err(failed)?;
        Self::parse(&bytes)
    }

    /// Parses the content of a file.
    ///
    /// # Errors
    /// It is too large or too nested, no kubeconfig, or has a field that is refused.
    pub fn parse(bytes: &[u8]) -> Result<Self, KubeconfigError> {
        if bytes.len() > FILE_LEN_MAX {
            return Err(KubeconfigError::TooLarge {
                bytes_max: FILE_LEN_MAX,
            });
        }
        if !proto_bounds::has_few_brackets(bytes) {
            return Err(KubeconfigError::Nested {
                brackets_max: BRACKETS_MAX,
            });
        }
        let value: Value = serde_norway::from_slice(bytes).map_err(|error| {
            let line = error.location().map_or(0, |place| place.line());
            KubeconfigError::Syntax { line }
        })?;
        let known = [
            "apiVersion",
            "kind",
            "clusters",
            "users",
            "contexts",
            "current-context",
            "preferences",
            "extensions",
        ];
        let file = KubeconfigFields::new(&value, "", &known)?;
        let clusters = entries(&file, "clusters", "cluster", CLUSTER_FIELDS)?;
        let users = entries(&file, "users", "user", USER_FIELDS)?;
        let contexts = entries(&file, "contexts", "context", CONTEXT_FIELDS)?;
        let current = file.required("current-context")?;
        let context = named(&file, "current-context", current, &contexts)?;
        let cluster = named(context, "cluster", context.required("cluster")?, &clusters)?;
        let user = named(context, "user", context.required("user")?, &users)?;
        Self::of(cluster, user)
    }

    fn of(
        cluster: &KubeconfigFields<'_>,
        user: &KubeconfigFields<'_>,
    ) -> Result<Self, KubeconfigError> {
        let server = server(cluster)?;
        let server_name = match cluster.text("tls-server-name")? {
            None => None,
            Some(text) => Some(ServerName::try_from(text.to_owned()).map_err(|_| {
                cluster.fault("tls-server-name", "it is no host name", "correct it")
            })?),
        };
        let roots = roots(cluster)?;
        let authorization = authorization(user)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| cluster.fault("server", "TLS cannot be used", "report it"))?
            .with_root_certificates(roots);
        let field = "client-certificate-data";
        let tls = match certificate(user)? {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|_| {
                user.fault(field, "certificate and key do not match", "take both anew")
            })?,
            None if authorization.is_none() => {
                let remedy = "add token, or client-certificate-data and client-key-data";
                return Err(user.fault("token", "there is no credential", remedy));
            }
            None => builder.with_no_client_auth(),
        };
        Ok(Self {
            server,
            server_name,
            authorization,
            tls,
        })
    }
}

const CLUSTER_FIELDS: &[&str] = &[
    "server",
    "certificate-authority-data",
    "tls-server-name",
    "disable-compression",
    "extensions",
];
const USER_FIELDS: &[&str] = &[
    "token",
    "client-certificate-data",
    "client-key-data",
    "extensions",
];
const CONTEXT_FIELDS: &[&str] = &["cluster", "user", "namespace", "extensions"];

/// An element of a list of the file.
struct NamedFields<'a> {
    name: &'a str,
    fields: KubeconfigFields<'a>,
}

/// The elements of a list, every one of them checked: one that is not used now is used after a
/// change of `current-context`.
fn entries<'a>(
    file: &KubeconfigFields<'a>,
    list: &str,
    inner: &str,
    known: &[&str],
) -> Result<Vec<NamedFields<'a>>, KubeconfigError> {
    let mut all = Vec::new();
    for (index, value) in file.list(list)?.iter().enumerate() {
        let path = format!("{list}[{index}]");
        let outer = KubeconfigFields::new(value, &path, &["name", inner])?;
        let name = outer.required("name")?;
        let fields = KubeconfigFields::new(outer.value(inner)?, &format!("{path}.{inner}"), known)?;
        if all.iter().any(|other: &NamedFields<'_>| other.name == name) {
            return Err(outer.fault("name", "another one has it", "remove one of both"));
        }
        all.push(NamedFields { name, fields });
    }
    Ok(all)
}

fn named<'b, 'a>(
    from: &KubeconfigFields<'_>,
    field: &str,
    name: &str,
    list: &'b [NamedFields<'a>],
) -> Result<&'b KubeconfigFields<'a>, KubeconfigError> {
    let found = list.iter().find(|entry| entry.name == name);
    let missing = || from.fault(field, "the file has nothing of that name", "correct it");
    found.map(|entry| &entry.fields).ok_or_else(missing)
}

fn server(cluster: &KubeconfigFields<'_>) -> Result<Uri, KubeconfigError> {
    let text = cluster.required("server")?;
    let refuse = |problem, remedy| cluster.fault("server", problem, remedy);
    let shape = "write it as https://HOST:PORT";
    let uri: Uri = text.parse().map_err(|_| refuse("it is no URL", shape))?;
    if uri.scheme_str() != Some("https") {
        return Err(refuse("it is not encrypted, or has no scheme", shape));
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.is_empty() || authority.contains('@') || uri.query().is_some() {
        return Err(refuse("it has no host, a user or a query", shape));
    }
    Ok(uri)
}

fn decoded(fields: &KubeconfigFields<'_>, name: &str) -> Result<Option<Vec<u8>>, KubeconfigError> {
    let Some(text) = fields.text(name)? else {
        return Ok(None);
    };
    let bytes = STANDARD.decode(text.trim());
    bytes
        .map(Some)
        .map_err(|_| fields.fault(name, "it is no Base64", "encode the PEM file with base64"))
}

fn certificates(
    fields: &KubeconfigFields<'_>,
    name: &str,
) -> Result<Option<Vec<CertificateDer<'static>>>, KubeconfigError> {
    let Some(pem) = decoded(fields, name)? else {
        return Ok(None);
    };
    let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match list {
        Ok(list) if !list.is_empty() => Ok(Some(list)),
        _ => Err(fields.fault(
            name,
            "it has no certificate",
            "put a PEM certificate into it",
        )),
    }
}

fn roots(cluster: &KubeconfigFields<'_>) -> Result<RootCertStore, KubeconfigError> {
    let field = "certificate-authority-data";
    let Some(list) = certificates(cluster, field)? else {
        // The authorities of the system would trust anybody who has a certificate of any name.
        return Err(cluster.fault(field, "it is missing", "add the cluster's CA"));
    };
    let mut roots = RootCertStore::empty();
    for certificate in list {
        let added = roots.add(certificate);
        added.map_err(|_| cluster.fault(field, "a certificate is damaged", "take it anew"))?;
    }
    Ok(roots)
}

fn authorization(user: &KubeconfigFields<'_>) -> Result<Option<HeaderValue>, KubeconfigError> {
    let Some(token) = user.text("token")? else {
        return Ok(None);
    };
    let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    match value {
        Ok(mut value) if token.len() <= TOKEN_LEN_MAX => {
            value.set_sensitive(true);
            Ok(Some(value))
        }
        _ => Err(user.fault("token", "it is no token", "put a bearer token into it")),
    }
}

/// The chain of the client certificate, and its key.
type ClientCertificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn certificate(user: &KubeconfigFields<'_>) -> Result<Option<ClientCertificate>, KubeconfigError> {
    let key = decoded(user, "client-key-data")?;
    match (certificates(user, "client-certificate-data")?, key) {
        (None, None) => Ok(None),
        (Some(chain), Some(pem)) => {
            let key = PrivateKeyDer::from_pem_slice(&pem);
            let key = key.map_err(|_| {
                user.fault("client-key-data", "it has no key", "put a PEM key into it")
            })?;
            Ok(Some((chain, key)))
        }
        (None, Some(_)) => Err(user.fault(
            "client-certificate-data",
            "there is a key without a certificate",
            "add the certificate",
        )),
        (Some(_), None) => Err(user.fault(
            "client-key-data",
            "there is a certificate without a key",
            "add the key",
        )),
    }
}
