//! Calls of Ironic's REST API, of whichever server.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use uuid::Uuid;

use super::http::{Call, Client};

/// Class of the nodes, and of the allocations.
pub(crate) const RESOURCE_CLASS: &str = "small";
/// Rows of a page: as many as Ironic gives at most, and by default.
const PAGE: u32 = 1_000;
const API_VERSION: &str = "1.100";
/// How long an allocation may take.
const ALLOCATION_TIMEOUT: Duration = Duration::from_secs(600);
/// First pause before an allocation is looked at again; later ones are a tenth of the time that
/// went by, so that looking neither costs Ironic much nor adds much.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A server of Ironic's API.
#[derive(Clone, Debug)]
pub(crate) struct RestApi {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// Number of its nodes; they are counted from 1.
    pub(crate) nodes: u32,
    /// Id of a node, by its number. The server lists nodes in the order of their numbers.
    pub(crate) id_of: fn(u32) -> Uuid,
    /// Driver of nodes that are created.
    pub(crate) driver: &'static str,
    /// Token of an administrator. `None` means that the server asks for none.
    pub(crate) token: Option<HeaderValue>,
}

impl RestApi {
    /// A request; `Null` means that it has no body.
    pub(crate) fn request(&self, method: Method, path: &str, body: &Value) -> Call {
        let body = match body {
            Value::Null => Bytes::new(),
            body => body.to_string().into(),
        };
        let version = (
            HeaderName::from_static("x-openstack-ironic-api-version"),
            HeaderValue::from_static(API_VERSION),
        );
        let token = self.token.iter().map(|token| {
            let name = HeaderName::from_static("x-auth-token");
            (name, token.clone())
        });
        Call {
            method,
            path: path.to_owned(),
            headers: std::iter::once(version).chain(token).collect(),
            body,
        }
    }

    fn read(&self, path: &str) -> Call {
        self.request(Method::GET, path, &Value::Null)
    }

    /// The first 1,000 nodes, in the short form that is the default.
    pub(crate) fn list(&self) -> Call {
        self.read(&format!("/v1/nodes?limit={PAGE}"))
    }

    /// All nodes in the short form, page by page. The markers are known, so that no answer has to
    /// be read between two pages.
    pub(crate) fn list_all(&self) -> Vec<Call> {
        let next = (1..self.nodes.div_ceil(PAGE)).map(|page| {
            let marker = (self.id_of)(page * PAGE);
            self.read(&format!("/v1/nodes?limit={PAGE}&marker={marker}"))
        });
        std::iter::once(self.list()).chain(next).collect()
    }

    /// The first 1,000 with all that is known of each, which is what our own list answers.
    pub(crate) fn list_detail(&self) -> Call {
        self.read(&format!("/v1/nodes?limit={PAGE}&detail=True"))
    }

    pub(crate) fn get(&self, number: u32) -> Call {
        let node = (self.id_of)(number % self.nodes + 1);
        self.read(&format!("/v1/nodes/{node}"))
    }

    pub(crate) fn create(&self, number: u32) -> Call {
        self.create_as(&format!("new-{number}"), Uuid::now_v7())
    }

    pub(crate) fn create_as(&self, name: &str, uuid: Uuid) -> Call {
        let body = json!({
            "uuid": uuid, "name": name, "driver": self.driver,
            "resource_class": RESOURCE_CLASS, "driver_info": {"address": "bmc.example"},
            "properties": {"cpus": 64, "memory_mb": 524_288, "local_gb": 1920, "cpu_arch": "x86_64"},
            "extra": {"rack": "rack-1", "room": "room-1"},
        });
        self.request(Method::POST, "/v1/nodes", &body)
    }

    /// Asks for a node and looks until it is there.
    pub(crate) async fn allocate(&self, client: &mut Client, number: u32) -> Result<Duration> {
        let name = format!("machine-{number}");
        let body = json!({"name": name, "resource_class": RESOURCE_CLASS});
        let began = Instant::now();
        let create = self.request(Method::POST, "/v1/allocations", &body);
        let mut answer = client.json(&create).await?;
        let id = answer["uuid"].as_str().context("no uuid")?.to_owned();
        let look = self.read(&format!("/v1/allocations/{id}"));
        while answer["state"] == "allocating" {
            let waited = began.elapsed();
            ensure!(
                waited < ALLOCATION_TIMEOUT,
                "an allocation did not end in time"
            );
            tokio::time::sleep(LOOK_AGAIN.max(waited / 10)).await;
            answer = client.json(&look).await?;
        }
        ensure!(
            answer["state"] == "active",
            "an allocation failed: {}",
            answer["last_error"]
        );
        Ok(began.elapsed())
    }

    /// Deletes every allocation, so that all nodes are free again.
    pub(crate) async fn release_all(&self) -> Result<()> {
        let mut client = Client::new(self.address);
        let list = self.read("/v1/allocations");
        let held = ids(&client.json(&list).await?, "allocations")?;
        for id in held {
            let path = format!("/v1/allocations/{id}");
            let delete = self.request(Method::DELETE, &path, &Value::Null);
            client.call(&delete).await?;
        }
        let left = ids(&client.json(&list).await?, "allocations")?.len();
        ensure!(left == 0, "{left} allocations are left");
        Ok(())
    }

    /// The number of different nodes on the pages of the whole list. All must be available.
    pub(crate) async fn count_available(&self) -> Result<usize> {
        let mut client = Client::new(self.address);
        let mut seen = BTreeSet::new();
        for page in self.list_all() {
            let answer = client.json(&page).await?;
            seen.extend(ids(&answer, "nodes")?);
            let nodes = answer["nodes"].as_array().into_iter().flatten();
            for node in nodes {
                let state = &node["provision_state"];
                ensure!(state == "available", "a node is not available: {node}");
            }
        }
        Ok(seen.len())
    }
}

/// The ids of the objects of a list.
fn ids(answer: &Value, collection: &str) -> Result<Vec<String>> {
    let objects = answer[collection].as_array();
    let objects = objects.with_context(|| format!("no {collection} were answered"))?;
    let ids = objects.iter().map(|object| {
        let id = object["uuid"].as_str().map(str::to_owned);
        id.with_context(|| format!("an object of {collection} has no uuid"))
    });
    ids.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_begin_behind_the_last_node_of_the_one_before() {
        let api = |nodes: u32| RestApi {
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            nodes,
            id_of: |number| Uuid::from_u128(number.into()),
            driver: "metalmesh",
            token: None,
        };
        for (nodes, markers) in [
            (100, vec![]),
            (1_000, vec![]),
            (1_001, vec![1_000]),
            (3_000, vec![1_000, 2_000]),
        ] {
            let pages = api(nodes).list_all();
            let paths: Vec<String> = pages.into_iter().map(|page| page.path).collect();
            assert_eq!(paths.len(), markers.len() + 1, "{nodes}");
            for (path, marker) in paths.iter().skip(1).zip(markers) {
                let marker = Uuid::from_u128(marker);
                assert!(path.ends_with(&format!("marker={marker}")), "{path}");
            }
        }
    }
}
