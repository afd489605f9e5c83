//! What a run is like: its size, its settings, its faults. All of it follows from the seed.

use crate::random::Random;

/// Nodes that there may ever be; most of them join later, or never.
pub(crate) const NODES_MAX: u64 = 7;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Voters when the faults begin: 3 or 5.
    pub(crate) voters: u64,
    pub(crate) clients: u64,
    /// How long faults happen, virtual milliseconds.
    pub(crate) chaos_ms: u64,
    /// How long a client pauses between two calls, at most.
    pub(crate) think_ms_max: u64,
    /// The slowest message, milliseconds.
    pub(crate) latency_ms_max: u64,
    pub(crate) snapshot_every_entries: u64,
    pub(crate) keep_entries: u64,
    pub(crate) segment_bytes: usize,
    /// Pause between two faults, at most, milliseconds.
    pub(crate) fault_every_ms_max: u64,
    /// So small that a snapshot is many pieces.
    pub(crate) snapshot_piece_bytes: usize,
    /// So slow that there is time for something to happen meanwhile.
    pub(crate) snapshot_bytes_per_second: u64,
    /// Virtual time of one step of the run, milliseconds. Messages take at least that long.
    pub(crate) tick_ms: u64,
    /// Steps between two looks into the logs.
    pub(crate) logs_every_steps: u64,
    /// A clock that is spoiled is wrong by up to a hundred of these, milliseconds.
    pub(crate) clock_step_ms: i64,
    pub(crate) faults: Faults,
}

/// Which faults a run has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) partitions: bool,
    pub(crate) holds: bool,
    pub(crate) loss: bool,
    pub(crate) crashes: bool,
    pub(crate) slow_disks: bool,
    pub(crate) failing_disks: bool,
    pub(crate) clocks: bool,
    pub(crate) members: bool,
    /// Those that wait for a snapshot to be on its way.
    pub(crate) transfers: bool,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, "plan");
        let faults = Faults {
            partitions: random.chance(70),
            holds: random.chance(40),
            loss: random.chance(30),
            crashes: random.chance(80),
            slow_disks: random.chance(40),
            failing_disks: random.chance(40),
            clocks: random.chance(30),
            members: random.chance(50),
            transfers: false,
        };
        let mut plan = Self {
            seed,
            voters: if random.chance(70) { 3 } else { 5 },
            clients: random.within(2..9),
            chaos_ms: random.within(15_000..40_000),
            think_ms_max: random.within(20..400),
            latency_ms_max: random.within(6..120),
            snapshot_every_entries: random.within(15..150),
            keep_entries: random.within(0..30),
            segment_bytes: 1 << random.within(12..16),
            fault_every_ms_max: random.within(500..5000),
            snapshot_piece_bytes: 0,
            snapshot_bytes_per_second: 0,
            tick_ms: 5,
            logs_every_steps: 40,
            clock_step_ms: 3_600_000,
            faults,
        };
        plan.faults.transfers = random.chance(60);
        plan.snapshot_piece_bytes = random.within(200..4000) as usize;
        plan.snapshot_bytes_per_second = random.within(4_000..200_000);
        if plan.faults.transfers {
            // Whoever was away for a moment needs a snapshot, and it takes a while.
            plan.snapshot_bytes_per_second = random.within(3_000..30_000);
            plan.snapshot_every_entries = random.within(15..80);
            plan.keep_entries = random.within(0..3);
        }
        plan
    }

    /// A run of a site with tenants: `chaos_ms` of faults that a cluster in service may meet. Clocks are
    /// wrong by a quarter of an hour at most: beyond an hour time is held until an operator speaks.
    pub(crate) fn of_tenants(seed: u64, chaos_ms: u64) -> Self {
        let mut random = Random::new(seed, "plan of tenants");
        let faults = Faults {
            partitions: true,
            holds: random.chance(60),
            loss: random.chance(40),
            crashes: true,
            slow_disks: random.chance(60),
            failing_disks: random.chance(30),
            clocks: true,
            members: false,
            transfers: random.chance(30),
        };
        Self {
            seed,
            voters: 3,
            clients: 0,
            chaos_ms,
            think_ms_max: 0,
            latency_ms_max: random.within(20..80),
            snapshot_every_entries: random.within(100..600),
            keep_entries: random.within(0..100),
            segment_bytes: 1 << random.within(15..19),
            fault_every_ms_max: random.within(8_000..30_000),
            snapshot_piece_bytes: random.within(20_000..200_000) as usize,
            snapshot_bytes_per_second: random.within(500_000..5_000_000),
            tick_ms: 20,
            // The logs are long, and these runs are about what is applied.
            logs_every_steps: 1_500,
            clock_step_ms: 9_000,
            faults,
        }
    }
}
