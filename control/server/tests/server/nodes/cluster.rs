//! A cluster of node processes, and what an operator does with it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use control_client::{Client, ServerContexts};
use proto_public::admin::v2::ProjectServiceListRequest;
use proto_public::api::v2::{ProjectServiceCreateRequest, ProjectServiceGetRequest};
use proto_public::metalmesh::admin::v1::{
    Budgets, ClusterServiceInviteRequest, ClusterServicePromoteRequest,
    ClusterServiceRemoveRequest, ClusterServiceStatusRequest, ClusterServiceStatusResponse,
    ClusterServiceTransferLeaderRequest, Node as NodeInfo, Settings as ClusterSettings,
    SettingsServiceSetRequest,
};
use tonic::{Code, Status};

use super::{Node, TENANT};
use crate::daemon::{PATIENCE, POLL};

/// Nodes and the admin's token.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) token: String,
}

pub(crate) async fn eventually<T, F: Future<Output = Result<T, String>>>(
    what: &str,
    mut attempt: impl FnMut() -> F,
) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(why) => assert!(Instant::now() < until, "no {what}: {why}"),
        }
        tokio::time::sleep(POLL).await;
    }
}

impl Cluster {
    /// One node that leads itself.
    pub(crate) fn form(dir: &Path) -> Self {
        Self::form_with(dir, "")
    }

    pub(crate) fn form_with(dir: &Path, more: &str) -> Self {
        Self::form_of(Node::new(dir.join("1"), false, more))
    }

    /// The same of a node that is configured already.
    pub(crate) fn form_of(mut first: Node) -> Self {
        let made = first.init();
        assert!(made.status.success(), "{made:?}");
        let contexts = ServerContexts::load(&first.dir.join("context.yaml")).unwrap();
        let token = contexts.current().unwrap().api_token.as_ref().unwrap();
        let token = token.expose().to_owned();
        first.start();
        first.wait_said("ready ");
        Self::of(first, token)
    }

    /// One that runs, and its admin's token.
    pub(crate) fn of(first: Node, token: String) -> Self {
        Self {
            nodes: vec![first],
            token,
        }
    }

    pub(crate) fn client(&self, at: usize) -> Client {
        self.nodes[at].client(&self.token)
    }

    pub(crate) async fn invite(&self, at: usize, key: &str) -> Result<(u64, String), Status> {
        let request = ClusterServiceInviteRequest {
            key_sha256: key.to_owned(),
            minutes: 5,
            ..Default::default()
        };
        let answer = self
            .client(at)
            .clusters()
            .invite(request)
            .await?
            .into_inner();
        Ok((answer.node.unwrap().id, answer.secret))
    }

    /// Joins another node, asked for at node `at`, and gives it a vote.
    pub(crate) async fn join(&mut self, dir: &Path, at: usize) -> u64 {
        let id = self.learn(Node::new(dir.to_owned(), true, ""), at).await;
        self.promote(id).await;
        id
    }

    /// Joins another node, asked for at node `at`; it has no vote.
    pub(crate) async fn learn(&mut self, mut node: Node, at: usize) -> u64 {
        node.start();
        let (id, ticket) = self.invite(at, &node.key()).await.unwrap();
        node.give_ticket(&ticket);
        node.wait_said("ready ");
        self.nodes.push(node);
        id
    }

    pub(crate) async fn promote(&self, id: u64) {
        eventually("promotion", || async {
            let request = ClusterServicePromoteRequest { id };
            let done = self.client(0).clusters().promote(request).await;
            done.map(drop).map_err(|e| e.to_string())
        })
        .await;
    }

    pub(crate) async fn status(&self, at: usize) -> ClusterServiceStatusResponse {
        let request = ClusterServiceStatusRequest { all: true };
        eventually("status", || async {
            let status = self.client(at).clusters().status(request).await;
            status
                .map(tonic::Response::into_inner)
                .map_err(|e| e.to_string())
        })
        .await
    }

    /// The status at node `at`, as soon as it says that `voters` may still fail: a leader hears its
    /// followers with its first heartbeats.
    pub(crate) async fn may_fail(&self, at: usize, voters: u32) -> ClusterServiceStatusResponse {
        eventually("number of voters that may fail", || async {
            let status = self.status(at).await;
            match status.may_fail {
                may_fail if may_fail == voters => Ok(status),
                may_fail => Err(format!("{may_fail} may fail: {status:?}")),
            }
        })
        .await
    }

    pub(crate) async fn node(&self, at: usize, id: u64) -> NodeInfo {
        let status = self.status(at).await;
        status.nodes.into_iter().find(|n| n.id == id).unwrap()
    }

    pub(crate) async fn write(&self, at: usize, name: &str) -> Result<String, Status> {
        let request = ProjectServiceCreateRequest {
            login: TENANT.to_owned(),
            name: name.to_owned(),
            ..Default::default()
        };
        let answer = self.client(at).projects().create(request).await?;
        Ok(answer.into_inner().project.unwrap().uuid)
    }

    /// Writes for certain: what a change of leaders left in doubt is looked at again.
    pub(crate) async fn wrote(&self, at: usize, name: &str) {
        eventually("write", || async {
            match self.write(at, name).await {
                Err(status) if status.code() == Code::AlreadyExists => Ok(()),
                other => other.map(drop).map_err(|e| e.to_string()),
            }
        })
        .await;
    }

    pub(crate) async fn reads(&self, at: usize, id: &str) -> Result<(), Status> {
        let request = ProjectServiceGetRequest {
            project: id.to_owned(),
        };
        self.client(at).projects().get(request).await.map(drop)
    }

    /// Names of all projects, as a node sees them now.
    pub(crate) async fn projects(&self, at: usize) -> BTreeSet<String> {
        let all = eventually("list of projects", || async {
            let request = ProjectServiceListRequest { query: None };
            let listed = self.client(at).admin_projects().list(request).await;
            listed
                .map(tonic::Response::into_inner)
                .map_err(|e| e.to_string())
        });
        all.await.projects.into_iter().map(|it| it.name).collect()
    }

    pub(crate) async fn remove(&self, at: usize, id: u64, dry_run: bool) -> Result<(), Status> {
        let request = ClusterServiceRemoveRequest { id, dry_run };
        self.client(at).clusters().remove(request).await.map(drop)
    }

    /// Hands leadership over, and waits until node `at` has heard of it.
    pub(crate) async fn lead(&self, at: usize, id: u64) {
        let request = ClusterServiceTransferLeaderRequest { id };
        let moved = self.client(at).clusters().transfer_leader(request).await;
        moved.unwrap();
        // The node that was asked may hear of it a moment later.
        eventually("new leader", || async {
            match self.status(at).await.leader {
                leader if leader == id => Ok(()),
                other => Err(format!("node {other} leads")),
            }
        })
        .await;
    }

    /// Lets a tenant have more projects than it may by default.
    pub(crate) async fn allow_projects(&self, projects: u32) {
        let budgets = Budgets {
            projects_per_tenant: Some(projects),
            ..Default::default()
        };
        let request = SettingsServiceSetRequest {
            settings: Some(ClusterSettings {
                budgets: Some(budgets),
                ..Default::default()
            }),
        };
        self.client(0).settings().set(request).await.unwrap();
    }
}
