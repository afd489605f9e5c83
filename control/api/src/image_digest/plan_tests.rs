//! Plans for the digest of an image that is made or changed.

use control_state::{Lock, Meta};
use tests_support::objects;

use super::*;

const URL: &str = "http://images.example/debian.tar.zst";
const OTHER: &str = "http://mirror.example/debian.tar.zst";

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn image(pairs: &[(&str, &str)]) -> Image {
    Image {
        meta: Meta::labelled(labels(pairs)),
        url: URL.to_owned(),
        ..objects::image("debian-12.0.1")
    }
}

fn update(url: Option<&str>, labels: Option<LabelsUpdate>) -> UpdateImage {
    UpdateImage {
        id: "debian-12.0.1".parse().unwrap(),
        lock: Lock::Server,
        url: url.map(str::to_owned),
        name: None,
        description: None,
        features: None,
        classification: None,
        expires_at: None,
        labels,
    }
}

fn patch(pairs: &[(&str, &str)], remove: &[&str]) -> Option<LabelsUpdate> {
    Some(LabelsUpdate::Patch {
        update: labels(pairs),
        remove: remove.iter().map(|key| (*key).to_owned()).collect(),
    })
}

fn replace(pairs: &[(&str, &str)]) -> Option<LabelsUpdate> {
    Some(LabelsUpdate::Replace(labels(pairs)))
}

#[test]
fn a_new_image_needs_a_digest() {
    let find = DigestPlan::Find { url: URL.into() };
    assert_eq!(on_create(&image(&[])), find);
    assert_eq!(on_create(&image(&[("team", "a")])), find);
    let given = image(&[(label::DIGEST, "sha256:ab")]);
    assert_eq!(on_create(&given), DigestPlan::Given);
}

#[test]
fn a_digest_belongs_to_its_url() {
    let old = [
        (label::DIGEST, "sha256:ab"),
        (label::DIGEST_SOURCE, "fetched"),
    ];
    let same = (label::DIGEST, "sha256:ab");
    let new = (label::DIGEST, "sha256:cd");
    let find = |url: &str| DigestPlan::Find { url: url.into() };
    for (url, change, plan) in [
        (None, None, DigestPlan::AsStated),
        (Some(URL), None, DigestPlan::AsStated),
        (Some(URL), replace(&old), DigestPlan::AsStated),
        (None, patch(&[("team", "a")], &["x"]), DigestPlan::AsStated),
        // Another URL, and no other digest.
        (Some(OTHER), None, find(OTHER)),
        (Some(OTHER), replace(&old), find(OTHER)),
        (Some(OTHER), patch(&[same], &[]), find(OTHER)),
        (Some(OTHER), replace(&[("team", "a")]), find(OTHER)),
        // Another digest.
        (Some(OTHER), patch(&[new], &[]), DigestPlan::Given),
        (None, replace(&[new, old[1]]), DigestPlan::Given),
        // Without the digest.
        (None, patch(&[], &[label::DIGEST]), find(URL)),
        (
            Some(URL),
            replace(&[("team", "a")]),
            DigestPlan::Keep {
                digest: "sha256:ab".into(),
                source: "fetched".into(),
            },
        ),
    ] {
        let update = update(url, change);
        assert_eq!(on_update(&image(&old), &update), plan, "{update:?}");
    }
}

#[test]
fn a_given_digest_that_goes_is_looked_for() {
    let old = image(&[(label::DIGEST, "sha256:ab")]);
    let plan = on_update(&old, &update(None, replace(&[])));
    assert_eq!(plan, DigestPlan::Find { url: URL.into() });
}

#[test]
fn an_image_without_a_digest_gets_one_when_its_url_is_named() {
    let old = image(&[]);
    assert_eq!(on_update(&old, &update(None, None)), DigestPlan::AsStated);
    let find = DigestPlan::Find { url: URL.into() };
    assert_eq!(on_update(&old, &update(Some(URL), None)), find);
}

#[test]
fn labels_of_the_digest_are_put_into_any_change() {
    let old = labels(&[("team", "a"), (label::DIGEST, "sha256:ab")]);
    for (change, team) in [
        (None, Some("a")),
        (replace(&[]), None),
        (patch(&[], &[label::DIGEST, "team"]), None),
        (patch(&[(label::DIGEST, "sha256:ab")], &[]), Some("a")),
    ] {
        let mut after = old.clone();
        let change = with_digest(change, "sha256:cd".into(), "fetched".into());
        change.apply(&mut after).unwrap();
        assert_eq!(after[label::DIGEST], "sha256:cd", "{change:?}");
        assert_eq!(after[label::DIGEST_SOURCE], "fetched", "{change:?}");
        assert_eq!(after.get("team").map(String::as_str), team, "{change:?}");
    }
}

#[test]
fn a_given_digest_has_no_source() {
    let given = [
        (label::DIGEST, "sha256:cd"),
        (label::DIGEST_SOURCE, "published"),
    ];
    for change in [replace(&given), patch(&given, &[])] {
        let mut after = labels(&[(label::DIGEST_SOURCE, "fetched")]);
        without_source(change).unwrap().apply(&mut after).unwrap();
        assert_eq!(after, labels(&given[..1]));
    }
    assert_eq!(without_source(None), None);
}
