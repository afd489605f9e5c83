//! The front against the Connect protocol's own conformance suite for servers: the published Go
//! module drives Connect, gRPC and gRPC-Web over HTTP/1.1 and HTTP/2, with TLS and without, in
//! every codec, compression and kind of stream.
//!
//! The suite starts this test's own program as the server (`serve`). Its schema comes from the
//! module too, so nothing of it is kept here.

#![expect(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod service;
mod wire;

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use control_front::{Call, Front, Gate, MESSAGE_BYTES_MAX};
use http::{Extensions, HeaderMap};
use prost::Message;
use prost_reflect::DescriptorPool;
use proto_public::{Method, Scope};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use service::Conformance;
use wire::{ServerCompatRequest, ServerCompatResponse};

const SUITE: &str = "connectrpc.com/conformance";
const VERSION: &str = "v1.0.7";
/// Where the server finds the suite's schema.
const SCHEMA: &str = "METALMESH_CONFORMANCE_SCHEMA";
/// What the front can do. No method of the contract may be called by GET, and callers show
/// tokens, not certificates.
const FEATURES: &str = "\
features:
  versions: [HTTP_VERSION_1, HTTP_VERSION_2]
  protocols: [PROTOCOL_CONNECT, PROTOCOL_GRPC, PROTOCOL_GRPC_WEB]
  codecs: [CODEC_PROTO, CODEC_JSON]
  compressions: [COMPRESSION_IDENTITY, COMPRESSION_GZIP, COMPRESSION_ZSTD]
  supports_h2c: true
  supports_tls: true
  supports_tls_client_certs: false
  supports_trailers: true
  supports_half_duplex_bidi_over_http1: true
  supports_connect_get: false
  supports_message_receive_limit: true
";

#[test]
fn the_front_passes_the_conformance_suite() {
    let (suite, schema) = match published() {
        Ok(found) => found,
        Err(reason) if std::env::var_os("CONFORMANCE").is_none() => {
            println!("skipped: {SUITE} {VERSION} cannot be had: {reason}");
            return;
        }
        Err(reason) => panic!("{SUITE} {VERSION}: {reason}"),
    };
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("connect");
    let features = out.join("features.yaml");
    std::fs::write(&features, FEATURES).unwrap();
    // The program's own lines go to stderr: stdout, as 3, is for the suite alone.
    let serve = r#"exec "$0" serve --exact --ignored --nocapture 3>&1 >&2"#;
    let output = Command::new(suite)
        .args(["--mode", "server", "--conf"])
        .arg(&features)
        .args(["--", "sh", "-c", serve])
        .arg(std::env::current_exe().unwrap())
        .env(SCHEMA, schema)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let failed: Vec<&str> = said.lines().filter(|it| it.starts_with("FAILED")).collect();
    std::fs::write(out.join("report.txt"), format!("{said}\n{errors}")).unwrap();
    let total = said.lines().chain(errors.lines());
    let total = total.filter(|it| it.starts_with("Total cases:"));
    println!("{SUITE} {VERSION}: {}", total.collect::<String>());
    assert!(
        output.status.success(),
        "{} failed, the first: {:#?}\nall in {}",
        failed.len(),
        failed.iter().take(20).collect::<Vec<_>>(),
        out.join("report.txt").display(),
    );
}

/// The suite's program and schema.
fn published() -> Result<(PathBuf, PathBuf), String> {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("connect");
    let program = out.join("connectconformance");
    let at = format!("{SUITE}@{VERSION}");
    let told = go(&out, &["mod", "download", "-json", &at])?;
    let told: serde_json::Value = serde_json::from_str(&told).map_err(|e| e.to_string())?;
    let dir = told["Dir"].as_str().ok_or("go names no directory")?;
    if !program.exists() {
        let package = format!("{SUITE}/cmd/connectconformance@{VERSION}");
        go(&out, &["install", &package])?;
    }
    Ok((program, Path::new(dir).join("proto")))
}

fn go(out: &Path, arguments: &[&str]) -> Result<String, String> {
    std::fs::create_dir_all(out).map_err(|e| e.to_string())?;
    let mut command = Command::new("go");
    command.args(arguments).current_dir(out).env("GOBIN", out);
    let output = command.output().map_err(|error| format!("go: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.trim().lines().last().unwrap_or_default();
    Err(format!("{command:?}: {last}"))
}

/// Lets everybody in: the suite is about the protocols.
struct Open;

#[tonic::async_trait]
impl Gate for Open {
    type Ticket = ();

    fn screen(
        &self,
        _method: &'static Method,
        _headers: &HeaderMap,
    ) -> Result<Option<Arc<str>>, Status> {
        Ok(Some("suite".into()))
    }
    async fn admit(&self, _call: Call<'_>) -> Result<(Extensions, ()), Status> {
        Ok((Extensions::new(), ()))
    }
    async fn finish(&self, _ticket: (), _code: Code) {}
}

/// The server under test; the suite asks for one for each sort of connection.
#[test]
#[ignore = "started by the suite"]
fn serve() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let wanted: ServerCompatRequest = receive();
        let creds = wanted.server_creds.clone().filter(|_| wanted.use_tls);
        let tls = creds.as_ref().map(|creds| {
            let chain = CertificateDer::pem_slice_iter(&creds.cert);
            let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
            let key = PrivateKeyDer::from_pem_slice(&creds.key).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = rustls::ServerConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth();
            let mut config = config.with_single_cert(chain, key).unwrap();
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            Arc::new(config)
        });
        let bytes_max = match wanted.message_receive_limit {
            0 => MESSAGE_BYTES_MAX,
            limit => usize::try_from(limit).unwrap(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let front = Front::new(Arc::new(Open), Conformance).with_methods(method, bytes_max);
        send(&ServerCompatResponse {
            host: at.ip().to_string(),
            port: at.port().into(),
            pem_cert: creds.map(|creds| creds.cert).unwrap_or_default(),
        });
        // Until the suite ends it.
        control_front::serve::serve(listener, tls, front, CancellationToken::new()).await;
    });
}

fn receive<M: Message + Default>() -> M {
    let mut input = std::io::stdin().lock();
    let mut length = [0; 4];
    input.read_exact(&mut length).unwrap();
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap();
    let mut message = vec![0; length];
    input.read_exact(&mut message).unwrap();
    M::decode(&message[..]).unwrap()
}

fn send(message: &impl Message) {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let mut out = File::options().write(true).open("/dev/fd/3").unwrap();
    out.write_all(&[&length[..], &message].concat()).unwrap();
}

/// The methods of the conformance service.
fn method(path: &str) -> Option<&'static Method> {
    static METHODS: OnceLock<HashMap<String, Method>> = OnceLock::new();
    METHODS.get_or_init(methods).get(path)
}

fn methods() -> HashMap<String, Method> {
    let schema = std::env::var_os(SCHEMA).unwrap();
    let mut compiler = protox::Compiler::new([schema]).unwrap();
    compiler.include_imports(true);
    compiler
        .open_file("connectrpc/conformance/v1/service.proto")
        .unwrap();
    let bytes = compiler.encode_file_descriptor_set();
    let pool = DescriptorPool::decode(&bytes[..]).unwrap();
    let service = pool.get_service_by_name("connectrpc.conformance.v1.ConformanceService");
    let service = service.unwrap();
    service
        .methods()
        .enumerate()
        .map(|(index, method)| {
            let path = format!("/{}/{}", service.full_name(), method.name());
            let method = Method {
                index,
                path: path.clone(),
                service: service.full_name().to_owned(),
                name: method.name().to_owned(),
                input: method.input(),
                output: method.output(),
                client_streaming: method.is_client_streaming(),
                server_streaming: method.is_server_streaming(),
                scope: Scope::Public,
                audited: false,
            };
            (path, method)
        })
        .collect()
}
