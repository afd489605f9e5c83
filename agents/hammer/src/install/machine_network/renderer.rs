//! The program that configures the network of an image.

use super::ImageFeatures;

/// The program that an image configures its network with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renderer {
    /// systemd-networkd.
    Networkd,
    /// netplan, which writes files for systemd-networkd or NetworkManager at each boot.
    Netplan,
    /// NetworkManager, by its keyfiles.
    NetworkManager,
}

impl Renderer {
    /// The renderer of an image. `None` means that it has none that hammer can configure.
    ///
    /// systemd-networkd comes last: it is part of Debian's systemd, also where another program was
    /// chosen. netplan comes before NetworkManager, which it configures.
    #[must_use]
    pub const fn of(features: &ImageFeatures) -> Option<Self> {
        if features.netplan && (features.networkd || features.network_manager) {
            Some(Self::Netplan)
        } else if features.network_manager {
            Some(Self::NetworkManager)
        } else if features.networkd {
            Some(Self::Networkd)
        } else {
            None
        }
    }

    /// The units that must run for it.
    pub(super) const fn units(self, features: &ImageFeatures) -> &'static [&'static str] {
        match self {
            Self::NetworkManager => &["NetworkManager.service"],
            Self::Netplan if !features.networkd => &["NetworkManager.service"],
            Self::Netplan | Self::Networkd => &["systemd-networkd.service"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_what_the_image_holds() {
        let found = |netplan, network_manager, networkd, ifupdown| {
            Renderer::of(&ImageFeatures {
                netplan,
                network_manager,
                networkd,
                ifupdown,
                ..ImageFeatures::default()
            })
        };
        for (of, expected) in [
            (found(false, false, false, false), None),
            (found(false, false, false, true), None),
            (found(true, false, false, false), None),
            (found(false, false, true, false), Some(Renderer::Networkd)),
            (found(false, false, true, true), Some(Renderer::Networkd)),
            (
                found(false, true, false, false),
                Some(Renderer::NetworkManager),
            ),
            (
                found(false, true, true, false),
                Some(Renderer::NetworkManager),
            ),
            (found(true, false, true, false), Some(Renderer::Netplan)),
            (found(true, true, false, false), Some(Renderer::Netplan)),
            (found(true, true, true, true), Some(Renderer::Netplan)),
        ] {
            assert_eq!(of, expected);
        }
    }
}
