//! The installer that the partition names by URL: fetched, kept and served as one pair.

use std::time::Duration;

use pixie_boot::Target;
use serde_json::Value;

use crate::file_server::{Answer, FileServer, Gate};
use crate::installer_site::{KERNEL_LEN_MAX, Site, config, serve, want_a};
use crate::running_pixie::Running;
use crate::world::{pattern, wait_for};

#[test]
fn a_partitions_installer_is_served_when_it_has_come_whole() {
    let Some(site) = Site::new(|_, _| {}) else {
        return;
    };
    let unknown = site.script();
    assert!(unknown.contains("control has not yet sent"), "{unknown}");
    let (server, gate) = (serve(&site.world), Gate::default());
    let image = pattern(500_000);
    server.set("/a/image", Answer::Gated(image.clone(), gate.clone()));
    want_a(&site, &server);
    wait_for("half of the image", || !server.hits("/a/image").is_empty());
    let waits = site.script();
    assert!(waits.contains("the installer is being fetched"), "{waits}");
    assert!(waits.contains("&again=1 || goto wait"), "{waits}");
    assert!(
        !waits.contains("\nkernel "),
        "never another installer: {waits}"
    );
    gate.open();
    let key = site.wait_for_key();
    assert_eq!(site.get(&key, "kernel"), (200, pattern(300_000)));
    assert_eq!(site.get(&key, "image"), (200, image));
    assert_eq!(site.get(&key, "pair.json").0, 404);
    assert_eq!(site.get("0", "kernel").0, 404);
    let script = site.script();
    for word in [
        "metalmesh.pixie=http://10.99.1.2:8080",
        "metalmesh.mac=52:54",
        "extra=1",
    ] {
        assert!(script.contains(word), "{script}");
    }
    let own = "console=ttyS0";
    assert!(!script.contains(own), "the partition's alone: {script}");
    let health = site.health();
    assert_eq!(
        (&health["source"], &health["pair"]),
        (&"partition".into(), &key.into())
    );
    assert_eq!(health["image_bytes"], 500_000);
    let kernels = server.hits("/a/kernel");
    let whole = kernels.iter().filter(|hit| hit.status == 200).count();
    assert_eq!(whole, 1, "fetched once");
    // Control names none any more: the files of the configuration, and nothing stays on disk.
    site.pixie.set_target(Target::Hammer);
    let script = site.script();
    assert!(
        script.contains("kernel http://10.99.1.2:8080/kernel "),
        "{script}"
    );
    assert!(
        script.contains(own) && script.contains("extra=1"),
        "{script}"
    );
    wait_for("the pair to be removed", || site.kept() == 0);
}

#[test]
fn what_does_not_come_whole_is_never_served() {
    let stall = Duration::from_millis(500);
    let Some(site) = Site::new(|_, config| config.fetch.stall = stall) else {
        return;
    };
    let server = serve(&site.world);
    let kernel = pattern(300_000);
    let stalls = Answer::Gated(kernel.clone(), Gate::default());
    for (answer, error) in [
        (
            Answer::Cut(kernel.clone()),
            "kernel: the download broke off",
        ),
        (Answer::Unframed(kernel.clone()), "sends no length"),
        (
            Answer::Says(KERNEL_LEN_MAX + 1),
            "longer than 1048576 bytes",
        ),
        (stalls, "operation timed out"),
        (Answer::Endless, "longer than 1048576 bytes"),
        (
            Answer::File(Vec::new(), "none"),
            "kernel: the file is empty",
        ),
        (
            Answer::Redirect("/a/kernel".into()),
            "more than 5 redirects",
        ),
        (
            Answer::Redirect("ftp://h/k".into()),
            "other than http and https",
        ),
    ] {
        server.set("/a/kernel", answer);
        want_a(&site, &server);
        site.wait_for_error(error);
        site.pixie.set_target(Target::Hammer);
        wait_for("nothing left of it", || site.kept() == 0);
    }
    for (kernel, error) in [
        (server.url("/none"), "kernel: the server answers 404"),
        ("ftp://h/k".into(), "only by http and https"),
        ("x".into(), "kernel: not a URL"),
        ("http://127.0.0.1:1/k".into(), "kernel: no answer"),
    ] {
        site.want(&kernel, &server.url("/a/image"));
        site.wait_for_error(error);
    }
    site.want(&server.url("/a/kernel"), "");
    let script = site.script();
    assert!(
        script.contains("only one of kernel_url and image_url"),
        "{script}"
    );
    assert!(!script.contains("\nkernel "), "{script}");
    server.set("/a/kernel", Answer::File(kernel.clone(), "k1"));
    want_a(&site, &server);
    let key = site.wait_for_key();
    assert_eq!(site.get(&key, "kernel"), (200, kernel));
    assert_eq!(site.health()["last_error"], Value::Null);
}

#[test]
fn passwords_in_urls_go_to_the_server_alone() {
    let Some(site) = Site::new(|_, _| {}) else {
        return;
    };
    let server = serve(&site.world);
    let secret = |path: &str| {
        let url = server.url(path).replace("://", "://boot:hunter2@");
        format!("{url}?sig=hunter2")
    };
    site.want(&secret("/none"), &secret("/a/image"));
    site.wait_for_error("404");
    let (health, script) = (site.health().to_string(), site.script());
    site.want(&secret("/a/kernel"), &secret("/a/image"));
    let key = site.wait_for_key();
    let hit = server.hits("/a/kernel").remove(0);
    let head = hit.head.to_ascii_lowercase();
    // "boot:hunter2"
    assert!(
        head.contains("authorization: basic ym9vddpodw50zxiy"),
        "{head}"
    );
    assert!(head.contains("sig=hunter2"), "{head}");
    let kept = site.world.state_dir().join("installer").join(key);
    let record = std::fs::read_to_string(kept.join("pair.json")).unwrap();
    for text in [
        health,
        script,
        site.health().to_string(),
        site.script(),
        record,
    ] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn the_last_good_pair_outlives_its_server_and_a_restart() {
    let Some(mut site) = Site::new(|_, _| {}) else {
        return;
    };
    let server = serve(&site.world);
    let urls = (server.url("/a/kernel"), server.url("/a/image"));
    want_a(&site, &server);
    let key = site.wait_for_key();
    drop(server);
    wait_for("pixie to miss the server", || {
        !site.health()["last_error"].is_null()
    });
    assert_eq!(site.key().as_ref(), Some(&key));
    let config = config(&site.world);
    let Site { world, pixie } = site;
    drop(pixie);
    let pixie = Running::start(&world, config);
    site = Site { world, pixie };
    // The state that pixie kept on disk comes before anything from control.
    site.pixie.control.set_away(true);
    site.want(&urls.0, &urls.1);
    assert_eq!(site.key().as_ref(), Some(&key), "at once");
    assert_eq!(site.get(&key, "kernel"), (200, pattern(300_000)));
    assert_eq!(site.get(&key, "image"), (200, pattern(500_000)));
    wait_for("pixie to miss the server again", || {
        !site.health()["last_error"].is_null()
    });
    assert_eq!(site.key().as_ref(), Some(&key));
}

#[test]
fn a_changed_url_switches_at_once_and_mixes_nothing() {
    let Some(site) = Site::new(|_, _| {}) else {
        return;
    };
    let (server, gate) = (serve(&site.world), Gate::default());
    want_a(&site, &server);
    let first = site.wait_for_key();
    let (kernel, image) = (pattern(310_000), pattern(510_000));
    server.set("/b/kernel", Answer::File(kernel.clone(), "k2"));
    server.set("/b/image", Answer::Gated(image.clone(), gate.clone()));
    site.want(&server.url("/b/kernel"), &server.url("/b/image"));
    wait_for("half of the image", || !server.hits("/b/image").is_empty());
    assert_eq!(
        site.key(),
        None,
        "neither the old pair nor half of the new one"
    );
    assert_eq!(site.kept(), 2, "the old pair and the one on its way");
    // A machine that has the old script finishes with the old pair.
    assert_eq!(site.get(&first, "image"), (200, pattern(500_000)));
    // Back, while the new one is on its way: the old pair is still here.
    want_a(&site, &server);
    assert_eq!(site.key().as_ref(), Some(&first));
    let asked = server.hits("/b/image").len();
    site.want(&server.url("/b/kernel"), &server.url("/b/image"));
    wait_for("the next try", || server.hits("/b/image").len() > asked);
    gate.open();
    let second = site.wait_for_key();
    assert_ne!(first, second);
    assert_eq!(site.get(&second, "kernel"), (200, kernel));
    assert_eq!(site.get(&second, "image"), (200, image));
    for name in ["kernel", "image"] {
        assert_eq!(site.get(&first, name).0, 404, "it asks for its script anew");
    }
    wait_for("one pair to stay", || site.kept() == 1);
}

#[test]
fn a_file_that_changes_at_its_url_is_fetched_anew() {
    let Some(site) = Site::new(|_, _| {}) else {
        return;
    };
    let server = serve(&site.world);
    want_a(&site, &server);
    let first = site.wait_for_key();
    let looks = |path: &str, status: u16| {
        let hits = server.hits(path);
        hits.iter().filter(|hit| hit.status == status).count()
    };
    wait_for("two looks", || looks("/a/image", 304) >= 2);
    assert_eq!((looks("/a/kernel", 200), looks("/a/image", 200)), (1, 1));
    assert_eq!(site.key().as_ref(), Some(&first));
    // A broken update leaves what is there.
    server.set("/a/kernel", Answer::Cut(pattern(320_000)));
    wait_for("the error", || {
        let health = site.health();
        health["last_error"]
            .as_str()
            .is_some_and(|error| error.contains("broke off"))
    });
    assert_eq!(site.key().as_ref(), Some(&first));
    assert_eq!(site.get(&first, "kernel"), (200, pattern(300_000)));
    server.set("/a/kernel", Answer::File(pattern(320_000), "k2"));
    let mut second = first.clone();
    wait_for("the new kernel", || {
        second = site.key().expect("there is always a pair");
        second != first
    });
    assert_eq!(site.get(&second, "kernel"), (200, pattern(320_000)));
    assert_eq!(site.get(&second, "image"), (200, pattern(500_000)));
    assert_eq!(looks("/a/image", 200), 1, "the image did not change");
    wait_for("one pair to stay", || site.kept() == 1);
}

#[test]
fn https_is_checked_and_never_left_for_http() {
    let mut server = None;
    let site = Site::new(|world, config| {
        let ca_file = world.dir.path().join("ca.pem");
        server = Some(FileServer::https(world, &ca_file));
        config.ca_file = Some(ca_file);
    });
    let (Some(site), Some(server)) = (site, server) else {
        return;
    };
    let plain = serve(&site.world);
    server.set("/a/kernel", Answer::File(pattern(300_000), "k1"));
    server.set("/a/image", Answer::Redirect(server.url("/a/real")));
    server.set("/a/real", Answer::File(pattern(500_000), "i1"));
    server.set("/down", Answer::Redirect(plain.url("/a/kernel")));
    site.want(&server.url("/down"), &server.url("/a/image"));
    site.wait_for_error("a redirect from https to plain http");
    assert!(plain.hits("/a/kernel").is_empty());
    let other = FileServer::https(&site.world, &site.world.dir.path().join("other.pem"));
    other.set("/a/kernel", Answer::File(pattern(300_000), "k1"));
    site.want(&other.url("/a/kernel"), &server.url("/a/image"));
    site.wait_for_error("certificate");
    assert!(other.hits("/a/kernel").is_empty());
    want_a(&site, &server);
    let key = site.wait_for_key();
    assert_eq!(site.get(&key, "image"), (200, pattern(500_000)));
    // Up is as good as level.
    plain.set("/up", Answer::Redirect(server.url("/a/kernel")));
    site.want(&plain.url("/up"), &server.url("/a/image"));
    let key = site.wait_for_key();
    assert_eq!(site.get(&key, "kernel"), (200, pattern(300_000)));
}
