//! Images whose callers give no digest, as published clients do: control finds it.

use std::time::Duration;

use admin::image_service_client::ImageServiceClient;
use control_api::FetchLimits;
use control_state::{CreateImage, Image, Meta};
use md5::{Digest as _, Md5};
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tests_support::objects;
use tokio::task::JoinSet;
use tonic::Code;

use crate::image_site::*;
use crate::image_store::{ImageStore, Served};
use crate::node::{debian, wanted_machine};
use crate::raw_http::post;

#[tokio::test(flavor = "multi_thread")]
async fn a_published_digest_is_pinned_and_the_image_is_not_read() {
    let site = Site::start().await;
    let (sha256, sha512) = ("ab".repeat(32), "cd".repeat(64));
    site.store.file("/a.tar.zst", CONTENT);
    let others = format!("{}  b.tar.zst\n{sha256}  a.tar.zst\n", "00".repeat(32));
    site.store.file("/a.tar.zst.sha256", others);
    let made = site
        .create(image(site.store.url("/a.tar.zst")))
        .await
        .unwrap();
    assert_eq!(
        pinned(&made),
        found(&format!("sha256:{sha256}"), "published")
    );
    assert_eq!(pinned(&site.stored().await.unwrap()), pinned(&made));
    assert_eq!(site.store.take_requests(), ["/a.tar.zst.sha256"]);
    site.forget().await;

    site.store.file("/b.tar.zst.sha512", format!("{sha512}\n"));
    let made = site
        .create(image(site.store.url("/b.tar.zst")))
        .await
        .unwrap();
    assert_eq!(
        pinned(&made),
        found(&format!("sha512:{sha512}"), "published")
    );
    let asked = ["/b.tar.zst.sha256", "/b.tar.zst.sha512"];
    assert_eq!(site.store.take_requests(), asked);
    site.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_a_published_digest_is_read() {
    let site = Site::start().await;
    let md5 = hex(&Md5::digest(CONTENT));
    site.store.file("/a.tar.zst", CONTENT);
    // Neither a page for people nor a digest of another file is one of this image.
    site.store
        .file("/a.tar.zst.sha256", "<html>nothing here</html>");
    let other = format!("{}  other.tar.zst\n", "00".repeat(64));
    site.store.file("/a.tar.zst.sha512", other);
    for (published, source) in [
        (None, "fetched"),
        (Some(format!("{md5}  a.tar.zst\n")), "fetched, md5 agrees"),
    ] {
        if let Some(published) = published {
            site.store.file("/a.tar.zst.md5", published);
        }
        let made = site
            .create(image(site.store.url("/a.tar.zst")))
            .await
            .unwrap();
        assert_eq!(pinned(&made), found(&sha256_of(CONTENT), source));
        site.forget().await;
    }
    // Where it is now is not what counts.
    let to = site.store.url("/a.tar.zst");
    site.store.serve("/moved.tar.zst", Served::Redirect(to));
    let made = site
        .create(image(site.store.url("/moved.tar.zst")))
        .await
        .unwrap();
    assert_eq!(pinned(&made), found(&sha256_of(CONTENT), "fetched"));
    site.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_with_another_md5_than_the_published_one_is_refused() {
    let site = Site::start().await;
    site.store.file("/a.tar.zst", CONTENT);
    site.store.file("/a.tar.zst.md5", "00".repeat(16));
    let refused = site.create(image(site.store.url("/a.tar.zst"))).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert!(refused.message().contains("MD5"), "{refused}");
    assert!(site.stored().await.is_none());
    site.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_whose_digest_cannot_be_found_is_refused() {
    let limits = FetchLimits {
        image_bytes_max: 1 << 20,
        stall: Duration::from_millis(200),
        ..FetchLimits::default()
    };
    let site = Site::start_with(limits).await;
    let store = &site.store;
    let closed = {
        let gone = ImageStore::start().await;
        gone.url("/a.tar.zst")
    };
    store.serve("/promised", Served::Promise((1 << 20) + 1));
    store.serve("/endless", Served::Endless);
    store.serve("/silent", Served::Promise(10));
    store.serve("/broken", Served::Status(500));
    store.serve("/empty", Served::File(Vec::new()));
    store.serve("/loop", Served::Redirect(store.url("/loop")));
    store.serve("/away", Served::Redirect("ftp://127.0.0.1/a".into()));
    for (url, why) in [
        (closed, "cannot be reached"),
        (store.url_with_password("/absent"), "answers 404"),
        (store.url("/broken"), "answers 500"),
        (store.url("/promised"), "longer than 1048576 bytes"),
        (store.url("/endless"), "longer than 1048576 bytes"),
        (store.url("/silent"), "silent"),
        (store.url("/empty"), "empty"),
        (store.url("/loop"), "redirected"),
        (store.url("/away"), "redirected"),
    ] {
        let refused = site.create(image(url.clone())).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        let text = format!(
            "{} {}",
            refused.message(),
            String::from_utf8_lossy(refused.details())
        );
        for part in [
            "MM-1308",
            ID,
            "url",
            why,
            "set the label metalmesh.dev/digest",
        ] {
            assert!(text.contains(part), "{url} {part}: {text}");
        }
        for secret in ["hunter2", "inside matter"] {
            assert!(!text.contains(secret), "{url}: {text}");
        }
    }
    let refused = site.create(image("ftp://127.0.0.1/a".into())).await;
    let refused = refused.unwrap_err();
    assert!(refused.message().contains("http or https"), "{refused}");
    assert!(site.stored().await.is_none());
    site.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_fetched_for_a_given_digest_or_a_refused_call() {
    let site = Site::start().await;
    let url = site.store.url("/a.tar.zst");
    let given = api::Image {
        url: url.clone(),
        ..debian()
    };
    let made = site.create(given).await.unwrap();
    assert_eq!(pinned(&made).1, None);
    let twice = site.create(image(url.clone())).await.unwrap_err();
    assert_eq!(twice.code(), Code::AlreadyExists);
    let bad = api::Image {
        id: "debian".into(),
        ..image(url.clone())
    };
    let bad = site.create(bad).await.unwrap_err();
    assert!(bad.message().starts_with("MM-1301"), "{bad}");
    let viewer = api::TokenServiceCreateRequest {
        admin_role: Some(api::AdminRole::Viewer.into()),
        ..Default::default()
    };
    let (_, viewer) = site.node.token_of("metal-stack", viewer).await;
    let request = admin::ImageServiceCreateRequest {
        image: Some(image(url)),
    };
    let mut images = ImageServiceClient::new(site.node.wire(Some(&viewer)));
    let refused = images.create(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert_eq!(site.store.take_requests(), [""; 0]);
    site.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digest_does_not_outlive_its_url() {
    let site = Site::start().await;
    let store = &site.store;
    let (first, second) = (sha256_of(b"first"), sha256_of(b"second"));
    store.file("/1.tar.zst", "first");
    store.file("/2.tar.zst", "second");
    let (url_1, url_2) = (store.url("/1.tar.zst"), store.url("/2.tar.zst"));
    site.create(image(url_1.clone())).await.unwrap();
    let changed = site.update(Some(url_2.clone()), None).await.unwrap();
    assert_eq!(pinned(&changed), found(&second, "fetched"));
    // A client that writes back all labels that it read.
    let old = [
        (DIGEST, second.as_str()),
        (SOURCE, "fetched"),
        ("team", "a"),
    ];
    let changed = site.update(Some(url_1.clone()), replace(&old)).await;
    let changed = changed.unwrap();
    assert_eq!(pinned(&changed), found(&first, "fetched"));
    let labels = changed.meta.unwrap().labels.unwrap().labels;
    assert_eq!(labels.get("team").map(String::as_str), Some("a"));
    // A URL that has no digest changes nothing.
    let gone = site.update(Some(store.url("/3.tar.zst")), None).await;
    assert_eq!(gone.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(site.stored().await.unwrap().url, url_1);

    // The same URL, and labels of a client that knows of no digest.
    store.take_requests();
    let same = site.update(Some(url_1.clone()), replace(&[("team", "b")]));
    assert_eq!(pinned(&same.await.unwrap()), found(&first, "fetched"));
    // A digest that the caller gives.
    let given = sha256_of(b"given");
    let changed = site
        .update(Some(url_2), patch(&[(DIGEST, &given)], &[]))
        .await;
    assert_eq!(pinned(&changed.unwrap()), (Some(given), None));
    assert_eq!(store.take_requests(), [""; 0]);
    // Without its label the digest is looked for again.
    let changed = site.update(None, patch(&[], &[DIGEST])).await.unwrap();
    assert_eq!(pinned(&changed), found(&second, "fetched"));
    site.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_gets_an_image_whose_digest_control_found() {
    let site = Site::start().await;
    let (node, store) = (&site.node, &site.store);
    store.file("/a.tar.zst", CONTENT);
    node.data_centre().await;
    site.forget().await;
    // As earlier versions stored it.
    let bare = Image {
        meta: Meta::default(),
        url: store.url("/a.tar.zst"),
        ..objects::image(ID)
    };
    node.hardware(CreateImage(bare)).await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    node.waiting_machine(1).await;
    let wire = node.wire(Some(&token));
    let mut machines = api::machine_service_client::MachineServiceClient::new(wire);
    let wanted = wanted_machine(&project, &network, "web-1");
    let refused = machines.create(wanted.clone()).await.unwrap_err();
    assert!(refused.message().starts_with("MM-1303"), "{refused}");
    let details = String::from_utf8_lossy(refused.details()).into_owned();
    assert!(details.contains("image update"), "{details}");

    let url = Some(store.url("/a.tar.zst"));
    let changed = site.update(url, None).await.unwrap();
    assert_eq!(pinned(&changed), found(&sha256_of(CONTENT), "fetched"));
    let made = machines.create(wanted).await.unwrap().into_inner();
    let image = made.machine.unwrap().allocation.unwrap().image.unwrap();
    assert_eq!(pinned(&image), found(&sha256_of(CONTENT), "fetched"));
    site.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_revoked_during_a_fetch_makes_no_image() {
    let site = Site::start().await;
    let (node, store) = (&site.node, &site.store);
    store.serve("/a.tar.zst", Served::Held(CONTENT.to_vec()));
    let editor = api::TokenServiceCreateRequest {
        admin_role: Some(api::AdminRole::Editor.into()),
        ..Default::default()
    };
    let (id, secret) = node.token_of("metal-stack", editor).await;
    let mut images = ImageServiceClient::new(node.wire(Some(&secret)));
    let request = admin::ImageServiceCreateRequest {
        image: Some(image(store.url("/a.tar.zst"))),
    };
    let mut calls = JoinSet::new();
    calls.spawn(async move { images.create(request).await });
    store.asked_for("/a.tar.zst").await;
    let mut tokens = admin::token_service_client::TokenServiceClient::new(node.as_admin());
    let revoke = admin::TokenServiceRevokeRequest {
        uuid: id,
        user: "metal-stack".into(),
    };
    tokens.revoke(revoke).await.unwrap();
    store.open_gate();
    let refused = calls.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    assert!(site.stored().await.is_none());
    site.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_finds_the_digest_and_stores_nothing() {
    let site = Site::start().await;
    let store = &site.store;
    store.file("/a.tar.zst", CONTENT);
    let body = serde_json::json!({"image": {
        "id": ID, "url": store.url("/a.tar.zst"), "features": ["IMAGE_FEATURE_MACHINE"],
        "classification": "IMAGE_CLASSIFICATION_SUPPORTED",
    }});
    let bearer = format!("Bearer {}", site.node.admin);
    let headers = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let path = "/dry-run/metalstack.admin.v2.ImageService/Create";
    let tried = post(&site.node, path, &headers, body.to_string().into_bytes()).await;
    assert_eq!(tried.status, 200, "{}", tried.json());
    let labels = &tried.json()["image"]["meta"]["labels"]["labels"];
    assert_eq!(labels[DIGEST], sha256_of(CONTENT));
    assert_eq!(labels[SOURCE], "fetched");
    assert!(site.stored().await.is_none());
    site.create(image(store.url("/a.tar.zst"))).await.unwrap();
    site.node.stop().await;
}
