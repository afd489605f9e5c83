//! Sizes of waves, as an operator writes them.

use std::str::FromStr;

use proto_public::metalmesh::admin::v1::WaveSize;
use proto_public::metalmesh::admin::v1::wave_size::Size;

/// The size of a wave: `5` or `10%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaveText {
    Agents(u32),
    Percent(u32),
}

impl FromStr for WaveText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is not a size like 5 or 10%");
        Ok(match text.strip_suffix('%') {
            Some(percent) => Self::Percent(percent.parse().map_err(|_| bad())?),
            None => Self::Agents(text.parse().map_err(|_| bad())?),
        })
    }
}

impl WaveText {
    /// The size on the wire.
    pub(super) fn size(self) -> WaveSize {
        let size = match self {
            Self::Agents(agents) => Size::Agents(agents),
            Self::Percent(percent) => Size::Percent(percent),
        };
        WaveSize { size: Some(size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_or_a_share() {
        assert_eq!("5".parse::<WaveText>(), Ok(WaveText::Agents(5)));
        assert_eq!("10%".parse::<WaveText>(), Ok(WaveText::Percent(10)));
        for wrong in ["", "%", "-1", "ten", "1.5%"] {
            assert!(wrong.parse::<WaveText>().is_err(), "{wrong:?}");
        }
    }
}
