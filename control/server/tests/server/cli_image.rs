//! Images whose digest control finds, on the command line.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use crate::cli::Cli;

const CONTENT: &str = "a system in a tar archive";
/// `sha256sum` of it.
const DIGEST: &str = "sha256:4e471536e7134148b052423ca10bd2265b9e5ff1e242d4b4b9266aa6a6a27e35";

/// Serves one image for the rest of the process, and nothing beside it; its URL.
fn image_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a.tar.zst", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap();
            // The rest of the head, so that nothing is reset.
            for line in lines {
                if line.unwrap().is_empty() {
                    break;
                }
            }
            let (status, body) = match request.contains(" /a.tar.zst ") {
                true => ("200 OK", CONTENT),
                false => ("404 Not Found", ""),
            };
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n");
            write!(stream, "{head}connection: close\r\n\r\n{body}").unwrap();
        }
    });
    url
}

#[test]
fn the_digest_that_control_found_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    let url = image_url();
    let said = |arguments: &[&str]| {
        let output = cli.command(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {text}");
        text
    };
    let found = format!("digest found by control (fetched): {DIGEST}");
    let create = ["image", "create", "debian-12.0.1", "--url", &url];
    assert!(said(&create).contains(&found));
    for shown in [
        &["image", "ls", "-o", "wide"][..],
        &["image", "describe", "debian-12.0.1", "-o", "json"],
    ] {
        let shown = cli.ok(shown);
        assert!(
            shown.contains(DIGEST) && shown.contains("fetched"),
            "{shown}"
        );
    }
    let given = format!("sha256:{}", "ab".repeat(32));
    let update = ["image", "update", "debian-12.0.1", "--digest", &given];
    assert!(!said(&update).contains("found by control"));
    let again = [
        "image",
        "update",
        "debian-12.0.1",
        "--label",
        "metalmesh.dev/digest-",
    ];
    assert!(said(&again).contains(&found));
    let gone = format!("{url}.gone");
    let error = cli.refused(&["image", "update", "debian-12.0.1", "--url", &gone]);
    assert!(
        error.contains("MM-1308") && error.contains("404"),
        "{error}"
    );
}
