//! Fuzzes releases of programs: heads, manifests, payloads, and the record of updates.

#![expect(
    clippy::let_underscore_must_use,
    reason = "that a decoder returns is the whole point"
)]
#![allow(clippy::unwrap_used, reason = "a test's helpers")]

use agents_update::{AddressRule, InstalledProgram, ReleaseLocation, UpdateRecord, plan_start};
use bolero::check;
use proto_release::{
    FileDigest, PayloadEncoding, ReleaseKey, ReleaseManifest, ReleaseSigner, ReleaseVersion,
    SignedHead, unpack,
};

fn manifest(payload: &[u8], encoding: PayloadEncoding) -> ReleaseManifest {
    let digest = FileDigest::of(payload).unwrap();
    ReleaseManifest {
        name: "metalmesh-firewall".to_owned(),
        version: "1.2.3".parse().unwrap(),
        architecture: "x86_64".to_owned(),
        mesh_level: 1,
        not_before_s: 1,
        expires_s: 2,
        allow_downgrade_from: Vec::new(),
        encoding,
        payload: digest.clone(),
        program: digest,
    }
}

/// Nothing but the signed head itself is taken, however a head is changed.
#[test]
fn fuzz_release_head() {
    let signer = ReleaseSigner::generate().unwrap();
    let trusted = [signer.public()];
    let signed = signer.sign(&manifest(b"x", PayloadEncoding::Plain));
    let good = signed.unwrap().encode();
    let read = |bytes: &[u8]| SignedHead::decode(bytes).and_then(|head| head.verify(&trusted));
    let wanted = read(&good).unwrap();
    check!().for_each(|bytes: &[u8]| {
        assert!(read(bytes).is_err());
        let _ = SignedHead::rest_bytes(bytes);
        // Bytes in place of those of a good head.
        let at = bytes.first().map_or(0, |first| usize::from(*first)) % good.len();
        let mut changed = good.clone();
        for (to, from) in changed.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
        if let Ok(found) = read(&changed) {
            assert_eq!(found, wanted);
        }
        // A head of these bytes as its manifest has no signature.
        let length = u32::try_from(bytes.len()).unwrap();
        let head = [
            &good[..8],
            &length.to_be_bytes(),
            bytes,
            &good[good.len() - 72..],
        ]
        .concat();
        if let Ok(found) = read(&head) {
            assert_eq!(found, wanted);
        }
    });
}

/// A payload becomes exactly the program of its manifest.
#[test]
fn fuzz_release_payload() {
    check!().for_each(|bytes: &[u8]| {
        for encoding in [PayloadEncoding::Plain, PayloadEncoding::Zstd] {
            let manifest = manifest(bytes, encoding);
            let mut program = Vec::new();
            match unpack(&manifest, bytes, &mut program) {
                Ok(()) => assert_eq!(program, bytes),
                Err(_) => assert!(program.len() <= bytes.len()),
            }
        }
    });
}

#[test]
fn fuzz_release_texts() {
    check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(version) = text.parse::<ReleaseVersion>() {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        if let Ok(key) = text.parse::<ReleaseKey>() {
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        let _ = ReleaseSigner::parse(&text);
        let place = ReleaseLocation::parse(&text, "url", false, &AddressRule::default());
        assert!(!matches!(place, Ok(ReleaseLocation::File(_))));
    });
}

/// A record names files of its directory only, and a start never uses one that is not whole.
#[test]
fn fuzz_update_record() {
    let installed = InstalledProgram {
        version: "1.0.0".parse().unwrap(),
        bytes: 1,
        modified_s: 1,
    };
    let kept = serde_json::to_string(&UpdateRecord::new(installed.clone())).unwrap();
    check!().for_each(|bytes: &[u8]| {
        let words = String::from_utf8_lossy(bytes);
        let grown = kept.replacen("null", &words, 1);
        for text in [words.as_ref(), grown.as_str()] {
            let Some(record) = UpdateRecord::decode(text.as_bytes()) else {
                continue;
            };
            for program in record.programs() {
                assert!(!program.file.contains('/') && !program.file.starts_with('.'));
            }
            let plan = plan_start(record, &installed, &Default::default());
            assert_eq!(plan.program, None);
        }
    });
}
