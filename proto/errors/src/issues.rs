//! The catalogue of what can be wrong with a machine.

use std::fmt;

use strum::IntoStaticStr;

/// How bad an issue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum IssueSeverity {
    /// Worth knowing.
    Minor,
    /// The machine cannot be used, or cannot be looked after.
    Major,
    /// Others are in danger too.
    Critical,
}

impl IssueSeverity {
    /// Short name for people.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for IssueSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

macro_rules! issues {
    ($($name:ident $code:literal $severity:ident $what:literal, $why:literal, $mend:literal;)*) => {
        /// An entry of the catalogue. Those that the public contract knows have its names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum IssueCode { $(#[doc = $what] $name,)* }

        impl IssueCode {
            /// Every entry.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name that users search for.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
            /// How bad it is.
            pub const fn severity(self) -> IssueSeverity {
                match self { $(Self::$name => IssueSeverity::$severity,)* }
            }
            /// The problem, in one line.
            pub const fn what(self) -> &'static str {
                match self { $(Self::$name => $what,)* }
            }
            /// Where it comes from, and why it matters.
            pub const fn why(self) -> &'static str {
                match self { $(Self::$name => $why,)* }
            }
            /// The remedy.
            pub const fn mend(self) -> &'static str {
                match self { $(Self::$name => $mend,)* }
            }
        }
    };
}

issues! {
    NoPartition "no-partition" Major "the machine has no partition",
        "No agent serves it: it is neither offered nor driven. It was made by hand, or by an agent that named none.",
        "Boot it from the network of its partition, or delete it: metalmesh machine free MACHINE -A";
    LivelinessDead "liveliness-dead" Major "the machine gives no sign of life",
        "Nobody has it, and nothing was heard of it for five minutes: it is off, hangs, or has lost its network.",
        "metalmesh machine power MACHINE reset --wait; then watch: metalmesh machine events MACHINE";
    LivelinessUnknown "liveliness-unknown" Major "the machine is silent, but a tenant has it",
        "The installed system has stopped to phone home: it is off, hangs, or its owner has silenced it. Nothing is done to it.",
        "Ask its owner; to look: metalmesh machine show MACHINE; to restart it: metalmesh machine power MACHINE reset";
    LivelinessNotAvailable "liveliness-not-available" Minor "nothing was heard of the machine yet",
        "Its BMC is known, but it never booted from the network of its partition.",
        "metalmesh machine power MACHINE pxe && metalmesh machine power MACHINE cycle --wait";
    FailedMachineReclaim "failed-machine-reclaim" Critical "the machine phones home although it was freed",
        "A former tenant's system still runs on it. Its ports are isolated, but the disks are not wiped.",
        "metalmesh machine power MACHINE off --wait; when the BMC refuses, cut the power by hand; then metalmesh machine set-state MACHINE available";
    CrashLoop "crashloop" Major "the machine boots again and again",
        "It never gets as far as to wait for an allocation: a disk, memory or firmware fails, or the image that it boots does.",
        "metalmesh machine events MACHINE; take it out meanwhile: metalmesh machine set-state MACHINE locked --reason WHY";
    LastEventError "last-event-error" Minor "the machine had an error",
        "Something failed within the last week (or the time that was asked for); it may have gone well since.",
        "metalmesh machine events MACHINE";
    BmcWithoutMac "bmc-without-mac" Minor "the BMC's MAC address is not known",
        "The BMC does not tell it, so that a new lease cannot be matched with the machine.",
        "Update the BMC's firmware; to see what it tells: metalmesh machine bmc MACHINE";
    BmcWithoutIp "bmc-without-ip" Major "the BMC's address is not known",
        "Nobody can switch the machine on or off: no agent has found its BMC.",
        "Look whether the BMC gets an address from pixie, or list it in the configuration of metalmesh-bmc; then: metalmesh machine bmc MACHINE";
    BmcInfoOutdated "bmc-info-outdated" Minor "the BMC has not been read for a while",
        "Nothing was read from the BMC for twenty minutes: it hangs, has another password, or its agent is away.",
        "metalmesh machine bmc MACHINE; metalmesh doctor --only agents,partitions";
    AsnUniqueness "asn-not-unique" Critical "another machine has the same AS number",
        "Two machines announce their addresses under one number: routes of one may lead to the other.",
        "Free the machine that was allocated last and allocate it again: metalmesh machine free MACHINE";
    BmcNonDistinctIp "bmc-no-distinct-ip" Critical "another machine has the same BMC address",
        "Orders for one machine would reach the other: a wrong one could be switched off.",
        "Give the BMCs different addresses; to see them: metalmesh machine bmc";
    BmcContested "bmc-contested" Critical "more than one BMC claims to be the machine's",
        "Two BMCs tell the machine's UUID, or the one that did has another address now: orders could reach a box that somebody else controls. No orders are sent to any of them.",
        "Find out which one is in the machine, then: metalmesh machine confirm-bmc MACHINE ADDRESS; remove the other from the BMCs' network";
    NoEventContainer "no-event-container" Major "the machine has no events",
        "Its record is incomplete: nothing can be told of its life.",
        "Boot it from the network: metalmesh machine power MACHINE pxe && metalmesh machine power MACHINE cycle";
    CableDisputed "cable-disputed" Critical "a machine and a switch, or two machines, disagree on a cable",
        "A cable is what both of its ends say. Here they say different things, or two machines say the same and the switch's agent cannot tell whom it hears: one of them is wrong, or lies to get somebody else's port. No port of a tenant is moved for it; a machine whose claim does not stand, or is contested, is not on offer.",
        "Look where the cable is. Lock the machine that is not there, so that its word counts no more: metalmesh machine set-state MACHINE locked --reason WHY; or, once it is silent for five minutes, forget it: metalmesh machine free MACHINE -A. One that was moved registers again after: metalmesh machine power MACHINE cycle";
    CableMissing "cable-missing" Major "the machine has fewer confirmed cables than it should have",
        "It is not on offer: a port that is not known to be its own would stay where machines boot while a tenant has it. It should have as many cables as its partition demands, or as many as its cards hear a leaf or are heard by one.",
        "Look at the cable, and whether the leaf's agent is there: metalmesh doctor --only agents; then have it register again: metalmesh machine power MACHINE cycle; to demand another number: metalmesh partition update PARTITION --uplinks N";
}

/// Where the catalogue can be read.
const PAGE: &str = "https://github.com/metalmesh/metalmesh/blob/main/docs/reference/issues.md";

impl IssueCode {
    /// The entry of that name.
    pub fn of(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|issue| issue.as_str() == name)
    }

    /// Where it is explained.
    pub fn url(self) -> String {
        format!("{PAGE}#{self}")
    }
}

impl fmt::Display for IssueCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const INTRODUCTION: &str = "# What can be wrong with a machine

`metalmesh machine issues` shows what is wrong now, `metalmesh machine issues MACHINE` why and what to do; `--only`, `--omit` and `--severity` choose.
The severity says how far it reaches: minor is worth knowing, major keeps the machine from being used or looked after, critical endangers others too.

This page is made from the catalogue in `proto/errors`: `ISSUES_WRITE=1 cargo test -p proto-errors`.
";

    fn page() -> String {
        let mut page = INTRODUCTION.to_owned();
        for code in IssueCode::ALL {
            let (what, why, mend) = (code.what(), code.why(), code.mend());
            let severity = code.severity();
            page += &format!(
                "\n## {code}\n\nSeverity: {severity}.\nWhat: {what}.\n\n{why}\n\nWhat to do: {mend}\n"
            );
        }
        page
    }

    #[test]
    fn the_page_is_the_catalogue() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/issues.md");
        if std::env::var_os("ISSUES_WRITE").is_some() {
            std::fs::write(&path, page()).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(there, page(), "ISSUES_WRITE=1 cargo test -p proto-errors");
    }

    #[test]
    fn every_entry_is_whole() {
        for code in IssueCode::ALL {
            assert_eq!(IssueCode::of(code.as_str()), Some(*code));
            assert!(
                code.mend().contains("metalmesh "),
                "{code} names no command"
            );
            assert!(code.url().ends_with(code.as_str()));
        }
        assert_eq!(IssueCode::of("weather"), None);
    }

    #[test]
    fn names_of_severities_do_not_change() {
        let all = [
            IssueSeverity::Minor,
            IssueSeverity::Major,
            IssueSeverity::Critical,
        ];
        let names = all.map(IssueSeverity::as_str);
        assert_eq!(names, ["minor", "major", "critical"]);
    }
}
