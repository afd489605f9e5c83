//! Fetches of images: how long they may take, how many run at once, and who waits for them.

use std::time::Duration;

use control_api::FetchLimits;
use prost::Message as _;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tokio::task::JoinSet;
use tonic::Code;

use crate::image_site::*;
use crate::image_store::Served;
use crate::raw_http::post;

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_takes_too_long_is_given_up() {
    let limits = FetchLimits {
        whole: Duration::from_millis(300),
        ..FetchLimits::default()
    };
    let site = Site::start_with(limits).await;
    site.store.serve("/endless", Served::Endless);
    let refused = site.create(image(site.store.url("/endless"))).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert!(refused.message().contains("takes longer"), "{refused}");
    assert!(site.stored().await.is_none());
    site.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_goes_on_without_its_caller() {
    let site = Site::start().await;
    let store = &site.store;
    store.serve("/a.tar.zst", Served::Held(CONTENT.to_vec()));
    let wanted = image(store.url("/a.tar.zst"));
    let request = admin::ImageServiceCreateRequest {
        image: Some(wanted.clone()),
    };
    let bearer = format!("Bearer {}", site.node.admin);
    // The server alone has a deadline, so that its handler is gone when it answers.
    let headers = [
        ("content-type", "application/proto"),
        ("authorization", bearer.as_str()),
        ("connect-timeout-ms", "300"),
    ];
    let path = "/metalstack.admin.v2.ImageService/Create";
    let left = post(&site.node, path, &headers, request.encode_to_vec()).await;
    assert_eq!(left.json()["code"], "deadline_exceeded");
    store.asked_for("/a.tar.zst").await;
    store.open_gate();
    // Either it joins the fetch or gets the result that is kept.
    let made = site.create(wanted).await.unwrap();
    assert_eq!(pinned(&made), found(&sha256_of(CONTENT), "fetched"));
    let requests = store.take_requests();
    let reads = requests.iter().filter(|path| *path == "/a.tar.zst").count();
    assert_eq!(reads, 1, "{requests:?}");
    site.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_fetches_so_many_images_at_the_same_time() {
    let limits = FetchLimits {
        fetches: 1,
        ..FetchLimits::default()
    };
    let site = Site::start_with(limits).await;
    let store = &site.store;
    store.serve("/a.tar.zst", Served::Held(CONTENT.to_vec()));
    store.file("/b.tar.zst", CONTENT);
    let mut calls = JoinSet::new();
    let mut images = site.images.clone();
    let request = admin::ImageServiceCreateRequest {
        image: Some(image(store.url("/a.tar.zst"))),
    };
    calls.spawn(async move { images.create(request).await });
    store.asked_for("/a.tar.zst").await;
    let other = api::Image {
        id: "debian-12.0.2".into(),
        ..image(store.url("/b.tar.zst"))
    };
    let refused = site.create(other.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    store.open_gate();
    calls.join_next().await.unwrap().unwrap().unwrap();
    site.create(other).await.unwrap();
    site.node.stop().await;
}
