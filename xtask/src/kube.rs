//! A kube-apiserver and its etcd for tests, built from the published Go modules.
//!
//! Building takes 10 minutes of a processor, so it is done only when it is asked for, once for each
//! version; the programs are kept in the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::debs;

/// Folder of the modules, and of what their programs are called.
const PROGRAMS: [(&str, &str); 2] = [("etcd", "etcd"), ("apiserver", "kube-apiserver")];
/// Version of `k8s.io/kubernetes` in tests/kube/apiserver/go.mod. Without it the server calls itself
/// v0.0.0, which clients refuse.
const VERSION: [&str; 3] = ["1", "37", "2"];

/// The folder with the programs. `None` if they were not built, and `build` is `false` or Go is
/// missing.
pub(crate) fn programs(root: &Path, build: bool) -> Result<Option<PathBuf>> {
    let modules = root.join("tests/kube");
    let mut sums = Vec::new();
    for (folder, _) in PROGRAMS {
        sums.extend(fs::read(modules.join(folder).join("go.sum"))?);
    }
    let key = debs::sha256_hex(&sums);
    let folder = debs::cache_dir()?.join(format!("kube-{}", &key[..16]));
    let whole = folder.join(".complete");
    if whole.exists() {
        return Ok(Some(folder));
    }
    if !build {
        return Ok(None);
    }
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("kube-apiserver: skipped, Go is missing");
        return Ok(None);
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    eprintln!("building kube-apiserver and etcd, once (some ten minutes on two cores)");
    for (module, program) in PROGRAMS {
        let mut go = Command::new("go");
        go.args(["build", "-trimpath", "-buildvcs=false", "-ldflags"])
            .arg(flags())
            .arg("-o")
            .arg(folder.join(program))
            .arg(".")
            .current_dir(modules.join(module));
        debs::run(&mut go)?;
    }
    fs::write(whole, "")?;
    Ok(Some(folder))
}

fn flags() -> String {
    let [major, minor, patch] = VERSION;
    let name = "k8s.io/component-base/version";
    format!(
        "-s -X {name}.gitVersion=v{major}.{minor}.{patch} -X {name}.gitMajor={major} \
         -X {name}.gitMinor={minor} -X {name}.gitTreeState=clean -X {name}.gitCommit=x"
    )
}
