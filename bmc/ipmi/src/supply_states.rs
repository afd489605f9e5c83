//! The states that a power supply's sensor asserts.

/// The states that a power supply's sensor asserts, one bit each (table 42-3, type 08h).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SupplyStates(u16);

impl SupplyStates {
    /// Decodes an answer to Get Sensor Reading. `None` means that it is too short, or that the
    /// sensor is not scanned or has no reading yet.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let (&[_, flags, low], rest) = data.split_first_chunk::<3>()?;
        let high = rest.first().copied().unwrap_or_default();
        // Bit 6: scanned; bit 5: no reading.
        // Bit 7 of the states is reserved and reads as 1 (35.14).
        (flags & 0x60 == 0x40).then_some(Self(u16::from_le_bytes([low, high & 0x7f])))
    }

    /// The union of the states that two sensors of one supply assert.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, offsets: &[u8]) -> bool {
        offsets.iter().any(|offset| self.0 & 1 << offset != 0)
    }

    /// `true` if the supply is installed.
    #[must_use]
    pub fn is_present(self) -> bool {
        self.has(&[0])
    }

    /// `true` if the supply has failed.
    #[must_use]
    pub fn has_failed(self) -> bool {
        self.has(&[1])
    }

    /// `true` if the input is lost, or lost or out of range.
    #[must_use]
    pub fn has_lost_input(self) -> bool {
        self.has(&[3, 4])
    }

    /// `true` for a predicted failure, an input out of range or a configuration error.
    #[must_use]
    pub fn has_warning(self) -> bool {
        self.has(&[2, 5, 6])
    }

    /// `true` if the supply is in standby.
    #[must_use]
    pub fn is_inactive(self) -> bool {
        self.has(&[7])
    }
}
