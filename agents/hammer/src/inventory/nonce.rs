//! The nonce that the partition's BMC agent wrote into the asset tag, read from inside the machine.
//! DCMI shows the BMC's current value; SMBIOS shows the value of the time when the firmware built
//! its tables, and is the fallback.

use std::time::Duration;

use super::Sys;
use crate::cmd::Cmd;

/// Prefix of nonces. Other asset tags are the operator's own and never leave the machine.
const PREFIX: &str = "mm-";
/// Longest time of one IPMI request.
const ASK_LIMIT: Duration = Duration::from_secs(10);
/// Group extension id, the first byte of DCMI answers.
const DCMI: u8 = 0xdc;
/// Bytes that one request reads at most (DCMI 1.5, Get Asset Tag).
const PIECE: usize = 16;
/// Bytes of an asset tag at most (DCMI 1.5); longer ones are ignored.
const TAG_MAX: usize = 63;
/// Byte order mark, by which a BMC may mark the tag as UTF-8.
const MARK: char = '\u{feff}';

/// Files of the chassis' tag (SMBIOS type 3) and of the board's (type 2).
const SMBIOS: [&str; 2] = [
    "sys/class/dmi/id/chassis_asset_tag",
    "sys/class/dmi/id/board_asset_tag",
];

/// Reads the nonce. `None` if neither the BMC nor SMBIOS shows one.
pub(super) async fn read(sys: &Sys) -> Option<String> {
    let told = if sys.path("dev/ipmi0").exists() {
        dcmi().await
    } else {
        None
    };
    let found = pick(told, sys);
    // Logs only whether there is one: the nonce itself is a credential for the join.
    tracing::debug!(found = found.is_some(), "read the BMC's nonce");
    found
}

fn pick(told: Option<String>, sys: &Sys) -> Option<String> {
    // The BMC's answer comes first: the tables in memory are of the last power-on, and may show
    // the nonce of an earlier boot.
    let smbios = SMBIOS.iter().map(|file| sys.text(file));
    told.into_iter()
        .chain(smbios)
        .find(|tag| tag.starts_with(PREFIX) && tag.len() <= TAG_MAX)
}

/// Reads the asset tag by DCMI, piece by piece. `None` if the BMC does not support it.
async fn dcmi() -> Option<String> {
    let mut tag = Vec::new();
    // A nonce is longer than one piece. A BMC may refuse to read beyond the end of a shorter tag,
    // which is none.
    let mut total = PIECE;
    while tag.len() < total {
        let count = (total - tag.len()).min(PIECE);
        let [at, count] = [tag.len(), count].map(|number| format!("{number:#04x}"));
        let ask = Cmd::new("ipmitool", ["raw", "0x2c", "0x06", "0xdc", &at, &count]);
        let answer = ask.run(ASK_LIMIT).await;
        let answer = answer.inspect_err(|error| tracing::debug!(%error, "no asset tag by DCMI"));
        let (size, piece) = parse(&answer.ok()?)?;
        // A BMC that answers with less than its stated length would be asked for ever.
        if piece.is_empty() {
            break;
        }
        tag.extend(piece);
        total = size;
    }
    tag.truncate(total);
    let text = String::from_utf8(tag).ok()?;
    Some(text.trim_start_matches(MARK).trim().to_owned())
}

/// Parses the output of `ipmitool raw`: the length of the whole tag, and the bytes of one piece.
fn parse(text: &str) -> Option<(usize, Vec<u8>)> {
    let bytes: Result<Vec<u8>, _> = text
        .split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16))
        .collect();
    match bytes.ok()?.as_slice() {
        [DCMI, total, piece @ ..] if usize::from(*total) <= TAG_MAX && piece.len() <= PIECE => {
            Some((usize::from(*total), piece.to_vec()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    #[test]
    fn what_ipmitool_prints() {
        let first = " dc 1d 6d 6d 2d 61 61 61 61 61 61 61 61 61 61 61\n 61 61\n";
        assert_eq!(parse(first), Some((29, b"mm-aaaaaaaaaaaaa".to_vec())));
        assert_eq!(parse(" dc 03 61 62 63\n"), Some((3, b"abc".to_vec())));
        assert_eq!(parse(" dc 00\n"), Some((0, vec![])));
        for other in [
            "",
            " dc\n",
            " 00 03 61 62 63\n",
            " dc 40\n",
            " dc 11 61 61 61 61 61 61 61 61 61 61 61 61 61 61 61 61 61\n",
            "Unable to send RAW command\n",
            " dc 03 6x\n",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_bmc_is_believed_before_the_tables_and_only_nonces_are_taken() {
        let chassis = "sys/class/dmi/id/chassis_asset_tag";
        let board = "sys/class/dmi/id/board_asset_tag";
        let rows: [(Option<&str>, &str, &str, Option<&str>); 6] = [
            (Some("mm-new"), "mm-old", "", Some("mm-new")),
            (None, "mm-old\n", "mm-older\n", Some("mm-old")),
            (Some("INV-17"), "INV-17\n", "mm-board\n", Some("mm-board")),
            (Some("INV-17"), "INV-17\n", "To be filled\n", None),
            (Some(""), "", "", None),
            (None, "x mm-a", "Mm-a", None),
        ];
        for (told, of_chassis, of_board, expected) in rows {
            let fake = Fake::new(&[(chassis, of_chassis), (board, of_board)]);
            let found = pick(told.map(Into::into), &fake.sys());
            assert_eq!(found.as_deref(), expected, "{told:?} {of_chassis}");
        }
        let long = format!("mm-{}", "a".repeat(TAG_MAX));
        assert_eq!(pick(Some(long), &Fake::new(&[]).sys()), None);
    }
}
