//! The identity of the installed system: a key made here and control's certificate.

use std::path::Path;

use agents_kit::state_dir::StoredSession;
use agents_kit::{Credential, Key, StateDir};
use anyhow::Result;
use proto_mesh::{Install, MachineServiceClient, ProjectIdentityRequest, ProjectIdentityResponse};

use super::rootfs::{Owner, Root};
use super::{InstallTools, config};

/// Directory in memory (tmpfs) where the identity of the installed system is made.
const IDENTITY_DIR: &str = "/run/metalmesh/installed";

/// Gives the installed system its identity: a key generated here, and control's certificate.
pub(super) async fn install(cx: &InstallTools<'_>, order: &Install, root: &Root) -> Result<()> {
    // A key of its own, of the project: hammer's key is the machine's and ends with this boot.
    let key = Key::generate()?;
    let client: MachineServiceClient = cx.agent.client();
    let csr = key.request()?;
    // The same request at every retry: a repeated call certifies the same key again.
    let answer: ProjectIdentityResponse = crate::calls::persistent("ProjectIdentity", || {
        client.project_identity(ProjectIdentityRequest { csr: csr.clone() })
    })
    .await?;
    let der = |list: Vec<Vec<u8>>| list.into_iter().map(Into::into).collect();
    let credential = Credential {
        key,
        chain: der(answer.chain),
        roots: der(answer.roots),
    };
    let session = StoredSession {
        credential,
        control: order.control.clone(),
        ticket_id: String::new(),
    };
    let dir = StateDir::open(Path::new(IDENTITY_DIR))?;
    dir.store(&session)?;
    for entry in std::fs::read_dir(IDENTITY_DIR)? {
        let entry = entry?;
        let to = Path::new(config::STATE_DIR).join(entry.file_name());
        root.write(&to, Owner::root(0o600), &std::fs::read(entry.path())?)?;
    }
    // The key must stay on the target alone. The next attempt, should a later step fail, makes a
    // new one.
    std::fs::remove_dir_all(IDENTITY_DIR)?;
    Ok(())
}
