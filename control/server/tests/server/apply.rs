//! `metalmesh apply` and `metalmesh edit` against a real node.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::cli::Cli;

const SITE: &str = "\
kind: Partition
id: lab
description: first
dnsServers: [{ip: 10.0.0.53}]
---
kind: Size
id: small
labels: {rack: a}
constraints:
- {type: SIZE_CONSTRAINT_TYPE_CORES, min: 1, max: 4}
---
kind: Tenant
name: acme
";

/// Writes a file and returns its path.
fn file(dir: &Path, text: &str) -> String {
    let file = dir.join("site.yaml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_file_is_applied_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    let dry = cli.ok(&["apply", "-f", &file(dir.path(), SITE), "--dry-run"]);
    assert_eq!(dry.matches("would be created").count(), 3, "{dry}");
    assert_eq!(cli.ok(&["get", "partition"]).lines().count(), 1);
    let made = cli.ok(&["apply", "-f", &file(dir.path(), SITE)]);
    assert_eq!(
        made,
        "partition lab created\nsize small created\ntenant acme created\n"
    );
    let again = cli.ok(&["apply", "-f", &file(dir.path(), SITE)]);
    assert_eq!(again.matches("unchanged").count(), 3, "{again}");

    let other = SITE
        .replace("first", "second")
        .replace("rack: a", "rack: b");
    let dry = cli.ok(&[
        "apply",
        "-f",
        &file(dir.path(), &other),
        "--dry-run",
        "-o",
        "json",
    ]);
    let dry: Value = serde_json::from_str(&dry).unwrap();
    assert_eq!(
        (&dry[0]["outcome"], &dry[0]["dryRun"]),
        (&"changed".into(), &true.into())
    );
    let changed = cli.ok(&["apply", "-f", &file(dir.path(), &other)]);
    let wanted = "partition lab changed\n  description: \"first\" -> \"second\"\n\
                  size small changed\n  label rack: \"a\" -> \"b\"\ntenant acme unchanged\n";
    assert_eq!(changed, wanted);
    assert!(
        cli.ok(&["get", "size", "small", "-o", "wide"])
            .contains("rack=b")
    );

    // A mistake in the last document changes nothing.
    for (bad, words) in [
        (
            "kind: Size\nid: big\ncolour: red\n",
            ["document 2 of", "colour"],
        ),
        (
            "kind: Rack\nid: one\n",
            ["document 2 of", "\"Rack\" cannot be applied"],
        ),
        ("kind: Size\nid: b\n", ["document 2 of", "id:"]),
    ] {
        let text = format!(
            "{}---\n{bad}",
            SITE.split("---").next().unwrap().replace("first", "third")
        );
        let refused = cli.refused(&["apply", "-f", &file(dir.path(), &text)]);
        for word in words {
            assert!(refused.contains(word), "{word:?} in {refused}");
        }
    }
    assert!(
        !cli.ok(&["get", "partition", "-o", "json"])
            .contains("third")
    );
}

/// A program that edits as `script`, for sed, says.
fn editor(dir: &Path, script: &str) -> String {
    let path = dir.join("editor");
    fs::write(&path, format!("#!/bin/sh\nexec sed -i '{script}' \"$1\"\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_object_is_edited() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.ok(&["apply", "-f", &file(dir.path(), SITE)]);
    let edit = |arguments: &[&str], script: &str| {
        let mut command = cli.command(&[&["edit"], arguments].concat());
        let output = command
            .env("VISUAL", editor(dir.path(), script))
            .env("TMPDIR", dir.path())
            .output()
            .unwrap();
        let text = if output.status.success() {
            output.stdout
        } else {
            output.stderr
        };
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let lab = ["partition", "lab"];
    assert_eq!(
        edit(&lab, ""),
        (true, "partition lab unchanged\n".to_owned())
    );
    let (ok, text) = edit(&["size", "small"], "s/rack: a/row: z/");
    assert!(ok, "{text}");
    assert!(text.contains("label rack: \"a\" -> null"), "{text}");
    assert!(text.contains("label row: null -> \"z\""), "{text}");
    let (ok, text) = edit(&lab, "s/description: .*/description: new/");
    assert!(ok && text.contains("\"first\" -> \"new\""), "{text}");
    // What cannot be is refused, and the text is kept.
    for (script, word) in [
        ("/description/d", "description: is missing"),
        ("s/id: lab/id: other/", "cannot be renamed"),
        ("s/10.0.0.53/not-an-address/", "ip"),
    ] {
        let (ok, text) = edit(&lab, script);
        assert!(!ok && text.contains(word), "{text}");
        let kept = text.split_whitespace().find(|it| it.contains("metalmesh-"));
        let kept = kept.unwrap().trim_end_matches(':');
        assert!(
            fs::read_to_string(kept)
                .unwrap()
                .contains("kind: Partition")
        );
    }
    // Somebody else was faster.
    let slow = dir.path().join("slow");
    let config = cli.config.to_str().unwrap();
    let program = cli.program.to_str().unwrap();
    let script = format!(
        "#!/bin/sh\n{program} --config {config} partition update lab --description faster\n\
         sed -i 's/description: .*/description: slower/' \"$1\"\n"
    );
    fs::write(&slow, script).unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = cli.command(&["edit", "partition", "lab"]);
    let output = command
        .env("VISUAL", &slow)
        .env("TMPDIR", dir.path())
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{error}");
    assert!(error.contains("nothing was changed"), "{error}");
    let there = cli.ok(&["get", "partition", "lab", "-o", "json"]);
    assert!(there.contains("faster"), "{there}");
    let refused = cli.refused(&["edit", "machine", "x"]);
    assert!(
        refused.contains("cannot be edited; the kinds are tenant"),
        "{refused}"
    );
    let refused = cli.refused(&["edit", "size", "none"]);
    assert!(refused.contains("there is no size \"none\""), "{refused}");
}
