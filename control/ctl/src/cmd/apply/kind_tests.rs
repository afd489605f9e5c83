use super::*;

fn document(text: &str) -> Result<(&'static AppliedKind, ObjectDocument)> {
    let value: Value = serde_norway::from_str(text).unwrap();
    let kind = of_document(&value)?;
    Ok((kind, kind.read(value)?))
}

fn plan(text: &str, there: Option<Value>) -> Result<ApplyPlan> {
    let (kind, wanted) = document(text)?;
    kind.plan(there.as_ref(), &wanted)
}

#[test]
fn every_kind_names_methods_and_fields_of_the_contract() {
    for kind in KINDS {
        for path in [kind.create, kind.get, kind.update] {
            assert!(proto_public::method(path).is_some(), "{path}");
        }
        let get = proto_public::method(kind.get).unwrap();
        assert!(get.output.get_field_by_json_name(kind.field).is_some());
        assert!(get.input.get_field_by_json_name(kind.asked_by).is_some());
        assert!(kind.has_update(kind.asked_by), "{}", kind.name);
        assert!(kind.has(kind.document, kind.id), "{}", kind.name);
        assert!(kind.has(kind.object, kind.id), "{}", kind.name);
        assert_eq!(of_command(kind.short).unwrap().name, kind.name);
    }
}

#[test]
fn what_is_not_there_is_created_as_the_document_says() {
    let size = "kind: Size\nid: small\nlabels: {rack: a}\nconstraints:\n\
                - {type: SIZE_CONSTRAINT_TYPE_CORES, min: 1, max: 4}\n";
    let (path, request) = plan(size, None).unwrap().call.unwrap();
    assert_eq!(path, "/metalstack.admin.v2.SizeService/Create");
    let wanted = json!({ "size": {
        "id": "small", "meta": { "labels": { "labels": { "rack": "a" } } },
        "constraints": [{ "type": "SIZE_CONSTRAINT_TYPE_CORES", "min": "1", "max": "4" }],
    }});
    assert_eq!(request, wanted);
    let tenant = "kind: Tenant\nname: acme\nlabels: {a: b}\n";
    let (_, request) = plan(tenant, None).unwrap().call.unwrap();
    let wanted = json!({ "name": "acme", "labels": { "labels": { "a": "b" } } });
    assert_eq!(request, wanted);
}

#[test]
fn only_what_differs_is_changed_and_never_what_somebody_else_changed() {
    let there = json!({
        "id": "lab", "description": "old",
        "meta": { "updatedAt": "2026-01-01T00:00:00Z", "labels": { "labels": { "a": "b" } } },
        "dnsServers": [{ "ip": "10.0.0.1" }],
    });
    let same = "kind: Partition\nid: lab\ndescription: old\ndnsServers: [{ip: 10.0.0.1}]\n";
    assert!(plan(same, Some(there.clone())).unwrap().call.is_none());
    let other = "kind: Partition\nid: lab\ndescription: new\nlabels: {a: b, c: d}\n";
    let plan = plan(other, Some(there)).unwrap();
    let (path, request) = plan.call.unwrap();
    assert_eq!(path, "/metalstack.admin.v2.PartitionService/Update");
    let wanted = json!({
        "id": "lab", "description": "new",
        "labels": { "patch": { "update": { "labels": { "c": "d" } } } },
        "updateMeta": {
            "updatedAt": "2026-01-01T00:00:00Z",
            "lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_CLIENT",
        },
    });
    assert_eq!(request, wanted);
    let fields: Vec<&str> = plan
        .changes
        .iter()
        .map(|change| change.field.as_str())
        .collect();
    assert_eq!(fields, ["description", "label c"]);
}

#[test]
fn lists_of_words_have_no_order_and_what_only_creates_is_no_change() {
    let there = json!({
        "id": "internet", "type": "NETWORK_TYPE_EXTERNAL", "prefixes": ["10.0.0.0/8", "fd00::/8"],
    });
    let same = "kind: Network\nid: internet\ntype: NETWORK_TYPE_EXTERNAL\n\
                prefixes: [\"fd00::/8\", 10.0.0.0/8]\nlength: {ipv4: 24}\n";
    assert!(plan(same, Some(there)).unwrap().call.is_none());
}

#[test]
fn mistakes_are_named_with_the_field() {
    for (text, words) in [
        ("id: small\n", &["kind: is missing"][..]),
        ("kind: Rack\n", &["\"Rack\"", "Tenant, Partition, Size"]),
        ("kind: Size\nid: small\ncolour: red\n", &["colour"]),
        ("kind: Size\nname: small\n", &["id: is missing"]),
        ("kind: Size\nid: [small]\n", &["Size"]),
    ] {
        let error = format!("{:#}", document(text).unwrap_err());
        for word in words {
            assert!(error.contains(word), "{word:?} in {error}");
        }
    }
    let there = json!({ "id": "net", "type": "NETWORK_TYPE_SUPER" });
    let text = "kind: Network\nid: net\ntype: NETWORK_TYPE_EXTERNAL\n";
    let error = plan(text, Some(there)).unwrap_err().to_string();
    assert!(
        error.contains("Network net: type: cannot be changed"),
        "{error}"
    );
}

#[test]
fn an_editor_is_shown_what_can_be_changed() {
    let there = json!({
        "id": "small", "description": "a",
        "meta": { "createdAt": "2026-01-01T00:00:00Z", "labels": { "labels": { "x": "y" } } },
        "constraints": [{ "type": "SIZE_CONSTRAINT_TYPE_CORES", "min": "1", "max": "4" }],
    });
    let kind = of_command("size").unwrap();
    let shown = kind.editable("small", &there);
    let wanted = json!({
        "kind": "Size", "id": "small", "description": "a", "labels": { "x": "y" },
        "constraints": [{ "type": "SIZE_CONSTRAINT_TYPE_CORES", "min": "1", "max": "4" }],
    });
    assert_eq!(Value::Object(shown.clone()), wanted);
    let unchanged = kind.read(wanted.clone()).unwrap();
    assert!(kind.plan(Some(&there), &unchanged).unwrap().call.is_none());
    let edited = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut text = wanted.clone();
        change(text.as_object_mut().unwrap());
        kind.read(text.clone()).unwrap().whole(&shown, &text)
    };
    let cut = edited(&|text| drop(text.remove("description"))).unwrap_err();
    let cut = cut.to_string();
    assert!(cut.contains("description: is missing"), "{cut}");
    let relabelled = edited(&|text| text["labels"] = json!({ "z": "1" })).unwrap();
    let (_, request) = kind.plan(Some(&there), &relabelled).unwrap().call.unwrap();
    let patch = json!({ "update": { "labels": { "z": "1" } }, "remove": ["x"] });
    assert_eq!(request["labels"]["patch"], patch);
}
