use super::Expression;

/// Where the kernel calls a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseChain {
    /// Packets that arrive, before the kernel puts fragments together. The policy is accept.
    Prerouting,
    /// Packets that are forwarded. The policy is drop.
    Forward,
    /// Packets for the firewall itself. The policy is drop.
    Input,
    /// Packets of the firewall itself. The policy is accept: nothing is dropped there.
    Output,
    /// Source NAT. The policy is accept: nothing is dropped there.
    Postrouting,
}

/// A rule of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NftRule {
    /// Expressions in their order.
    pub expressions: Vec<Expression>,
}

/// A chain and its rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Hook of a base chain. `None` for a chain that others jump to.
    pub base: Option<BaseChain>,
    /// Rules in their order.
    pub rules: Vec<NftRule>,
}

impl BaseChain {
    /// Every base chain that we make.
    pub const ALL: [Self; 5] = [
        Self::Prerouting,
        Self::Forward,
        Self::Input,
        Self::Output,
        Self::Postrouting,
    ];

    /// Number of the hook in the family `inet`.
    #[must_use]
    pub fn hook(self) -> u32 {
        match self {
            Self::Prerouting => 0,
            Self::Input => 1,
            Self::Forward => 2,
            Self::Output => 3,
            Self::Postrouting => 4,
        }
    }

    /// Priority: `forward`, `input` and `output` come after the base rules of the image (0), `postrouting` is that of
    /// source NAT. Fragments are put together at -400.
    #[must_use]
    pub fn priority(self) -> i32 {
        match self {
            Self::Prerouting => -450,
            Self::Forward | Self::Input | Self::Output => 1,
            Self::Postrouting => 100,
        }
    }

    /// Type of the chain.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Prerouting | Self::Forward | Self::Input | Self::Output => "filter",
            Self::Postrouting => "nat",
        }
    }

    /// Verdict of packets that no rule decides about.
    #[must_use]
    pub fn accepts(self) -> bool {
        matches!(self, Self::Prerouting | Self::Output | Self::Postrouting)
    }
}
