//! Field-replaceable-unit data of a machine.

use serde::{Deserialize, Serialize};

/// Field-replaceable-unit data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fru {
    /// Chassis part number.
    pub chassis_part_number: String,
    /// Chassis serial number.
    pub chassis_part_serial: String,
    /// Board maker.
    pub board_mfg: String,
    /// Board serial number.
    pub board_mfg_serial: String,
    /// Board part number.
    pub board_part_number: String,
    /// Product maker.
    pub product_manufacturer: String,
    /// Product part number, or its name.
    pub product_part_number: String,
    /// Product serial number.
    pub product_serial: String,
}

impl Fru {
    /// Fills empty fields from `other`.
    pub(crate) fn fill_from(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.chassis_part_number, &other.chassis_part_number),
            (&mut self.chassis_part_serial, &other.chassis_part_serial),
            (&mut self.board_mfg, &other.board_mfg),
            (&mut self.board_mfg_serial, &other.board_mfg_serial),
            (&mut self.board_part_number, &other.board_part_number),
            (&mut self.product_manufacturer, &other.product_manufacturer),
            (&mut self.product_part_number, &other.product_part_number),
            (&mut self.product_serial, &other.product_serial),
        ] {
            if mine.is_empty() {
                mine.clone_from(theirs);
            }
        }
    }
}
