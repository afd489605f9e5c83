/// A sequence of numbers that its seed alone decides (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// `true` in this many of a hundred cases.
    pub(super) fn percent(&mut self, of: u8) -> bool {
        self.next() % 100 < u64::from(of)
    }

    /// An index below `len`. `None` if `len` is 0.
    pub(super) fn below(&mut self, len: usize) -> Option<usize> {
        let len = u64::try_from(len).ok().filter(|len| *len > 0)?;
        usize::try_from(self.next() % len).ok()
    }
}
