//! The build fails for a method that does not say who may call it and whether it is audited.

#![allow(clippy::unwrap_used, reason = "all of it is a test")]

#[path = "../build/table.rs"]
mod table;

use std::path::Path;

const HEAD: &str = r#"
syntax = "proto3";
package metalmesh.mesh.v1;
import "metalmesh/mesh/v1/options.proto";
message M {}
"#;

fn read(options: &str) -> Result<table::Table, String> {
    let dir = tempfile::tempdir().unwrap();
    let service = format!("{HEAD} service S {{ rpc Do(M) returns (M) {{ {options} }} }}");
    std::fs::write(dir.path().join("s.proto"), service).unwrap();
    let schema = Path::new("../schema");
    let mut compiler = protox::Compiler::new([schema, dir.path()]).unwrap();
    compiler
        .include_imports(true)
        .open_file(dir.path().join("s.proto"))
        .unwrap();
    table::read(&compiler.descriptor_pool()).map_err(|e| format!("{e:#}"))
}

#[test]
fn a_method_needs_callers_and_audit() {
    const CORE: &str = "option (callers) = CALLER_CORE;";
    const AUDIT: &str = "option (audit) = AUDIT_ALWAYS;";
    let table = read(&format!("{CORE} {AUDIT}")).unwrap();
    let options = &table["metalmesh.mesh.v1.S/Do"];
    assert_eq!(
        (options.callers.as_slice(), options.audit),
        (&["Core".to_owned()][..], "Always")
    );
    for (options, why) in [
        ("", "`callers`"),
        (AUDIT, "`callers`"),
        (CORE, "`audit`"),
        (
            "option (callers) = CALLER_UNSPECIFIED; option (audit) = AUDIT_NEVER;",
            "caller 0",
        ),
        (
            "option (callers) = CALLER_CORE; option (audit) = AUDIT_UNSPECIFIED;",
            "`audit`",
        ),
    ] {
        let error = read(options).err().unwrap();
        assert!(
            error.contains(why) && error.contains("S/Do"),
            "{options}: {error}"
        );
    }
}
