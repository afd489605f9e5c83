//! `metalmesh firewall release`.

use anyhow::Result;
use clap::Subcommand;
use proto_public::metalmesh::admin::v1::{
    AgentRelease, FirewallRelease, FirewallReleaseServiceGetRequest,
    FirewallReleaseServiceRemoveRequest, FirewallReleaseServiceSetRequest,
};

use crate::app::App;
use crate::cmd::given;
use crate::cmd::rollout::ReleaseFileArgs;

/// Name of the agent in manifests.
const AGENT: &str = "metalmesh-firewall";

#[derive(Debug, Subcommand)]
pub(crate) enum FirewallReleaseCommand {
    /// Name the release that all firewalls are to run. Each runs it only if a key of its own files has
    /// signed it.
    Set(ReleaseFileArgs),
    /// Show the release that firewalls are to run; `metalmesh firewall ls` shows which do.
    #[command(visible_alias = "describe")]
    Show,
    /// Name no release: firewalls keep the program that they run.
    Clear,
}

pub(super) async fn run(app: &App, command: FirewallReleaseCommand) -> Result<()> {
    let mut client = app.client.firewall_releases();
    let release = match command {
        FirewallReleaseCommand::Show => {
            let answer = client.get(FirewallReleaseServiceGetRequest {}).await?;
            answer.into_inner().release
        }
        FirewallReleaseCommand::Set(args) => {
            let release = of_firewalls(args.release(AGENT)?);
            let before = client.get(FirewallReleaseServiceGetRequest {}).await?;
            let before = before.into_inner().release;
            let request = FirewallReleaseServiceSetRequest {
                release: Some(release.clone()),
            };
            let answer = client.set(request).await?;
            if let Some(warning) = before.and_then(|before| reused_version(&before, &release)) {
                noteln!("{warning}");
            }
            Some(given(answer.into_inner().release)?)
        }
        FirewallReleaseCommand::Clear => {
            let answer = client.remove(FirewallReleaseServiceRemoveRequest {});
            answer.await?.into_inner().release
        }
    };
    match release {
        Some(release) => app.output.one(&release),
        None => {
            noteln!("firewalls are told of no release: they keep the program that they run");
            Ok(())
        }
    }
}

/// The warning about a version that has stood for another release until now. `None` if it has not.
fn reused_version(before: &FirewallRelease, now: &FirewallRelease) -> Option<String> {
    let is_reused = before.version == now.version && before.head_digest != now.head_digest;
    is_reused.then(|| {
        let FirewallRelease {
            version,
            head_digest,
            ..
        } = before;
        format!(
            "warning: version {version} was {head_digest} until now; an agent that compares versions \
             alone keeps the program that it runs, and a new version reaches every agent"
        )
    })
}

/// The release as that of all firewalls.
fn of_firewalls(release: AgentRelease) -> FirewallRelease {
    FirewallRelease {
        version: release.version,
        url: release.url,
        head_digest: release.head_digest,
        ..FirewallRelease::default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proto_release::{FileDigest, PayloadEncoding, ReleaseManifest, ReleaseSigner, pack};

    use super::*;
    use crate::text::from_now;

    /// Writes a release; returns its signed head.
    fn publish(path: &Path, signer: &ReleaseSigner, name: &str) -> Vec<u8> {
        let payload = pack(b"program", PayloadEncoding::Zstd).unwrap();
        let now_s = u64::try_from(from_now(std::time::Duration::ZERO).seconds).unwrap();
        let head = signer.sign(&ReleaseManifest {
            name: name.to_owned(),
            version: "1.3.0".parse().unwrap(),
            architecture: "x86_64".to_owned(),
            mesh_level: 1,
            not_before_s: now_s - 60,
            expires_s: now_s + 3600,
            allow_downgrade_from: Vec::new(),
            encoding: PayloadEncoding::Zstd,
            payload: FileDigest::of(payload.as_slice()).unwrap(),
            program: FileDigest::of(&b"program"[..]).unwrap(),
        });
        let head = head.unwrap().encode();
        fs::write(path, [head.clone(), payload].concat()).unwrap();
        head
    }

    #[test]
    fn a_version_that_was_another_release_is_warned_about() {
        let release = |version: &str, digest: &str| FirewallRelease {
            version: version.to_owned(),
            head_digest: digest.to_owned(),
            ..FirewallRelease::default()
        };
        let now = release("1.3.0", "sha256:bb");
        for (before, is_reused) in [
            (release("1.3.0", "sha256:aa"), true),
            // Another place of the same release.
            (release("1.3.0", "sha256:bb"), false),
            (release("1.2.0", "sha256:aa"), false),
        ] {
            let warning = reused_version(&before, &now);
            assert_eq!(warning.is_some(), is_reused, "{warning:?}");
        }
    }

    #[test]
    fn a_release_is_named_as_its_signed_file_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.release");
        let signer = ReleaseSigner::generate().unwrap();
        let head = publish(&file, &signer, AGENT);
        let args = |key| ReleaseFileArgs {
            file: file.clone(),
            url: "https://releases.example.com/x".to_owned(),
            key: vec![key],
        };
        let release = args(signer.public()).release(AGENT).unwrap();
        let digest = FileDigest::of(head.as_slice()).unwrap().digest;
        assert_eq!(release.version, "1.3.0");
        assert_eq!(release.url, "https://releases.example.com/x");
        assert_eq!(release.head_digest, digest.to_string());
        // Signed by somebody else.
        let other = ReleaseSigner::generate().unwrap();
        assert!(args(other.public()).release(AGENT).is_err());
        publish(&file, &signer, "metalmesh-core");
        let error = args(signer.public())
            .release(AGENT)
            .unwrap_err()
            .to_string();
        assert!(error.contains("is a release of metalmesh-core"), "{error}");
    }
}
