//! Tests of the whole store, on a small state machine of their own.
//!
//! They are part of the crate, which saves linking one more test binary with RocksDB.

mod cluster;
mod crash;
mod damage;
mod directory;
mod fuzz;
mod golden;
mod ledger;
mod mesh;
mod partial;
#[cfg(feature = "sim")]
mod power;
mod questions;
mod reads;
mod restore;
mod snapshots;
mod store;
mod tables;
mod wal;

use std::path::Path;

use crate::{Store, StoreConfig};
pub(crate) use ledger::{Ledger, LedgerCommand, Refused};

fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        segment_bytes: 256 << 10,
        ..StoreConfig::new(dir, 1, "test")
    }
}

async fn open(dir: &Path) -> Store<Ledger> {
    Store::open(config(dir)).await.unwrap()
}

async fn put(store: &Store<Ledger>, key: &str, value: &str) -> u64 {
    let command = LedgerCommand::Put {
        key: key.into(),
        value: value.into(),
    };
    store.propose(&(), &command).await.unwrap()
}

/// Copies a directory as a crash would leave it.
fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
