//! Compiles `proto/schema/metalstack`, `metalmesh/admin`, `metalmesh/tenant`, `grpc` and `google` to
//! Rust without an installed protoc, embeds their descriptors, and refuses a method that does not say who may
//! call it and whether the call is audited.

#![expect(
    clippy::print_stdout,
    reason = "it is how a build script talks to cargo"
)]

mod lint;
mod lists;
mod requests;
mod validate_proto;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use prost_reflect::DescriptorPool;
use protox::Compiler;

/// The folders below `proto/schema` that this crate serves.
const ROOTS: [&str; 5] = [
    "metalstack",
    "metalmesh/admin",
    "metalmesh/tenant",
    "grpc",
    "google",
];
/// Packages without Rust code: no message refers to the validation rules, and the error details are
/// present only for reflection.
const DESCRIBED_ONLY: [&str; 2] = ["buf.validate", "google.rpc"];

fn main() {
    if let Err(error) = run() {
        // Cargo shows the output of a build script that fails; it has no other channel for errors.
        panic!("{error}");
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let schema = manifest.join("../schema").canonicalize()?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=Cargo.toml");

    let mut files = Vec::new();
    for root in ROOTS {
        let dir = schema.join(root);
        println!("cargo::rerun-if-changed={}", dir.display());
        collect(&dir, &mut files)?;
    }
    files.sort();

    let includes = [schema, validate_proto::include_dir(&manifest)?];
    let mut compiler = Compiler::new(&includes)?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(&files)?;
    lint::check(&compiler.descriptor_pool())?;

    let mut set = compiler.file_descriptor_set();
    set.file.retain(|f| !DESCRIBED_ONLY.contains(&f.package()));
    tonic_prost_build::configure()
        .generate_default_stubs(true)
        .compile_fds(set)?;

    let mut embedded = Compiler::new(&includes)?;
    embedded.include_imports(true).open_files(&files)?;
    let bytes = embedded.encode_file_descriptor_set();
    let pool = DescriptorPool::decode(&bytes[..])?;
    fs::write(out.join("requests.rs"), requests::generate(&pool)?)?;
    fs::write(out.join("lists.rs"), lists::generate(&pool)?)?;
    fs::write(out.join("descriptors.bin"), bytes)?;
    Ok(())
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "proto") {
            files.push(path);
        }
    }
    Ok(())
}
