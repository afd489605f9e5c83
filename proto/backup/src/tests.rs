use crate::{
    BackupError, Encryption, FORMAT, Head, Identities, Item, NewKey, Reader, Recipients, Writer,
};

fn head() -> Head {
    Head {
        format: FORMAT,
        made_by: "0.1.0".into(),
        made_at_ms: 1_700_000_000_000,
        cluster: "east".into(),
        cluster_id: "c1".into(),
        node: 1,
        term: 3,
        revision: 42,
        feature_level: 1,
        encryption: Encryption::None,
    }
}

fn rows() -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..2000_u32)
        .map(|n| {
            (
                format!("machine/{n}").into_bytes(),
                n.to_be_bytes().repeat(40),
            )
        })
        .collect()
}

fn backup(recipients: &Recipients) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), head(), recipients).unwrap();
    if !recipients.is_empty() {
        writer.data_key(b"data key").unwrap();
    }
    for (key, value) in rows() {
        writer.row(&key, &value).unwrap();
    }
    let (bytes, summary) = writer.finish().unwrap();
    assert_eq!(summary.rows, 2000);
    bytes
}

fn read(bytes: &[u8], keys: Option<&Identities>) -> Result<Vec<Item>, BackupError> {
    let mut reader = Reader::open(bytes, keys)?;
    let mut items = Vec::new();
    while let Some(item) = reader.item()? {
        items.push(item);
    }
    Ok(items)
}

fn encrypted() -> (Vec<u8>, Identities) {
    let key = NewKey::generate();
    let recipients = Recipients::parse([key.recipient().as_str()]).unwrap();
    (backup(&recipients), Identities::parse(&key.file()).unwrap())
}

#[test]
fn what_goes_in_comes_out() {
    let (bytes, keys) = encrypted();
    let items = read(&bytes, Some(&keys)).unwrap();
    assert_eq!(items[0], Item::DataKey(b"data key".to_vec()));
    let expected = rows()
        .into_iter()
        .map(|(key, value)| Item::Row { key, value });
    assert!(items[1..].iter().cloned().eq(expected));
    // The head needs no key, and says nothing that the content would not bear out.
    let said = Head::read(&mut &bytes[..]).unwrap();
    assert_eq!((said.revision, said.encryption), (42, Encryption::Age));
    assert!(bytes.len() < 100_000, "it is compressed");
}

#[test]
fn a_plain_backup_has_no_key() {
    let plain = Recipients::parse([]).unwrap();
    let bytes = backup(&plain);
    assert_eq!(read(&bytes, None).unwrap().len(), 2000);
    let mut writer = Writer::new(Vec::new(), head(), &plain).unwrap();
    assert!(matches!(writer.data_key(b"k"), Err(BackupError::PlainKey)));
}

#[test]
fn the_wrong_key_and_none() {
    let (bytes, _) = encrypted();
    let (_, other) = encrypted();
    assert!(matches!(read(&bytes, None), Err(BackupError::NeedsKey)));
    assert!(matches!(
        read(&bytes, Some(&other)),
        Err(BackupError::WrongKey)
    ));
    assert!(matches!(
        Identities::parse("# nothing"),
        Err(BackupError::Identity)
    ));
    let error = Recipients::parse(["ssh-rsa AAAA"]).unwrap_err().to_string();
    assert!(error.contains("ssh-rsa"), "{error}");
}

#[test]
fn cut_anywhere_it_is_refused() {
    let (bytes, keys) = encrypted();
    let plain = backup(&Recipients::parse([]).unwrap());
    for (bytes, keys) in [(&bytes, Some(&keys)), (&plain, None)] {
        for end in (0..bytes.len())
            .step_by(97)
            .chain(bytes.len() - 40..bytes.len())
        {
            let error = read(&bytes[..end], keys).unwrap_err();
            assert!(
                matches!(
                    error,
                    BackupError::Truncated { .. }
                        | BackupError::Foreign
                        | BackupError::Damaged { .. }
                ),
                "{end}: {error}"
            );
        }
    }
    let error = read(&plain[..plain.len() - 5], None).unwrap_err();
    assert!(error.to_string().contains("cut short"), "{error}");
}

#[test]
fn changed_anywhere_it_is_refused() {
    let (bytes, keys) = encrypted();
    let plain = backup(&Recipients::parse([]).unwrap());
    for (bytes, keys) in [(&bytes, Some(&keys)), (&plain, None)] {
        let mut bytes = bytes.clone();
        for at in (0..bytes.len()).step_by(61) {
            bytes[at] ^= 0x10;
            assert!(read(&bytes, keys).is_err(), "byte {at}");
            bytes[at] ^= 0x10;
        }
        bytes.push(0);
        assert!(read(&bytes, keys).is_err(), "a byte more");
    }
}

#[test]
fn additions_that_change_no_record_are_refused() {
    let plain = backup(&Recipients::parse([]).unwrap());
    let text = b"\"format\":2,";
    let at = plain
        .windows(text.len())
        .position(|part| part == text)
        .unwrap();
    let with = |addition: &[u8]| [&plain[..at], addition, &plain[at..]].concat();
    // A skippable frame of zstd, which a decoder passes over (RFC 8878, section 3.1.2).
    let skippable = [&plain[..], b"\x50\x2a\x4d\x18\x03\0\0\0abc"].concat();
    let empty_frame = [&plain[..], &zstd::encode_all(&b""[..], 3).unwrap()].concat();
    for (name, changed) in [
        ("unknown field", with(b"\"note\":\"x\",")),
        ("space", with(b" ")),
        ("skippable frame", skippable),
        ("empty frame", empty_frame),
    ] {
        let error = read(&changed, None).expect_err(name);
        assert!(
            matches!(error, BackupError::Damaged { .. }),
            "{name}: {error}"
        );
    }
}

#[test]
fn other_versions_are_named() {
    for (format, made_by) in [
        (FORMAT + 1, "version 9.9.9, or newer"),
        (FORMAT - 1, "version 9.9.9"),
    ] {
        let other = Head {
            format,
            made_by: "9.9.9".into(),
            ..head()
        };
        let bytes = Writer::new(Vec::new(), other, &Recipients::parse([]).unwrap());
        let (bytes, _) = bytes.unwrap().finish().unwrap();
        let error = read(&bytes, None).unwrap_err().to_string();
        assert!(error.contains("metalmeshd that made it"), "{error}");
        assert!(error.ends_with(made_by), "{error}");
    }
    let error = read(b"PK\x03\x04 this is a zip file, surely", None).unwrap_err();
    assert!(matches!(error, BackupError::Foreign));
}

#[test]
fn fuzz_any_bytes_are_read_or_refused() {
    let plain = backup(&Recipients::parse([]).unwrap());
    let start = plain.iter().filter(|b| **b == b'\n').count().min(2);
    let body = plain
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'\n')
        .nth(start - 1)
        .map_or(0, |(at, _)| at + 1);
    bolero::check!().for_each(|input: &[u8]| {
        let _whole_or_not = read(input, None);
        let with_head = [&plain[..body], input].concat();
        assert!(read(&with_head, None).is_err());
    });
}
