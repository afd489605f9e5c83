//! Sizes: which images they take, and that no two of them fit the same machine.

use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tonic::Code;

use crate::node::{Node, debian};

#[tokio::test(flavor = "multi_thread")]
async fn a_size_takes_the_images_that_it_is_said_to() {
    let node = Node::start().await;
    node.data_centre().await;
    let mut constraints =
        admin::size_image_constraint_service_client::SizeImageConstraintServiceClient::new(
            node.as_admin(),
        );
    let mut anyone =
        api::size_image_constraint_service_client::SizeImageConstraintServiceClient::new(
            node.as_admin(),
        );
    let attempt = |image: &str| api::SizeImageConstraintServiceTryRequest {
        size: "small".into(),
        image: image.to_owned(),
    };
    let image = debian().id;
    let nothing = anyone.r#try(attempt(&image)).await.unwrap_err();
    assert_eq!(nothing.code(), Code::NotFound, "{nothing}");

    let os = image.split('-').next().unwrap();
    let allowed = |versions: &str| {
        vec![api::ImageConstraint {
            image: os.to_owned(),
            semver_match: versions.to_owned(),
        }]
    };
    let create = |versions: &str| admin::SizeImageConstraintServiceCreateRequest {
        size: "small".into(),
        image_constraints: allowed(versions),
        name: Some("newer".into()),
        ..Default::default()
    };
    let nonsense = constraints.create(create("newest, please")).await;
    assert_eq!(nonsense.unwrap_err().code(), Code::InvalidArgument);
    let made = constraints.create(create(">= 99.0")).await.unwrap();
    let made = made.into_inner().size_image_constraint.unwrap();
    let absent = anyone.r#try(attempt("debian-99.0.20990101")).await;
    assert_eq!(absent.unwrap_err().code(), Code::NotFound);
    let refused = anyone.r#try(attempt(&image)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains(">= 99.0"), "{refused}");

    let update = admin::SizeImageConstraintServiceUpdateRequest {
        size: "small".into(),
        update_meta: Some(api::UpdateMeta {
            updated_at: made.meta.unwrap().updated_at,
            locking_strategy: 1,
        }),
        image_constraints: allowed(">= 1.0"),
        ..Default::default()
    };
    constraints.update(update).await.unwrap();
    anyone.r#try(attempt(&image)).await.unwrap();
    let list = admin::SizeImageConstraintServiceListRequest {
        query: Some(api::SizeImageConstraintQuery {
            name: Some("newer".into()),
            ..Default::default()
        }),
    };
    let listed = constraints.list(list).await.unwrap().into_inner();
    assert_eq!(listed.size_image_constraints.len(), 1);
    let delete = admin::SizeImageConstraintServiceDeleteRequest {
        size: "small".into(),
    };
    constraints.delete(delete).await.unwrap();
    let get = admin::SizeImageConstraintServiceGetRequest {
        size: "small".into(),
    };
    let gone = constraints.get(get).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_overlap_whichever_is_first() {
    let disks = |globs: &[(&str, u64)]| -> Vec<api::SizeConstraint> {
        let constraint = |(glob, min): &(&str, u64)| api::SizeConstraint {
            r#type: api::SizeConstraintType::Storage.into(),
            min: *min,
            max: 9,
            identifier: Some((*glob).to_owned()),
        };
        globs.iter().map(constraint).collect()
    };
    let one = disks(&[("/dev/sd*", 1)]);
    let apart = disks(&[("/dev/sd*", 1), ("/dev/nvme*", 1)]);
    let meeting = disks(&[("/dev/sd*", 1), ("/dev/nvme*", 0)]);
    for (first, second, expected) in [
        (&one, &apart, Code::Ok),
        (&apart, &one, Code::Ok),
        (&one, &meeting, Code::InvalidArgument),
        (&meeting, &one, Code::InvalidArgument),
    ] {
        let node = Node::start().await;
        let mut sizes = admin::size_service_client::SizeServiceClient::new(node.as_admin());
        let create = |id: &str, constraints: &[api::SizeConstraint]| {
            let size = api::Size {
                id: id.to_owned(),
                constraints: constraints.to_vec(),
                ..Default::default()
            };
            admin::SizeServiceCreateRequest { size: Some(size) }
        };
        sizes.create(create("first", first)).await.unwrap();
        let second = sizes.create(create("second", second)).await;
        assert_eq!(second.map_or_else(|it| it.code(), |_| Code::Ok), expected);
        node.stop().await;
    }
}
