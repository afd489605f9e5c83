//! Reading and writing of local files, tokens and keys among them.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use proto_bounds::{NESTED_PROBLEM, NESTED_REMEDY};
use serde_json::Value;

/// Largest part of a file that is read, bytes. Longer files are cut there, far above the size of
/// any document or key.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Writes a new file with mode 0600.
///
/// # Errors
/// The file exists already, or cannot be written.
pub(crate) fn write_private(path: &Path, content: &str) -> Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot create {}", path.display()))?;
    file.write_all(content.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Checks that a new file can get this name. Asked before the server makes the secret that is to be in it:
/// a secret that cannot be written is in force, and nobody has it.
///
/// # Errors
/// There is something of that name, or no directory for it.
pub(crate) fn check_new(path: &Path) -> Result<()> {
    ensure!(
        path.symlink_metadata().is_err(),
        "cannot create {}: it exists already; choose a new file",
        path.display()
    );
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    ensure!(
        parent.is_dir(),
        "cannot create {}: there is no directory {}",
        path.display(),
        parent.display()
    );
    Ok(())
}

/// Reads a file as bytes.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let named = || format!("cannot read {}", path.display());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).with_context(named)?;
    let mut file = file.take(FILE_BYTES_MAX);
    file.read_to_end(&mut bytes).with_context(named)?;
    Ok(bytes)
}

/// Reads a file as text; `-` is stdin.
pub(crate) fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let named = || format!("cannot read {}", path.display());
    if path == Path::new("-") {
        std::io::stdin()
            .take(FILE_BYTES_MAX)
            .read_to_string(&mut text)
            .with_context(named)?;
        return Ok(text);
    }
    let mut file = std::fs::File::open(path)
        .with_context(named)?
        .take(FILE_BYTES_MAX);
    file.read_to_string(&mut text).with_context(named)?;
    Ok(text)
}

/// Reads a YAML or JSON text of one document.
///
/// # Errors
/// It is none, or is nested too deeply.
pub(crate) fn yaml(text: &str) -> Result<Value> {
    check_nesting(text)?;
    Ok(serde_norway::from_str(text)?)
}

/// Refuses a text that is nested so deeply that the parser would take long.
pub(crate) fn check_nesting(text: &str) -> Result<()> {
    ensure!(
        proto_bounds::is_flat(text.as_bytes()),
        "{NESTED_PROBLEM}; {NESTED_REMEDY}"
    );
    Ok(())
}

/// Reads a token: one line of printable ASCII characters.
pub(crate) fn read_token(path: &Path) -> Result<String> {
    let text = read(path)?;
    let token = text.trim();
    let printable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(
        printable,
        "{} holds no token: one line of printable characters",
        path.display()
    );
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_gets_a_file_that_is_new() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("there");
        std::fs::write(&there, "x").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("nowhere"), &link).unwrap();
        for (path, said) in [
            (dir.path().join("new"), ""),
            ("new-in-no-directory".into(), ""),
            (there, "exists already"),
            (link, "exists already"),
            (dir.path().join("no/new"), "no directory"),
        ] {
            let refused = check_new(&path).err();
            let refused = refused.map_or_else(String::new, |error| error.to_string());
            assert_eq!(refused.is_empty(), said.is_empty(), "{refused}");
            assert!(refused.contains(said), "{refused}");
        }
    }
}
