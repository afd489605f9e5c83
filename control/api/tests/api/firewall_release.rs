//! The release of the firewalls' agent: administrators alone name it, and each change is recorded.

use control_state::{AuditEntry, FirewallRelease};
use mesh::firewall_release_service_client::FirewallReleaseServiceClient;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::Code;

use crate::node::Node;

fn wanted(version: &str) -> mesh::FirewallReleaseServiceSetRequest {
    mesh::FirewallReleaseServiceSetRequest {
        release: Some(mesh::FirewallRelease {
            version: version.to_owned(),
            url: "https://releases.example.com/metalmesh-firewall.release".to_owned(),
            head_digest: format!("sha256:{}", "ab".repeat(32)),
            // Neither is a caller's to say.
            set_by: "somebody".to_owned(),
            set_at: None,
        }),
    }
}

/// Number of records of a method's calls.
fn records(node: &Node, method: &str) -> usize {
    let path = format!("metalmesh.admin.v1.FirewallReleaseService/{method}");
    let read = node.store.read_local(|tables| {
        let records = tables.all::<AuditEntry>();
        records
            .filter(|record| record.method.ends_with(&path))
            .count()
    });
    read.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_names_the_release_of_firewalls() {
    let node = Node::start().await;
    let (_, token) = node.tenant("acme").await;
    let mut tenant = FirewallReleaseServiceClient::new(node.wire(Some(&token)));
    let mut admin = FirewallReleaseServiceClient::new(node.as_admin());
    let get = || mesh::FirewallReleaseServiceGetRequest {};
    let remove = || mesh::FirewallReleaseServiceRemoveRequest {};
    for refused in [
        tenant.set(wanted("1.3.0")).await.unwrap_err(),
        tenant.get(get()).await.unwrap_err(),
        tenant.remove(remove()).await.unwrap_err(),
    ] {
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    }
    assert_eq!(admin.get(get()).await.unwrap().into_inner().release, None);

    let refused = admin.set(wanted("latest")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("release.version"), "{refused}");
    let set = admin.set(wanted("v1.3.0")).await.unwrap().into_inner();
    let set = set.release.unwrap();
    assert_eq!(set.version, "1.3.0");
    assert!(
        set.set_by != "somebody" && !set.set_by.is_empty(),
        "{set:?}"
    );
    assert!(set.set_at.is_some());
    let got = admin.get(get()).await.unwrap().into_inner().release;
    assert_eq!(got, Some(set.clone()));
    assert!(records(&node, "Set") >= 1);

    let gone = admin.remove(remove()).await.unwrap().into_inner().release;
    assert_eq!(gone, Some(set));
    let gone = admin.remove(remove()).await.unwrap().into_inner().release;
    assert_eq!(gone, None, "once more");
    assert!(records(&node, "Remove") >= 1);
    let kept = node
        .store
        .read_local(|tables| tables.all::<FirewallRelease>().count());
    assert_eq!(kept.unwrap(), 0);
    node.stop().await;
}
