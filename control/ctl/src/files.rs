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
