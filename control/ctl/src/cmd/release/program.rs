//! Programs that are signed.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use proto_release::PROGRAM_BYTES_MAX;

/// First bytes of a program of Linux.
const ELF: &[u8] = b"\x7fELF";
/// Place of its architecture, two bytes, little-endian for the ones below.
const MACHINE: std::ops::Range<usize> = 18..20;
/// Numbers of architectures, and their names in Rust.
const MACHINES: [(u16, &str); 3] = [(62, "x86_64"), (183, "aarch64"), (243, "riscv64")];

/// Reads a program.
///
/// # Errors
/// It cannot be read, is empty, or is larger than agents take.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let named = || format!("cannot read {}", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(named)?;
    file.take(PROGRAM_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(named)?;
    let path = path.display();
    ensure!(!bytes.is_empty(), "{path} is empty");
    ensure!(
        bytes.len() as u64 <= PROGRAM_BYTES_MAX,
        "{path} is larger than {PROGRAM_BYTES_MAX} bytes; strip its symbols"
    );
    Ok(bytes)
}

/// The architecture of a program, as Rust calls it. `None` if its head does not say it.
pub(super) fn architecture(program: &[u8]) -> Option<&'static str> {
    if !program.starts_with(ELF) {
        return None;
    }
    let number: [u8; 2] = program.get(MACHINE)?.try_into().ok()?;
    let number = u16::from_le_bytes(number);
    let mut known = MACHINES.iter();
    known.find(|(own, _)| *own == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::architecture;

    #[test]
    fn the_architecture_of_a_program() {
        let mut program = b"\x7fELF".to_vec();
        program.resize(64, 0);
        for (number, name) in [(62, Some("x86_64")), (183, Some("aarch64")), (0, None)] {
            program[18] = number;
            assert_eq!(architecture(&program), name);
        }
        assert_eq!(architecture(b"\x7fELF"), None);
        assert_eq!(architecture(b"#!/bin/sh\n"), None);
    }
}
