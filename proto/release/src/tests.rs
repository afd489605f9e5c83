use super::*;

const NOW_S: u64 = 1_800_000_000;

fn version(text: &str) -> ReleaseVersion {
    text.parse().unwrap()
}

fn manifest(program: &[u8], encoding: PayloadEncoding) -> (ReleaseManifest, Vec<u8>) {
    let payload = pack(program, encoding).unwrap();
    let manifest = ReleaseManifest {
        name: "metalmesh-firewall".to_owned(),
        version: version("1.2.0"),
        architecture: "x86_64".to_owned(),
        mesh_level: 1,
        not_before_s: NOW_S - 60,
        expires_s: NOW_S + 60,
        allow_downgrade_from: vec![version("2.0.0")],
        encoding,
        payload: FileDigest::of(payload.as_slice()).unwrap(),
        program: FileDigest::of(program).unwrap(),
    };
    (manifest, payload)
}

fn read(bytes: &[u8], trusted: &[ReleaseKey]) -> Result<ReleaseManifest, ReleaseError> {
    SignedHead::decode(bytes)?.verify(trusted)
}

#[test]
fn a_signed_manifest_is_read_and_every_changed_byte_is_refused() {
    let signer = ReleaseSigner::generate().unwrap();
    let (manifest, _) = manifest(b"program", PayloadEncoding::Plain);
    let head = signer.sign(&manifest).unwrap().encode();
    assert_eq!(read(&head, &[signer.public()]), Ok(manifest));
    for at in 0..head.len() {
        let mut changed = head.clone();
        changed[at] ^= 1;
        let found = read(&changed, &[signer.public()]);
        // The id of the key is a hint alone.
        let is_key_id = (head.len() - 72..head.len() - 64).contains(&at);
        assert_eq!(found.is_ok(), is_key_id, "byte {at}: {found:?}");
    }
    for length in 0..head.len() {
        assert!(read(&head[..length], &[signer.public()]).is_err());
    }
}

#[test]
fn only_trusted_keys_count() {
    let [signer, other] = [(); 2].map(|()| ReleaseSigner::generate().unwrap());
    let (manifest, _) = manifest(b"program", PayloadEncoding::Plain);
    let head = signer.sign(&manifest).unwrap().encode();
    let id = signer.public().id();
    let unknown = Err(ReleaseError::UnknownKey(id));
    assert_eq!(read(&head, &[other.public()]), unknown);
    assert_eq!(read(&head, &[]), unknown);
    assert!(read(&head, &[other.public(), signer.public()]).is_ok());
    let forged = other.sign(&manifest).unwrap().encode();
    let at = head.len() - 72;
    let named = [&forged[..at], &head[at..at + 8], &forged[at + 8..]].concat();
    let refused = Err(ReleaseError::Signature(id));
    assert_eq!(read(&named, &[signer.public()]), refused);
}

#[test]
fn keys_are_kept_as_text() {
    let signer = ReleaseSigner::generate().unwrap();
    let again = ReleaseSigner::parse(&signer.secret_text()).unwrap();
    assert_eq!(again.public(), signer.public());
    let text = signer.public().to_string();
    assert_eq!(text.parse(), Ok(signer.public()));
    assert!(!format!("{signer:?}").contains(signer.secret_text().lines().last().unwrap()));
    for bad in [
        "",
        "ed25519:",
        "ed25519:AAAA",
        "AAAA",
        &text[..text.len() - 4],
    ] {
        assert_eq!(
            bad.parse::<ReleaseKey>(),
            Err(ReleaseError::KeyText),
            "{bad}"
        );
        assert!(ReleaseSigner::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_payload_becomes_its_program_or_nothing() {
    let program: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    for encoding in [PayloadEncoding::Plain, PayloadEncoding::Zstd] {
        let (manifest, payload) = manifest(&program, encoding);
        let mut meter = PayloadMeter::new(manifest.payload.clone());
        for piece in payload.chunks(1000) {
            meter.update(piece).unwrap();
        }
        meter.finish().unwrap();
        let mut unpacked = Vec::new();
        unpack(&manifest, payload.as_slice(), &mut unpacked).unwrap();
        assert!(unpacked == program, "{encoding:?}");
        // A payload that becomes more than its manifest says ends there.
        let mut small = manifest.clone();
        small.program.bytes = 1000;
        let refused = unpack(&small, payload.as_slice(), std::io::sink());
        assert!(matches!(
            refused,
            Err(UnpackError::Release(ReleaseError::TooLong { bytes: 1000 }))
        ));
    }
}

/// A disk without room.
struct FullDisk;

impl std::io::Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_no_fault_of_the_payload() {
    let (manifest, payload) = manifest(b"program", PayloadEncoding::Zstd);
    let full = unpack(&manifest, payload.as_slice(), FullDisk);
    assert!(matches!(full, Err(UnpackError::Write(_))), "{full:?}");
    let damaged = unpack(&manifest, &b"no zstd"[..], std::io::sink());
    assert!(matches!(damaged, Err(UnpackError::Io(_))), "{damaged:?}");
}

#[test]
fn lengths_and_digests_of_payloads() {
    let expected = FileDigest::of(&b"program"[..]).unwrap();
    let meter = |bytes: &[u8]| {
        let mut meter = PayloadMeter::new(expected.clone());
        meter.update(bytes)?;
        meter.finish()
    };
    let truncated = ReleaseError::Truncated {
        bytes: 6,
        expected: 7,
    };
    for (bytes, found) in [
        (&b"program"[..], Ok(())),
        (b"progra", Err(truncated)),
        (b"program!", Err(ReleaseError::TooLong { bytes: 7 })),
        (b"Program", Err(ReleaseError::Digest)),
    ] {
        assert_eq!(meter(bytes), found);
    }
}

#[test]
fn each_rule_is_named() {
    let (good, _) = manifest(b"program", PayloadEncoding::Plain);
    let newer = version("2.0.0");
    let other = version("2.0.1");
    let context = ReleaseContext {
        name: "metalmesh-firewall",
        architecture: "x86_64",
        wanted: &good.version,
        running: &version("1.1.9"),
        mesh_level: Some(1),
        now_s: NOW_S,
    };
    let with = |change: &dyn Fn(&mut ReleaseManifest)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        manifest
    };
    for (manifest, context, rule) in [
        (good.clone(), context, ""),
        (
            with(&|own| own.name = "metalmesh-core".to_owned()),
            context,
            "name",
        ),
        (
            with(&|own| own.architecture = "aarch64".to_owned()),
            context,
            "architecture",
        ),
        (
            with(&|own| own.version = version("1.2.1")),
            context,
            "version",
        ),
        (with(&|own| own.not_before_s = NOW_S), context, ""),
        (
            with(&|own| own.not_before_s = NOW_S + 1),
            context,
            "not-before",
        ),
        (with(&|own| own.expires_s = NOW_S), context, "expiry"),
        (with(&|own| own.mesh_level = 2), context, "mesh-level"),
        (
            with(&|own| own.mesh_level = 2),
            ReleaseContext {
                mesh_level: None,
                ..context
            },
            "",
        ),
        // The manifest names 2.0.0, and no other version.
        (
            good.clone(),
            ReleaseContext {
                running: &newer,
                ..context
            },
            "",
        ),
        (
            good.clone(),
            ReleaseContext {
                running: &other,
                ..context
            },
            "downgrade",
        ),
    ] {
        let found = check_release(&manifest, &context)
            .map_or_else(|error| error.to_string(), |()| String::new());
        assert!(found.split(':').next() == Some(rule), "{rule}: {found}");
        assert_eq!(rule.is_empty(), found.is_empty());
    }
}

#[test]
fn versions_have_an_order() {
    for (text, shown) in [
        ("1.2.3", Some("1.2.3")),
        ("v1.2.3-rc.1", Some("1.2.3-rc.1")),
        ("1.2", None),
        ("1.2.3+build", None),
        ("", None),
        ("vv1.2.3", None),
        ("latest", None),
    ] {
        let found = text.parse::<ReleaseVersion>().ok();
        assert_eq!(
            found.map(|version| version.to_string()).as_deref(),
            shown,
            "{text}"
        );
    }
    let ordered = ["1.2.3-rc.1", "1.2.3-rc.2", "1.2.3", "1.10.0", "2.0.0"].map(version);
    assert!(ordered.is_sorted());
    assert!(
        format!("1.2.3-{}", "a".repeat(64))
            .parse::<ReleaseVersion>()
            .is_err()
    );
}

#[test]
fn manifests_that_break_the_format_are_not_signed() {
    let signer = ReleaseSigner::generate().unwrap();
    let (good, _) = manifest(b"program", PayloadEncoding::Plain);
    let changes: [&dyn Fn(&mut ReleaseManifest); 8] = [
        &|own| own.name = "a b".to_owned(),
        &|own| own.architecture = String::new(),
        &|own| own.expires_s = own.not_before_s,
        &|own| own.expires_s = own.not_before_s + 400 * 86_400 + 1,
        &|own| own.allow_downgrade_from = vec![version("1.0.0"); 65],
        &|own| own.program.bytes = PROGRAM_BYTES_MAX + 1,
        &|own| own.payload.bytes = 0,
        &|own| own.payload.bytes = 8,
    ];
    for (at, change) in changes.iter().enumerate() {
        let mut wrong = good.clone();
        change(&mut wrong);
        assert!(signer.sign(&wrong).is_err(), "change {at}");
    }
}
