//! Compiles `metalmesh/mesh/v1/*.proto` without protoc and generates messages, clients, server
//! traits and the method table. Fails when a method lacks its `callers` or `audit` option.

mod services;
mod table;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Messages that contain a secret. Their `Debug` is in `src/redacted.rs`.
const SECRET: [&str; 6] = [
    ".metalmesh.mesh.v1.TpmChallengeRequest",
    ".metalmesh.mesh.v1.JoinClusterRequest",
    ".metalmesh.mesh.v1.JoinRequest",
    ".metalmesh.mesh.v1.BootTicket",
    ".metalmesh.mesh.v1.Install",
    ".metalmesh.mesh.v1.InstallReport",
];

#[expect(clippy::print_stdout, reason = "how a build script talks to cargo")]
fn main() -> anyhow::Result<()> {
    let schema = Path::new("../schema");
    let folder = schema.join("metalmesh/mesh/v1");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut protos: Vec<PathBuf> = std::fs::read_dir(&folder)
        .with_context(|| format!("read {}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "proto"))
        .collect();
    protos.sort();

    let mut compiler = protox::Compiler::new([schema]).context("open the schema")?;
    compiler.include_source_info(true).include_imports(true);
    compiler
        .open_files(&protos)
        .context("compile the mesh schema")?;
    let table = table::read(&compiler.descriptor_pool())?;

    let mut config = prost_build::Config::new();
    config.skip_debug(SECRET);
    config.service_generator(Box::new(services::Generator::new(table)));
    config
        .compile_fds(compiler.file_descriptor_set())
        .context("generate the mesh")
}
