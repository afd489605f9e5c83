//! Get, then Update with the same content, changes nothing: neither the object nor its head.

use serde_json::{Map, Value, json};

use crate::networks::{admin, call, create, internet, namespaced, underlay};
use crate::node::Node;

/// Kinds whose updates have no labels in the contract.
const UNLABELLED: [&str; 3] = ["sizeImageConstraint", "filesystemLayout", "switch"];

/// How one kind of object is read and written.
struct Kind<'a> {
    /// Method that reads it, without the package's owner.
    get: &'a str,
    /// Method that changes it.
    update: &'a str,
    /// What names it in both requests.
    key: Value,
    /// The object's field in both answers.
    answer: &'a str,
    /// The object's fields that an update can say.
    fields: &'a [&'a str],
    /// Who calls; an administrator without it.
    token: Option<&'a str>,
}

impl Kind<'_> {
    async fn call(&self, node: &Node, method: &str, body: &Value) -> Value {
        let token = self.token.unwrap_or(&node.admin);
        let said = call(node, token, method, body.clone()).await;
        let said = said.unwrap_or_else(|code| panic!("{method} {body}: {code}"));
        said[self.answer].clone()
    }

    async fn get(&self, node: &Node) -> Value {
        self.call(node, self.get, &self.key).await
    }

    async fn update(&self, node: &Node, fields: Map<String, Value>) -> Value {
        let mut body = self.key.clone();
        body["updateMeta"] = json!({"lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER"});
        body.as_object_mut().unwrap().extend(fields);
        if self.update.starts_with("admin.") {
            // Administrators do not say whose it is.
            body.as_object_mut().unwrap().remove("project");
        }
        self.call(node, self.update, &body).await
    }

    /// Writes back what is read, alone and with a change beside it.
    async fn check(&self, node: &Node) {
        let before = self.get(node).await;
        let all = before.as_object().unwrap().iter();
        let mut same: Map<_, _> = all
            .filter(|(name, _)| self.fields.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let labels = before["meta"].get("labels").cloned();
        if !UNLABELLED.contains(&self.answer) {
            let labels = labels.unwrap_or_else(|| json!({}));
            same.insert("labels".into(), json!({"replace": labels}));
        }
        // Of a reservation the contract wants the partitions in each update.
        if self.answer != "sizeReservation" {
            let after = self.update(node, Map::new()).await;
            assert_eq!(after, before, "{}", self.update);
        }
        assert_eq!(
            self.update(node, same.clone()).await,
            before,
            "{}",
            self.update
        );
        assert_eq!(self.get(node).await, before, "{}", self.update);
        let another = format!("not {}", before["description"]);
        same.insert("description".into(), another.as_str().into());
        let after = self.update(node, same).await;
        let generation = |object: &Value| object["meta"]["generation"].as_str().map(str::to_owned);
        assert_eq!(after["description"], another.as_str(), "{}", self.update);
        assert_ne!(generation(&after), generation(&before), "{}", self.update);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_and_addresses() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let child = node.network(&token, &project).await;
    for made in [underlay(), internet(), namespaced()] {
        create(&node, made).await.unwrap();
    }
    for id in ["super", "underlay", "internet", "spaces", child.as_str()] {
        let of_admin = Kind {
            get: "admin.v2.NetworkService/Get",
            update: "admin.v2.NetworkService/Update",
            key: json!({"id": id}),
            answer: "network",
            fields: &[
                "name",
                "prefixes",
                "destinationPrefixes",
                "defaultChildPrefixLength",
                "minChildPrefixLength",
                "natType",
                "additionalAnnouncableCidrs",
            ],
            token: None,
        };
        of_admin.check(&node).await;
    }
    let own = Kind {
        get: "api.v2.NetworkService/Get",
        update: "api.v2.NetworkService/Update",
        key: json!({"id": child, "project": project}),
        answer: "network",
        fields: &["name"],
        token: Some(&token),
    };
    own.check(&node).await;
    let wanted = json!({"network": child, "project": project, "name": "vip"});
    let made = call(&node, &token, "api.v2.IPService/Create", wanted).await;
    let address = Kind {
        get: "api.v2.IPService/Get",
        update: "api.v2.IPService/Update",
        key: json!({"ip": made.unwrap()["ip"]["ip"], "project": project}),
        answer: "ip",
        fields: &["name", "type"],
        token: Some(&token),
    };
    address.check(&node).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_projects_and_tokens() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let user = node.login("acme").await;
    let rights = json!({"description": "of CI", "adminRole": "ADMIN_ROLE_VIEWER",
        "infraRole": "INFRA_ROLE_EDITOR", "projectRoles": {&project: "PROJECT_ROLE_EDITOR"},
        "expires": "3600s"});
    let made = admin(&node, "api.v2.TokenService/Create", rights).await;
    let token = made.unwrap()["token"]["uuid"].clone();
    for kind in [
        Kind {
            get: "api.v2.TenantService/Get",
            update: "api.v2.TenantService/Update",
            key: json!({"login": "acme"}),
            answer: "tenant",
            fields: &["name", "email", "avatarUrl"],
            token: Some(&user),
        },
        Kind {
            get: "api.v2.ProjectService/Get",
            update: "api.v2.ProjectService/Update",
            key: json!({"project": project}),
            answer: "project",
            fields: &["name", "avatarUrl"],
            token: Some(&user),
        },
        Kind {
            get: "api.v2.TokenService/Get",
            update: "api.v2.TokenService/Update",
            key: json!({"uuid": token}),
            answer: "token",
            fields: &["adminRole", "infraRole", "projectRoles", "tenantRoles"],
            token: None,
        },
    ] {
        kind.check(&node).await;
    }
    node.stop().await;
}

/// A kind of the catalogue, which administrators keep.
fn catalogued<'a>(service: [&'a str; 2], key: Value, answer: &'a str) -> Kind<'a> {
    Kind {
        get: service[0],
        update: service[1],
        key,
        answer,
        fields: &[],
        token: None,
    }
}

/// Makes a layout, a constraint and a reservation; returns the reservation's id.
async fn fill_catalogue(node: &Node, project: &str) -> Value {
    let layout = json!({"filesystemLayout": {"id": "cut",
        "constraints": {"sizes": ["small"], "images": {"debian": ">= 12.0"}},
        "disks": [{"device": "/dev/vda", "partitions": [
            {"number": 1, "gptType": "GPT_TYPE_LINUX", "label": "root"}]}],
        "filesystems": [{"device": "/dev/vda1", "format": "FORMAT_EXT4", "path": "/"}]}});
    admin(node, "admin.v2.FilesystemService/Create", layout)
        .await
        .unwrap();
    let only = json!({"size": "small",
        "imageConstraints": [{"image": "debian", "semverMatch": ">= 12.0"}]});
    admin(node, "admin.v2.SizeImageConstraintService/Create", only)
        .await
        .unwrap();
    let reserved = json!({"sizeReservation": {"name": "launch", "project": project,
        "size": "small", "partitions": ["lab"], "amount": 2}});
    let reserved = admin(node, "admin.v2.SizeReservationService/Create", reserved).await;
    reserved.unwrap()["sizeReservation"]["id"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, _) = node.tenant("acme").await;
    let reservation = fill_catalogue(&node, &project).await;
    let mut reserved = catalogued(
        [
            "api.v2.SizeReservationService/Get",
            "admin.v2.SizeReservationService/Update",
        ],
        json!({"id": reservation}),
        "sizeReservation",
    );
    reserved.fields = &["name", "partitions", "amount"];
    let mut size = catalogued(
        ["api.v2.SizeService/Get", "admin.v2.SizeService/Update"],
        json!({"id": "small"}),
        "size",
    );
    size.fields = &["name", "constraints"];
    let mut image = catalogued(
        ["api.v2.ImageService/Get", "admin.v2.ImageService/Update"],
        json!({"id": crate::node::debian().id}),
        "image",
    );
    image.fields = &["url", "name", "features", "classification", "expiresAt"];
    let mut layout = catalogued(
        [
            "api.v2.FilesystemService/Get",
            "admin.v2.FilesystemService/Update",
        ],
        json!({"id": "cut"}),
        "filesystemLayout",
    );
    layout.fields = &[
        "name",
        "filesystems",
        "disks",
        "raid",
        "volumeGroups",
        "logicalVolumes",
        "constraints",
    ];
    let mut only = catalogued(
        [
            "admin.v2.SizeImageConstraintService/Get",
            "admin.v2.SizeImageConstraintService/Update",
        ],
        json!({"size": "small"}),
        "sizeImageConstraint",
    );
    only.fields = &["name", "imageConstraints"];
    let mut partition = catalogued(
        [
            "api.v2.PartitionService/Get",
            "admin.v2.PartitionService/Update",
        ],
        json!({"id": "lab"}),
        "partition",
    );
    partition.fields = &[
        "bootConfiguration",
        "dnsServers",
        "ntpServers",
        "mgmtServiceAddresses",
    ];
    let mut switch = catalogued(
        [
            "admin.v2.SwitchService/Get",
            "admin.v2.SwitchService/Update",
        ],
        json!({"id": "leaf1"}),
        "switch",
    );
    switch.fields = &[
        "replaceMode",
        "managementIp",
        "managementUser",
        "consoleCommand",
    ];
    // A reservation is read with its project and written without.
    reserved.key["project"] = project.into();
    for kind in [size, image, layout, only, partition, switch, reserved] {
        kind.check(&node).await;
    }
    node.stop().await;
}
