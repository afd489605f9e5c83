//! A wall clock of one process that a test moves ahead.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that moves the clock, and the file that says how far.
pub(crate) struct WallClock {
    library: PathBuf,
    /// Holds the seconds by which the clock is ahead, as an `i64` in this machine's byte order.
    pub(crate) ahead: PathBuf,
}

impl WallClock {
    /// A clock that shows the real time. `None` where no C compiler is installed, which is printed.
    pub(crate) fn make(dir: &Path) -> Option<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/ahead.c");
        let library = dir.join("ahead.so");
        let flags = ["-shared", "-fPIC", "-O1", "-o"];
        let mut compiler = Command::new("cc");
        let compiled = compiler.args(flags).arg(&library).arg(source).status();
        match compiled {
            Ok(status) => assert!(status.success(), "cc: {status}"),
            Err(error) => {
                println!("SKIPPED: no C compiler: cc: {error}");
                return None;
            }
        }
        let ahead = dir.join("ahead");
        std::fs::write(&ahead, 0_i64.to_ne_bytes()).unwrap();
        Some(Self { library, ahead })
    }

    /// The environment of a process that shall go by this clock.
    pub(crate) fn environment(&self) -> [(&'static str, &Path); 2] {
        [("LD_PRELOAD", &self.library), ("CLOCK_AHEAD", &self.ahead)]
    }
}
