//! The files of a package.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::graph::CrateGraph;
use super::licences;
use super::recipe::Recipe;
use super::release::Release;
use super::sbom;
use super::tree::Tree;
use crate::debs::PackedDeb;
use crate::initramfs::Artifacts;

/// Directory of what machines boot, in the package and in pixie's default configuration.
const BOOT: &str = "usr/lib/metalmesh/boot";

/// Sources of the files of packages.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    pub(crate) root: &'a Path,
    pub(crate) release: &'a Release,
    pub(crate) graph: &'a CrateGraph,
    /// Folder with the documents of each program.
    pub(crate) documents: PathBuf,
    /// Kernel and initramfs. `None` where they cannot be made.
    pub(crate) boot: Option<&'a Artifacts>,
}

/// Everything that a package installs.
pub(crate) fn tree(recipe: &Recipe, inputs: &Inputs<'_>, program: &Path) -> Result<Tree> {
    let mut tree = Tree::default();
    if recipe.is_installed() {
        let path = format!("usr/bin/{}", recipe.program);
        tree.file(&path, 0o755, read(program)?);
        add_documents(&mut tree, recipe, inputs)?;
    } else {
        let boot = inputs.boot.context("there is no kernel and no initramfs")?;
        tree.file(&format!("{BOOT}/vmlinuz"), 0o644, read(&boot.kernel)?);
        tree.file(
            &format!("{BOOT}/initramfs.cpio.zst"),
            0o644,
            read(&boot.initrd)?,
        );
    }
    for asset in recipe.assets {
        tree.file(asset.to, 0o644, read(&inputs.root.join(asset.from))?);
    }
    if !recipe.units.is_empty() {
        // A system that boots for the first time enables every unit that no preset disables.
        let lines = recipe.units.iter().map(|unit| format!("disable {unit}\n"));
        let path = format!("lib/systemd/system-preset/80-{}.preset", recipe.name);
        tree.file(&path, 0o644, lines.collect::<String>());
    }
    add_doc(&mut tree, recipe, inputs)?;
    if let Some(overrides) = lintian_overrides(recipe) {
        let path = format!("usr/share/lintian/overrides/{}", recipe.name);
        tree.file(&path, 0o644, overrides);
    }
    Ok(tree)
}

/// Debian packages that a package has files of.
pub(crate) fn bundled<'a>(recipe: &Recipe, inputs: &Inputs<'a>) -> &'a [PackedDeb] {
    match inputs.boot {
        Some(boot) if !recipe.is_installed() => &boot.packages,
        _ => &[],
    }
}

/// Manual pages and completions.
fn add_documents(tree: &mut Tree, recipe: &Recipe, inputs: &Inputs<'_>) -> Result<()> {
    let (program, section) = (recipe.program, recipe.section);
    let folder = inputs.documents.join(program);
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = read(&entry.path())?;
        if name.ends_with(&format!(".{section}")) {
            tree.compressed(&format!("usr/share/man/man{section}/{name}"), &text)?;
            continue;
        }
        let path = match name.strip_suffix(".bash") {
            Some(program) => format!("usr/share/bash-completion/completions/{program}"),
            None if name.ends_with(".fish") => {
                format!("usr/share/fish/vendor_completions.d/{name}")
            }
            None => format!("usr/share/zsh/vendor-completions/{name}"),
        };
        tree.file(&path, 0o644, text);
    }
    Ok(())
}

/// The directory below /usr/share/doc: copyright, change logs, licences of others, bill of materials.
fn add_doc(tree: &mut Tree, recipe: &Recipe, inputs: &Inputs<'_>) -> Result<()> {
    let doc = format!("usr/share/doc/{}", recipe.name);
    tree.file(
        &format!("{doc}/copyright"),
        0o644,
        licences::copyright(recipe),
    );
    let own = read(&inputs.root.join("CHANGELOG.md"))?;
    tree.compressed(&format!("{doc}/changelog"), &own)?;
    let debian = changelog(recipe, inputs.release)?;
    tree.compressed(&format!("{doc}/changelog.Debian"), debian.as_bytes())?;
    let others = licences::third_party(recipe, inputs.graph)?;
    tree.compressed(&format!("{doc}/third-party.txt"), others.as_bytes())?;
    let debs = bundled(recipe, inputs);
    let bill = sbom::bill(recipe, inputs.release, inputs.graph, debs)?;
    tree.compressed(&format!("{doc}/sbom.cdx.json"), bill.as_bytes())?;
    if !debs.is_empty() {
        let list: String = debs
            .iter()
            .map(|deb| format!("{} {}\n", deb.name, deb.version))
            .collect();
        tree.compressed(&format!("{doc}/packages.txt"), list.as_bytes())?;
    }
    Ok(())
}

fn changelog(recipe: &Recipe, release: &Release) -> Result<String> {
    let date = release.date("%a, %d %b %Y %T +0000")?;
    Ok(format!(
        "{} ({}) stable; urgency=medium\n\n  * Commit {}. Changes are in changelog.gz.\n\n \
         -- {}  {date}\n",
        recipe.name,
        release.debian,
        release.commit,
        super::deb::MAINTAINER
    ))
}

const EMBEDDED_REASON: &str =
    "# Crates bring libyaml, zstd and lz4 with them, in the versions that they were tested with.";

/// Findings of lintian that are meant, each with its reason.
fn lintian_overrides(recipe: &Recipe) -> Option<String> {
    let reasons: &[&str] = match recipe.name {
        "metalmesh-firewall" => &[
            "# The same program runs on every firewall's image, whatever its C library: it is linked whole.",
            "metalmesh-firewall: statically-linked-binary *",
            EMBEDDED_REASON,
            "metalmesh-firewall: embedded-library *",
        ],
        "metalmesh-control" | "metalmesh-cli" => &[EMBEDDED_REASON, "{name}: embedded-library *"],
        _ => return None,
    };
    let lines = reasons.iter().map(|line| {
        let line = line.replace("{name}", recipe.name);
        format!("{line}\n")
    });
    Some(lines.collect())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::super::graph;
    use super::super::recipe::RECIPES;
    use super::*;

    #[test]
    fn a_package_has_program_documents_configuration_and_licences() {
        let folder = tempfile::tempdir().unwrap();
        let documents = folder.path().join("metalmesh-bmc");
        fs::create_dir(&documents).unwrap();
        for name in [
            "metalmesh-bmc.8",
            "metalmesh-bmc.bash",
            "_metalmesh-bmc",
            "metalmesh-bmc.fish",
        ] {
            fs::write(documents.join(name), "text").unwrap();
        }
        let program = folder.path().join("program");
        fs::write(&program, "program").unwrap();
        let release = Release {
            version: "0.1.0".to_owned(),
            debian: "0.1.0-1".to_owned(),
            commit: "abc".to_owned(),
            epoch: 0,
        };
        let graph = graph::with_crates_in(folder.path());
        let root = crate::root();
        let inputs = Inputs {
            root: &root,
            release: &release,
            graph: &graph,
            documents: folder.path().to_path_buf(),
            boot: None,
        };
        let bmc = RECIPES
            .iter()
            .find(|recipe| recipe.name == "metalmesh-bmc")
            .unwrap();
        let recipe = Recipe {
            package: "ours",
            ..*bmc
        };
        let tree = tree(&recipe, &inputs, &program).unwrap();
        let paths: Vec<&str> = tree.entries().map(|(path, _)| path).collect();
        for path in [
            "etc/metalmesh/bmc.toml",
            "usr/bin/metalmesh-bmc",
            "usr/share/bash-completion/completions/metalmesh-bmc",
            "usr/share/doc/metalmesh-bmc/changelog.Debian.gz",
            "usr/share/doc/metalmesh-bmc/copyright",
            "usr/share/doc/metalmesh-bmc/sbom.cdx.json.gz",
            "usr/share/fish/vendor_completions.d/metalmesh-bmc.fish",
            "usr/share/man/man8/metalmesh-bmc.8.gz",
            "usr/share/zsh/vendor-completions/_metalmesh-bmc",
        ] {
            assert!(paths.contains(&path), "{path}: {paths:?}");
        }
    }
}
