//! Files with the public keys of releases, one a line.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;
use proto_release::ReleaseKey;

/// Most keys. Two are enough to replace one by another.
pub const RELEASE_KEYS_MAX: usize = 16;
/// Longest file, bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Begin of a comment.
const COMMENT: char = '#';
/// Bits of a mode by which others may write.
const OTHERS_WRITE: u32 = 0o022;

/// The keys of a file. None if there is no file. `others` is the number of keys that the agent has from
/// elsewhere.
///
/// # Errors
/// The problem: it cannot be read, others may write it, a line is no key, or there are too many.
pub fn read_release_keys(path: &Path, others: usize) -> Result<Vec<ReleaseKey>, String> {
    parse(&read(path)?, others)
}

/// The text of the file. Empty if there is none.
fn read(path: &Path) -> Result<String, String> {
    // To open a pipe would wait for its writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path);
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let meta = file.metadata();
    let meta = meta.map_err(|error| format!("it cannot be read: {error}"))?;
    if !meta.is_file() {
        return Err("it is no regular file; write one".to_owned());
    }
    if meta.permissions().mode() & OTHERS_WRITE != 0 {
        return Err("others than its owner may write it; use chmod 0644".to_owned());
    }
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    Ok(text)
}

/// The keys of a text.
fn parse(text: &str, others: usize) -> Result<Vec<ReleaseKey>, String> {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(index, line)| (index + 1, line.trim()));
    let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(COMMENT));
    let keys: Result<Vec<ReleaseKey>, String> = keys
        .map(|(number, line)| {
            let key = line.parse::<ReleaseKey>();
            key.map_err(|error| format!("line {number}: {error}"))
        })
        .collect();
    let keys = keys?;
    if keys.len() + others > RELEASE_KEYS_MAX {
        return Err(format!(
            "there are more than {RELEASE_KEYS_MAX} keys with those of the configuration; remove \
             those that sign no more"
        ));
    }
    Ok(keys)
}
