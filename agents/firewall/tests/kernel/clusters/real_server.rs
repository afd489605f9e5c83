//! A kube-apiserver with its etcd, as children in a network namespace.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::server::{PORT, TOKEN};
use crate::namespace::Namespace;

/// Port of etcd.
const ETCD_PORT: u16 = 2379;

/// The folder with the programs. `None` if there is none.
pub(crate) fn programs() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("METALMESH_KUBE_DIR")?);
    let has = |name: &str| folder.join(name).is_file();
    (has("kube-apiserver") && has("etcd")).then_some(folder)
}

pub(crate) struct RealServer {
    programs: PathBuf,
    folder: PathBuf,
    namespace: String,
    etcd: Child,
    server: Option<Child>,
}

impl RealServer {
    pub(crate) fn start(programs: PathBuf, folder: &Path, at: &Namespace) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        fs::write(folder.join("sa.key"), key.serialize_pem()).unwrap();
        let tokens = format!("{TOKEN},admin,1,\"system:masters\"\n");
        fs::write(folder.join("tokens.csv"), tokens).unwrap();
        let client = format!("http://127.0.0.1:{ETCD_PORT}");
        let data = folder.join("etcd-data");
        let arguments = [
            "--data-dir".to_owned(),
            data.display().to_string(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            "--unsafe-no-fsync".to_owned(),
        ];
        let etcd = spawn(&programs.join("etcd"), &arguments, folder, &at.0);
        let mut own = Self {
            programs,
            folder: folder.to_owned(),
            namespace: at.0.clone(),
            etcd,
            server: None,
        };
        own.start_server();
        own
    }

    pub(crate) fn start_server(&mut self) {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let arguments = [
            format!("--etcd-servers=http://127.0.0.1:{ETCD_PORT}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=203.0.113.1".to_owned(),
            format!("--secure-port={PORT}"),
            format!("--cert-dir={}", path("certs")),
            format!("--token-auth-file={}", path("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--anonymous-auth=false".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", path("sa.key")),
            format!("--service-account-signing-key-file={}", path("sa.key")),
            "--service-cluster-ip-range=10.96.0.0/24".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        let program = self.programs.join("kube-apiserver");
        self.server = Some(spawn(&program, &arguments, &self.folder, &self.namespace));
    }

    /// Certificates of the server and its authority. `None` until they are made.
    pub(crate) fn authority(&self) -> Option<String> {
        fs::read_to_string(self.folder.join("certs/apiserver.crt")).ok()
    }

    pub(crate) fn kill_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        self.kill_server();
        drop(self.etcd.kill());
        drop(self.etcd.wait());
    }
}

fn spawn(program: &Path, arguments: &[String], folder: &Path, namespace: &str) -> Child {
    let name = program.file_name().unwrap().to_string_lossy().into_owned();
    let log = File::create(folder.join(format!("{name}.log"))).unwrap();
    // `ip netns exec` becomes the program, so that it is what is killed.
    Command::new("ip")
        .args(["netns", "exec", namespace])
        .arg(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}
