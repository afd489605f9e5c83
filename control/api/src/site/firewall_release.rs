//! The release of the agent that firewalls are to run.
//!
//! Control keeps its name, its place and the digest of its signed head. It has no key, so that it
//! cannot sign a program, and no program: firewalls fetch it themselves.

use control_convert::{parse, required, time};
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state};
use control_state::{self as state, RemoveFirewallRelease, Reply, SetFirewallRelease};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::firewall_release_service_server::FirewallReleaseService;
use proto_release::ReleaseVersion;
use tonic::{Request, Status};
use url::Url;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl FirewallReleaseService for Services {
    async fn get(
        &self,
        request: Request<mesh::FirewallReleaseServiceGetRequest>,
    ) -> ApiResult<mesh::FirewallReleaseServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let found = self.gate.read(&caller, |tables| {
            let site = state::FirewallRelease::SITE.to_owned();
            Ok(tables.get::<state::FirewallRelease>(&site).cloned())
        });
        let release = found.await?.map(|release| shown(&release));
        ok(mesh::FirewallReleaseServiceGetResponse { release })
    }

    async fn set(
        &self,
        request: Request<mesh::FirewallReleaseServiceSetRequest>,
    ) -> ApiResult<mesh::FirewallReleaseServiceSetResponse> {
        let caller = Caller::of(&request)?;
        let wanted = required("release", request.into_inner().release)?;
        let reply = self.gate.propose(&caller, command(&wanted)?).await?;
        let set = reply.firewall_release().map_err(of_state)?;
        ok(mesh::FirewallReleaseServiceSetResponse {
            release: Some(shown(&set)),
        })
    }

    async fn remove(
        &self,
        request: Request<mesh::FirewallReleaseServiceRemoveRequest>,
    ) -> ApiResult<mesh::FirewallReleaseServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let reply = self.gate.propose(&caller, RemoveFirewallRelease {}).await?;
        let release = match reply {
            Reply::None => None,
            reply => {
                let removed = reply.firewall_release().map_err(of_state)?;
                Some(shown(&removed))
            }
        };
        ok(mesh::FirewallReleaseServiceRemoveResponse { release })
    }
}

/// The command for a wanted release.
///
/// # Errors
/// `invalid_argument` with the field.
fn command(wanted: &mesh::FirewallRelease) -> Result<SetFirewallRelease, Status> {
    let version: ReleaseVersion = wanted
        .version
        .parse()
        .map_err(|_| invalid("release.version", "must be a version such as 1.3.0"))?;
    check_url(&wanted.url)?;
    Ok(SetFirewallRelease {
        version: version.to_string(),
        url: wanted.url.clone(),
        head_digest: parse("release.head_digest", &wanted.head_digest)?,
    })
}

/// Refuses a URL that no agent would fetch, and one with a secret, which every agent and the audit
/// trail would have.
pub(super) fn check_url(text: &str) -> Result<(), Status> {
    let url = Url::parse(text).ok().filter(|url| {
        let has_host = url.host_str().is_some_and(|host| !host.is_empty());
        url.scheme() == "https" && has_host
    });
    let Some(url) = url else {
        return Err(invalid("release.url", "must be https://HOST/PATH"));
    };
    if !url.username().is_empty() || url.password().is_some() {
        let rule = "must have no user name and no password, which every agent would get";
        return Err(invalid("release.url", rule));
    }
    Ok(())
}

fn shown(release: &state::FirewallRelease) -> mesh::FirewallRelease {
    mesh::FirewallRelease {
        version: release.version.clone(),
        url: release.url.clone(),
        head_digest: release.head_digest.to_string(),
        set_by: release.set_by.clone(),
        set_at: time(release.set_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(version: &str, url: &str, digest: &str) -> mesh::FirewallRelease {
        mesh::FirewallRelease {
            version: version.to_owned(),
            url: url.to_owned(),
            head_digest: digest.to_owned(),
            ..mesh::FirewallRelease::default()
        }
    }

    #[test]
    fn a_release_has_a_version_a_public_place_and_a_digest() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let url = "https://releases.example.com/metalmesh-firewall-1.3.0-x86_64.release";
        let command = command(&wanted("v1.3.0", url, &digest)).unwrap();
        assert_eq!(
            (command.version.as_str(), command.url.as_str()),
            ("1.3.0", url)
        );
        assert_eq!(command.head_digest.to_string(), digest);
    }

    #[test]
    fn a_wrong_field_is_named() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let url = "https://releases.example.com/x";
        for (version, url, digest, field) in [
            ("", url, digest.as_str(), "release.version"),
            ("latest", url, digest.as_str(), "release.version"),
            ("1.3.0+build", url, digest.as_str(), "release.version"),
            ("1.3.0", "", digest.as_str(), "release.url"),
            ("1.3.0", "/x", digest.as_str(), "release.url"),
            ("1.3.0", "http://h/x", digest.as_str(), "release.url"),
            ("1.3.0", "file:///x", digest.as_str(), "release.url"),
            ("1.3.0", "https://", digest.as_str(), "release.url"),
            ("1.3.0", "https://u@h/x", digest.as_str(), "release.url"),
            ("1.3.0", "https://u:p@h/x", digest.as_str(), "release.url"),
            ("1.3.0", url, "", "release.head_digest"),
            ("1.3.0", url, "sha256:ab", "release.head_digest"),
        ] {
            let refused = command(&wanted(version, url, digest)).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::InvalidArgument);
            assert!(refused.message().contains(field), "{field}: {refused}");
        }
    }
}
