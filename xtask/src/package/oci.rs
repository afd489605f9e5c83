//! Container images without a shell, as archives of the OCI image layout. No container engine is needed:
//! an image is a tar of files, named by their digests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::arch::Arch;
use super::layer::{LayerOwner, Layout, layer};
use super::recipe::Recipe;
use super::release::Release;
use super::tree::{Tree, gzip};
use crate::debs::{self, DebTree, sha256_hex};
use crate::initramfs::{contents, elf};

/// Debian packages that images have files of.
const PACKAGES: [&str; 6] = [
    "ca-certificates",
    "ipxe",
    "libc6",
    "libgcc-s1",
    "libstdc++6",
    "nftables",
];
/// User of services without capabilities. It has no name on the host.
const USER: u64 = 65_532;

/// Debian's files for images.
pub(crate) fn fetch() -> Result<DebTree> {
    debs::fetch("oci", &PACKAGES)
}

/// Writes the image of a service. Returns the archive.
pub(crate) fn write(
    recipe: &Recipe,
    release: &Release,
    arch: Arch,
    files: &ImageFiles<'_>,
    out: &Path,
) -> Result<PathBuf> {
    let tree = tree(recipe, files)?;
    let owner = owner(recipe);
    let layer = layer(&tree, recipe.data, owner, release.epoch)?;
    let image = image(recipe, release, arch, owner, &layer)?;
    let path = out.join(format!(
        "{}_{}_{}.oci.tar",
        recipe.program,
        release.debian,
        arch.debian()
    ));
    fs::write(&path, image)?;
    Ok(path)
}

/// Where the files of an image come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageFiles<'a> {
    pub(crate) program: &'a Path,
    pub(crate) debian: &'a DebTree,
}

/// Services whose unit keeps capabilities run as root: container engines give capabilities to no other
/// user.
fn owner(recipe: &Recipe) -> LayerOwner {
    let is_plain = ["metalmeshd", "metalmesh-bmc"].contains(&recipe.program);
    LayerOwner(if is_plain { USER } else { 0 })
}

/// Program, libraries, authorities and names: no shell, and no program beside those that it runs.
fn tree(recipe: &Recipe, files: &ImageFiles<'_>) -> Result<Tree> {
    let mut tree = Tree::default();
    let root = &files.debian.root;
    let mut programs = vec![files.program.to_path_buf()];
    if recipe.program == "metalmesh-core" {
        // Loads the packet filter. FRR's sockets of the host are mounted at /run/frr.
        programs.push(root.join("usr/sbin/nft"));
    }
    for program in &programs {
        let name = program.file_name().context("a program has no name")?;
        let path = format!("usr/bin/{}", name.to_string_lossy());
        tree.file(&path, 0o755, read(program)?);
    }
    let libraries = elf::closure(root, &programs)?;
    if !libraries.is_empty() {
        tree.link("lib64", "usr/lib");
        tree.link("lib", "usr/lib");
    }
    for (name, path) in libraries {
        tree.file(&format!("usr/lib/{name}"), 0o755, read(&path)?);
    }
    let bundle = contents::certificate_bundle(root)?;
    tree.file("etc/ssl/certs/ca-certificates.crt", 0o644, bundle);
    tree.file(
        "etc/passwd",
        0o644,
        format!("root:x:0:0:root:/:/nonexistent\nmetalmesh:x:{USER}:{USER}::/:/nonexistent\n"),
    );
    tree.file(
        "etc/group",
        0o644,
        format!("root:x:0:\nmetalmesh:x:{USER}:\n"),
    );
    tree.file("etc/nsswitch.conf", 0o644, "hosts: files dns\n");
    if recipe.program == "metalmesh-pixie" {
        add_boot_programs(&mut tree, root)?;
    }
    Ok(tree)
}

/// Adds the boot programs that pixie serves to firmware.
fn add_boot_programs(tree: &mut Tree, root: &Path) -> Result<()> {
    let folder = root.join("usr/lib/ipxe");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_program = name.ends_with(".efi") || name.ends_with(".kpxe");
        if is_program && entry.file_type()?.is_file() {
            tree.file(&format!("usr/lib/ipxe/{name}"), 0o644, read(&entry.path())?);
        }
    }
    Ok(())
}

/// Arguments of the program in a container.
fn arguments(recipe: &Recipe) -> Vec<&'static str> {
    match recipe.program {
        "metalmeshd" => vec![
            "--config",
            "/etc/metalmesh/metalmeshd.toml",
            "--log",
            "json",
        ],
        "metalmesh-firewall" => vec!["--log", "json", "run"],
        _ => vec!["run", "--log", "json"],
    }
}

/// Environment of the program: where the packages' units put state and configuration.
fn environment(recipe: &Recipe) -> Vec<String> {
    let mut variables = vec!["PATH=/usr/bin".to_owned()];
    let agent = recipe.program.strip_prefix("metalmesh-");
    if let (Some(agent @ ("core" | "bmc" | "pixie")), Some(data)) = (agent, recipe.data) {
        variables.push(format!("METALMESH_STATE_DIR={data}"));
        variables.push(format!(
            "METALMESH_TICKET_FILE=/etc/metalmesh/{agent}.ticket"
        ));
    }
    if let Some(agent @ ("bmc" | "pixie")) = agent {
        let name = agent.to_uppercase();
        variables.push(format!(
            "METALMESH_{name}_CONFIG=/etc/metalmesh/{agent}.toml"
        ));
    }
    variables
}

fn config(
    recipe: &Recipe,
    release: &Release,
    arch: Arch,
    owner: LayerOwner,
    diff_id: &str,
) -> Result<Value> {
    let created = release.date("%Y-%m-%dT%H:%M:%SZ")?;
    Ok(json!({
        "created": created,
        "architecture": arch.debian(),
        "os": "linux",
        "config": {
            "User": format!("{0}:{0}", owner.0),
            "Env": environment(recipe),
            "Entrypoint": [format!("/usr/bin/{}", recipe.program)],
            "Cmd": arguments(recipe),
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": recipe.program,
                "org.opencontainers.image.description": recipe.summary,
                "org.opencontainers.image.version": release.debian,
                "org.opencontainers.image.revision": release.commit,
                "org.opencontainers.image.licenses": "Apache-2.0",
                "org.opencontainers.image.source": "https://github.com/metalmesh/metalmesh",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [diff_id] },
        "history": [{ "created": created, "created_by": "./dev package" }],
    }))
}

/// The archive of an image with one layer.
fn image(
    recipe: &Recipe,
    release: &Release,
    arch: Arch,
    owner: LayerOwner,
    layer: &[u8],
) -> Result<Vec<u8>> {
    let mut layout = Layout::default();
    let diff_id = format!("sha256:{}", sha256_hex(layer));
    let config = config(recipe, release, arch, owner, &diff_id)?.to_string();
    let config = layout.blob(
        "application/vnd.oci.image.config.v1+json",
        config.into_bytes(),
    );
    let packed = gzip(layer)?;
    let layer = layout.blob("application/vnd.oci.image.layer.v1.tar+gzip", packed);
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": manifest_type,
        "config": config,
        "layers": [layer],
    });
    let mut manifest = layout.blob(manifest_type, manifest.to_string().into_bytes());
    manifest["platform"] = json!({ "architecture": arch.debian(), "os": "linux" });
    manifest["annotations"] = json!({
        "org.opencontainers.image.ref.name": format!("{}:{}", recipe.program, release.version),
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    layout.file("index.json", index.to_string().into_bytes());
    layout.file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec());
    layout.archive(release.epoch)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;

    use super::super::recipe::RECIPES;
    use super::*;

    fn release() -> Release {
        Release {
            version: "0.1.0".to_owned(),
            debian: "0.1.0-1".to_owned(),
            commit: "abc".to_owned(),
            epoch: 7,
        }
    }

    fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 7);
            let path = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (path, bytes)
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn every_blob_has_the_name_of_its_digest_and_is_reached_from_the_index() {
        let recipe = &RECIPES[0];
        let made = || image(recipe, &release(), Arch::Amd64, LayerOwner(USER), b"layer").unwrap();
        assert_eq!(made(), made());
        let files = files(&made());
        let json = |path: &str| serde_json::from_slice::<Value>(&files[path]).unwrap();
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            let path = format!("blobs/{}", digest.replace(':', "/"));
            assert_eq!(digest, format!("sha256:{}", sha256_hex(&files[&path])));
            assert_eq!(descriptor["size"], files[&path].len());
            path
        };
        let index = json("index.json");
        let manifest = json(&blob(&index["manifests"][0]));
        let config = json(&blob(&manifest["config"]));
        blob(&manifest["layers"][0]);
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/metalmeshd");
        let diff = format!("sha256:{}", sha256_hex(b"layer"));
        assert_eq!(config["rootfs"]["diff_ids"][0], diff);
        assert_eq!(json("oci-layout")["imageLayoutVersion"], "1.0.0");
    }

    #[test]
    fn agents_find_their_state_where_the_package_puts_it() {
        let of = |name: &str| {
            let mut recipes = RECIPES.iter();
            let recipe = recipes.find(|recipe| recipe.program == name).unwrap();
            environment(recipe)
        };
        let pixie = of("metalmesh-pixie");
        for variable in [
            "METALMESH_STATE_DIR=/var/lib/metalmesh/pixie",
            "METALMESH_PIXIE_CONFIG=/etc/metalmesh/pixie.toml",
        ] {
            assert!(pixie.iter().any(|own| own == variable), "{pixie:?}");
        }
        assert_eq!(of("metalmeshd"), ["PATH=/usr/bin"]);
        assert_eq!(of("metalmesh-firewall"), ["PATH=/usr/bin"]);
    }
}
