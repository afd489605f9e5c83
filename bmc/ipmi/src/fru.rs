//! Field replaceable unit (FRU) data: manufacturer, part and serial numbers, as the Platform
//! Management FRU Information Storage Definition 1.3 lays them out.

/// Fields read of a chassis, board or product area. Further ones are ignored.
const FIELDS_MAX: usize = 8;
/// Type byte that ends the fields of an area.
const END: u8 = 0xc1;

/// The fields of a FRU. Empty means absent or unreadable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fru {
    pub chassis_part_number: String,
    pub chassis_serial: String,
    pub board_manufacturer: String,
    pub board_product: String,
    pub board_serial: String,
    pub board_part_number: String,
    pub product_manufacturer: String,
    pub product_name: String,
    pub product_part_number: String,
    pub product_serial: String,
}

/// Decodes a FRU. A damaged area leaves its fields empty: many BMCs ship with one, and the other
/// areas still count.
#[must_use]
pub fn decode(bytes: &[u8]) -> Fru {
    // Common header (8.): offsets of the areas, in units of eight bytes.
    let area = |index: usize, header: usize| -> Vec<String> {
        match bytes.get(index) {
            Some(&offset) if offset != 0 => fields(bytes, usize::from(offset) * 8, header),
            _ => Vec::new(),
        }
    };
    // Fields follow version, length, and the chassis type (10.), language and date (11.), or
    // language (12.).
    let (chassis, board, product) = (area(2, 3), area(3, 6), area(4, 3));
    let take = |fields: &[String], at: usize| fields.get(at).cloned().unwrap_or_default();
    Fru {
        chassis_part_number: take(&chassis, 0),
        chassis_serial: take(&chassis, 1),
        board_manufacturer: take(&board, 0),
        board_product: take(&board, 1),
        board_serial: take(&board, 2),
        board_part_number: take(&board, 3),
        product_manufacturer: take(&product, 0),
        product_name: take(&product, 1),
        product_part_number: take(&product, 2),
        // Field 3 is the version.
        product_serial: take(&product, 4),
    }
}

fn fields(bytes: &[u8], start: usize, header: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = start + header;
    while found.len() < FIELDS_MAX {
        // The end mark would decode as a text of one byte, so it is compared before the length is
        // taken (13.).
        let Some(&kind) = bytes.get(at).filter(|kind| **kind != END) else {
            break;
        };
        let size = usize::from(kind & 0x3f);
        // A damaged area may lack the end marker. Its fields up to the end of the data still count.
        let Some(value) = bytes.get(at + 1..at + 1 + size) else {
            break;
        };
        found.push(text(kind >> 6, value));
        at += 1 + size;
    }
    found
}

/// A field's text by its encoding (13.): binary, BCD plus, 6-bit ASCII, 8-bit ASCII.
fn text(encoding: u8, value: &[u8]) -> String {
    let text: String = match encoding {
        0 => value.iter().map(|byte| format!("{byte:02x}")).collect(),
        1 => value
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 0x0f])
            .map(bcd)
            .collect(),
        2 => value.chunks(3).flat_map(six_bit).collect(),
        _ => value.iter().map(|byte| char::from(*byte)).collect(),
    };
    // Unprogrammed parts contain control characters, which must not reach logs and terminals.
    text.chars()
        .filter(|letter| !letter.is_control())
        .collect::<String>()
        .trim()
        .to_owned()
}

fn bcd(digit: u8) -> char {
    char::from(b"0123456789 -.:,_"[usize::from(digit & 0x0f)])
}

/// Decodes 6-bit ASCII: four characters in three bytes, low bits first, offset by the space.
fn six_bit(chunk: &[u8]) -> Vec<char> {
    let bits = chunk
        .iter()
        .rev()
        .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
    let letters = chunk.len() * 8 / 6;
    (0..letters)
        .filter_map(|at| u8::try_from(bits >> (6 * at) & 0x3f).ok())
        .map(|letter| char::from(0x20 + letter))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(header: &[u8], fields: &[&[u8]]) -> Vec<u8> {
        let mut area = header.to_vec();
        for field in fields {
            area.push(0xc0 | u8::try_from(field.len()).expect("short"));
            area.extend(*field);
        }
        area.push(END);
        area.resize(area.len().next_multiple_of(8), 0);
        area
    }

    #[test]
    fn the_areas_are_read() {
        let board = area(
            &[1, 5, 0, 0, 0, 0],
            &[b"LabVendor", b"LabBoard", b"BRD1", b"PN-77"],
        );
        let product = area(
            &[1, 5, 0],
            &[b"LabVendor", b"LabServer", b"PN-100", b"v2", b"SER-M1"],
        );
        let at = u8::try_from(1 + board.len() / 8).expect("short");
        let bytes = [vec![1, 0, 0, 1, at, 0, 0, 0], board, product].concat();
        let fru = decode(&bytes);
        assert_eq!(fru.board_serial, "BRD1");
        assert_eq!(fru.board_part_number, "PN-77");
        assert_eq!(fru.product_name, "LabServer");
        assert_eq!(fru.product_serial, "SER-M1");
        assert_eq!(fru.chassis_serial, "");
        for size in 0..bytes.len() {
            assert_ne!(decode(&bytes[..size]).board_serial, "BRD", "cut at {size}");
        }
    }

    #[test]
    fn packed_text_is_unpacked() {
        // The definition's own example of 6-bit ASCII (13.3).
        assert_eq!(text(2, &[0x29, 0xdc, 0xa6]), "IPMI");
        assert_eq!(text(1, &[0x12, 0xb3]), "12-3");
        assert_eq!(text(0, &[0xab]), "ab");
    }
}
