//! The software bill of materials of a package: CycloneDX 1.5, JSON.

use anyhow::Result;
use serde_json::{Value, json};

use super::graph::{CrateGraph, Krate};
use super::recipe::Recipe;
use super::release::Release;
use crate::debs::{PackedDeb, sha256_hex};

/// The bill of a package, as pretty JSON. `bundled` are Debian packages that it has files of.
pub(crate) fn bill(
    recipe: &Recipe,
    release: &Release,
    graph: &CrateGraph,
    bundled: &[PackedDeb],
) -> Result<String> {
    let id = graph.ours(recipe.package)?;
    let crates = graph.closure(id);
    let mut components: Vec<Value> = crates
        .iter()
        .filter(|(other, _)| **other != id)
        .map(|(_, krate)| component(krate))
        .collect();
    components.extend(bundled.iter().map(deb_component));
    let mut dependencies: Vec<Value> = crates
        .iter()
        .map(|(id, krate)| {
            let below = graph.below(id).filter_map(|below| crates.get(below));
            let below: Vec<String> = below.map(|krate| reference(krate)).collect();
            json!({ "ref": reference(krate), "dependsOn": below })
        })
        .collect();
    dependencies.sort_by_key(ToString::to_string);
    let main = crates.get(id).map(|krate| component(krate));
    let subject = json!({
        "type": "application",
        "bom-ref": format!("pkg:deb/metalmesh/{}@{}", recipe.name, release.debian),
        "name": recipe.name,
        "version": release.debian,
        "description": recipe.summary,
        "licenses": [{ "expression": "Apache-2.0" }],
        "components": main.into_iter().collect::<Vec<_>>(),
    });
    let mut bill = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": release.date("%Y-%m-%dT%H:%M:%SZ")?,
            "tools": { "components": [{
                "type": "application", "name": "metalmesh ./dev package", "version": release.version,
            }]},
            "component": subject,
            "properties": [{ "name": "metalmesh:commit", "value": release.commit }],
        },
        "components": components,
        "dependencies": dependencies,
    });
    // Of the content, so that two builds of one commit have the same.
    let digest = sha256_hex(bill.to_string().as_bytes());
    bill["serialNumber"] = json!(format!("urn:uuid:{}", uuid(&digest)));
    Ok(format!("{bill:#}\n"))
}

/// A UUID of version 8 (RFC 9562), whose bits are the application's.
fn uuid(hex: &str) -> String {
    format!(
        "{}-{}-8{}-8{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..32]
    )
}

fn reference(krate: &Krate) -> String {
    format!("pkg:cargo/{}@{}", krate.name, krate.version)
}

fn component(krate: &Krate) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(krate),
        "name": krate.name,
        "version": krate.version,
        "purl": reference(krate),
    });
    if let Some(license) = &krate.license {
        // Old crates write `MIT/Apache-2.0`.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(checksum) = &krate.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

fn deb_component(deb: &PackedDeb) -> Value {
    let purl = format!("pkg:deb/debian/{}@{}", deb.name, deb.version);
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": deb.name,
        "version": deb.version,
        "purl": purl,
        "hashes": [{ "alg": "SHA-256", "content": deb.sha256 }],
    })
}

#[cfg(test)]
mod tests {
    use super::super::graph;
    use super::super::recipe::RECIPES;
    use super::*;

    fn release() -> Release {
        Release {
            version: "0.1.0".to_owned(),
            debian: "0.1.0-1".to_owned(),
            commit: "0123456789".to_owned(),
            epoch: 0,
        }
    }

    #[test]
    fn a_bill_names_every_crate_with_its_checksum_and_is_the_same_twice() {
        let recipe = Recipe {
            package: "ours",
            ..RECIPES[0]
        };
        let deb = PackedDeb {
            name: "libc6".to_owned(),
            version: "2.36-9".to_owned(),
            sha256: "00".to_owned(),
        };
        let graph = graph::example();
        let text = bill(&recipe, &release(), &graph, std::slice::from_ref(&deb)).unwrap();
        assert_eq!(text, bill(&recipe, &release(), &graph, &[deb]).unwrap());
        let value: Value = serde_json::from_str(&text).unwrap();
        let components = value["components"].as_array().unwrap();
        let names: Vec<&str> = components
            .iter()
            .filter_map(|component| component["name"].as_str())
            .collect();
        assert_eq!(names, ["a", "b", "libc6"]);
        assert_eq!(components[0]["hashes"][0]["content"], "abcd");
        assert_eq!(value["metadata"]["timestamp"], "1970-01-01T00:00:00Z");
        let serial = value["serialNumber"].as_str().unwrap();
        assert_eq!(serial.len(), "urn:uuid:".len() + 36);
        let refs: Vec<&Value> = value["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|node| node["ref"] == "pkg:cargo/ours@1.0.0")
            .collect();
        assert_eq!(refs[0]["dependsOn"], json!(["pkg:cargo/a@1.0.0"]));
    }
}
