//! The tenant of the filled directory with its projects and networks.

use anyhow::Result;
use control_state::{
    ChildLength, CreateChildNetwork, CreateNetwork, CreateProject, CreateTenant, NetworkType,
};
use control_store::Store;

use super::{HALL, PROJECTS, TENANT, each, network, project, propose};

/// A tenant with projects, whose networks come out of one large one.
pub(super) async fn tenant(store: &Store, networks: u32) -> Result<()> {
    let op = CreateTenant {
        login: TENANT.parse()?,
        name: TENANT.to_owned(),
        email: String::new(),
        description: String::new(),
        avatar_url: String::new(),
        labels: Default::default(),
        owner: Some(TENANT.parse()?),
    };
    propose(store, op).await?;
    for number in 0..PROJECTS {
        let op = CreateProject {
            id: project(number),
            tenant: TENANT.parse()?,
            name: format!("project-{number}"),
            description: String::new(),
            avatar_url: None,
            labels: Default::default(),
            owner: None,
        };
        propose(store, op).await?;
    }
    let large = CreateNetwork {
        id: "large".parse()?,
        kind: NetworkType::Super,
        name: None,
        description: None,
        partition: Some(HALL.parse()?),
        project: None,
        labels: Default::default(),
        prefixes: vec!["10.0.0.0/8".parse()?],
        destination_prefixes: Vec::new(),
        default_child_length: ChildLength {
            v4: Some(22),
            v6: None,
        },
        min_child_length: ChildLength::default(),
        nat: None,
        vrf: None,
        parent: None,
        additional_announcable_cidrs: Vec::new(),
        length: ChildLength::default(),
        family: None,
    };
    propose(store, large).await?;
    each(store, networks, child).await
}

async fn child(store: Store, number: u32) -> Result<()> {
    let op = CreateChildNetwork {
        id: network(number).parse()?,
        project: project(number % PROJECTS),
        name: None,
        description: None,
        labels: Default::default(),
        partition: Some(HALL.parse()?),
        parent: None,
        length: ChildLength::default(),
        family: None,
    };
    propose(&store, op).await.map(drop)
}
