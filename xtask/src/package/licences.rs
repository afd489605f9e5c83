//! Debian's copyright file, and the licences of the crates in a program.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::graph::{CrateGraph, Krate};
use super::recipe::Recipe;

/// Longest licence of a crate that is repeated, bytes. A longer file is no licence.
const LICENCE_MAX: u64 = 256 * 1024;

/// `debian/copyright` in its machine-readable form.
pub(crate) fn copyright(recipe: &Recipe) -> String {
    let mut text = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: metalmesh\n\
         Source: https://github.com/metalmesh/metalmesh\n\n\
         Files: *\n\
         Copyright: 2025-2026 metalmesh contributors\n\
         License: Apache-2.0\n"
        .to_owned();
    let name = recipe.name;
    // The crates have licences of their own, which ask to be repeated with the program.
    text.push_str(&format!(
        "Comment: The program contains crates of others. Their names, versions and licences are in\n \
         /usr/share/doc/{name}/third-party.txt.gz\n"
    ));
    if !recipe.is_installed() {
        text.push_str(
            "\nFiles: usr/lib/metalmesh/boot/*\n\
             Copyright: the authors of Linux and of the Debian packages that the files come from\n\
             License: GPL-2.0-only and others\n \
             Kernel, modules and tools are unchanged files of Debian packages, which\n \
             /usr/share/doc/metalmesh-hammer/packages.txt.gz lists with their versions. Their\n \
             sources are those of Debian, https://snapshot.debian.org; the text of the GPL is in\n \
             /usr/share/common-licenses/GPL-2.\n",
        );
    }
    text.push_str(
        "\nLicense: Apache-2.0\n On Debian systems the text of the licence is in\n \
         /usr/share/common-licenses/Apache-2.0.\n",
    );
    text
}

/// Name, version and licence of every crate in a program, and the texts of their licences, each once.
pub(crate) fn third_party(recipe: &Recipe, graph: &CrateGraph) -> Result<String> {
    let crates = graph.closure(graph.ours(recipe.package)?);
    let mut crates: Vec<&Krate> = crates
        .into_values()
        .filter(|krate| !krate.is_ours)
        .collect();
    crates.sort_by_key(|krate| (&krate.name, &krate.version));
    let mut text = format!("Crates in {}\n\n", recipe.program);
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for krate in crates {
        let licence = krate.license.as_deref().unwrap_or("see its text below");
        let title = format!("{} {}", krate.name, krate.version);
        writeln!(text, "{title}: {licence}")?;
        for own in licence_texts(&krate.folder)? {
            texts.entry(own).or_default().push(title.clone());
        }
    }
    // Sorted by the crates and not by the texts: the order is that of the list above.
    let mut texts: Vec<(Vec<String>, String)> = texts
        .into_iter()
        .map(|(text, crates)| (crates, text))
        .collect();
    texts.sort();
    for (crates, own) in texts {
        writeln!(text, "\n{}\n{}\n\n{own}", "-".repeat(72), crates.join(", "))?;
    }
    Ok(text)
}

/// The texts of the licence files in the folder of a crate.
fn licence_texts(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let kinds = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
        let metadata = entry.metadata()?;
        let is_text = metadata.is_file() && metadata.len() <= LICENCE_MAX;
        if is_text && kinds.iter().any(|kind| name.starts_with(kind)) {
            let bytes = fs::read(entry.path())?;
            found.push(String::from_utf8_lossy(&bytes).trim().replace("\r\n", "\n"));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::recipe::RECIPES;
    use super::*;

    #[test]
    fn only_the_installer_has_files_of_others() {
        for recipe in RECIPES {
            let text = copyright(&recipe);
            let has_kernel = text.contains("GPL-2.0-only");
            assert_eq!(
                has_kernel,
                recipe.name == "metalmesh-hammer",
                "{}",
                recipe.name
            );
            assert!(
                text.contains("/usr/share/common-licenses/Apache-2.0"),
                "{text}"
            );
            // A line without a field is a continuation, and begins with a space.
            let is_field = |line: &str| {
                line.split_once(": ")
                    .is_some_and(|(name, _)| !name.contains(' '))
            };
            let lines = text.lines().filter(|line| !line.is_empty());
            for line in lines {
                assert!(line.starts_with(' ') || is_field(line), "{line}");
            }
        }
    }

    #[test]
    fn licences_are_found_by_their_usual_names() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("LICENSE-MIT", "mit\r\ntext\n"),
            ("copying", "gpl"),
            ("README.md", "read me"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(licence_texts(folder.path()).unwrap(), ["gpl", "mit\ntext"]);
    }
}
