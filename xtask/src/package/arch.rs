//! The processors that packages are made for.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::debs::run_text;

/// A processor, by Debian's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Arch {
    Amd64,
    Arm64,
}

impl Arch {
    /// The name of Debian and of OCI, which agree.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The name of Rust.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The prefix of the programs of binutils and gcc for it.
    fn gnu(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-linux-gnu",
            Self::Arm64 => "aarch64-linux-gnu",
        }
    }

    /// `true` for the processor of this machine.
    pub(crate) fn is_native(self) -> bool {
        match self {
            Self::Amd64 => cfg!(target_arch = "x86_64"),
            Self::Arm64 => cfg!(target_arch = "aarch64"),
        }
    }

    /// The reason why nothing can be built for it here. `None` if it can.
    pub(crate) fn obstacle(self) -> Result<Option<String>> {
        if self.is_native() {
            return Ok(None);
        }
        let target = self.target();
        let mut rustc = Command::new("rustc");
        let folder = run_text(rustc.args(["--print", "target-libdir", "--target", target]))?;
        if !PathBuf::from(folder.trim()).is_dir() {
            return Ok(Some(format!(
                "Rust's library for {target} is missing: rustup target add {target}"
            )));
        }
        for (program, package) in [("gcc", "gcc"), ("g++", "g++")] {
            let program = format!("{}-{program}", self.gnu());
            if Command::new(&program).arg("--version").output().is_err() {
                return Ok(Some(format!(
                    "{program} is missing: Debian package {package}-{}",
                    self.gnu()
                )));
            }
        }
        Ok(None)
    }

    /// The environment with which cargo and the crates' build scripts compile for it.
    pub(crate) fn environment(self) -> Vec<(String, String)> {
        if self.is_native() {
            return Vec::new();
        }
        let target = self.target().replace('-', "_");
        let (gcc, gxx) = (format!("{}-gcc", self.gnu()), format!("{}-g++", self.gnu()));
        let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase());
        vec![
            (linker, gcc.clone()),
            (format!("CC_{target}"), gcc),
            (format!("CXX_{target}"), gxx),
            (format!("AR_{target}"), format!("{}-ar", self.gnu())),
            // Headers of the C library for bindgen (RocksDB).
            (
                format!("BINDGEN_EXTRA_CLANG_ARGS_{target}"),
                format!("--sysroot=/usr/{}", self.gnu()),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_processors_are_compiled_for_by_name() {
        let other = [Arch::Amd64, Arch::Arm64]
            .into_iter()
            .find(|arch| !arch.is_native())
            .unwrap();
        let environment = other.environment();
        assert_eq!(environment.len(), 5);
        let is_linker = |(name, value): &(String, String)| {
            name.ends_with("_UNKNOWN_LINUX_GNU_LINKER") && value.ends_with("-linux-gnu-gcc")
        };
        assert!(environment.iter().any(is_linker), "{environment:?}");
    }
}
