//! Images that are not what they should be.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use sha2::{Digest as _, Sha256};

use super::must_fail;
use crate::datacentre::DataCentre;
use crate::scenario::setup::Site;
use crate::services::image_url;

/// Bytes of zeros in the image that is too big; the lab's disks have 4 GiB.
const TOO_BIG: u64 = 6 << 30;

pub(super) fn wrong_digest(lab: &DataCentre, site: &Site) -> Result<()> {
    let digest = format!("sha256:{}", "00".repeat(32));
    register(lab, "wrong-12.1", &lab.image_url, &digest)?;
    must_fail(lab, site, "wrong-12.1", &["digest", "sha"])
}

pub(super) fn cut_short(lab: &DataCentre, site: &Site) -> Result<()> {
    let whole = fs::read(&lab.artefacts.image)?;
    let half = whole.get(..whole.len() / 2).unwrap_or_default();
    fs::write(lab.record.path("images/short.tar.zst")?, half)?;
    register(
        lab,
        "short-12.2",
        &image_url("short.tar.zst"),
        &lab.artefacts.image_digest,
    )?;
    must_fail(
        lab,
        site,
        "short-12.2",
        &["digest", "short", "truncated", "ends", "incomplete", "eof"],
    )
}

pub(super) fn too_big(lab: &DataCentre, site: &Site) -> Result<()> {
    let path = lab.record.path("images/big.tar.zst")?;
    let mut compress = Command::new("zstd")
        .args(["-q", "-1", "-o"])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot run zstd")?;
    let mut pipe = compress.stdin.take().context("no pipe")?;
    pipe.write_all(&header("big", TOO_BIG))?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..TOO_BIG >> 20 {
        pipe.write_all(&zeros)?;
    }
    pipe.write_all(&[0; 1024])?;
    drop(pipe);
    ensure!(compress.wait()?.success(), "zstd failed");
    let digest = format!("sha256:{}", hex::encode(Sha256::digest(fs::read(&path)?)));
    register(lab, "big-12.3", &image_url("big.tar.zst"), &digest)?;
    must_fail(
        lab,
        site,
        "big-12.3",
        &["space", "fit", "big", "full", "enospc"],
    )
}

fn register(lab: &DataCentre, id: &str, url: &str, digest: &str) -> Result<()> {
    let line = format!("image create {id} --url {url} --digest {digest}");
    lab.people.admin.run(&line).map(|_| ())
}

/// A tar header of one regular file (POSIX ustar).
fn header(name: &str, size: u64) -> [u8; 512] {
    let mut out = [0_u8; 512];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(field) = out.get_mut(at..at + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    };
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = out.iter().map(|b| u32::from(*b)).sum();
    let sum = format!("{sum:06o}\0 ");
    if let Some(field) = out.get_mut(148..156) {
        field.copy_from_slice(sum.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tar_reads_the_header() {
        let mut tar = Command::new("tar")
            .arg("-tvf-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = tar.stdin.take().unwrap();
        pipe.write_all(&header("big", 3)).unwrap();
        pipe.write_all(&[0; 512 + 1024]).unwrap();
        drop(pipe);
        let listed = tar.wait_with_output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains(" 3 ") && listed.contains("big"), "{listed}");
    }
}
