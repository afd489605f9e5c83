//! The catalogue of the issues of machines.

use std::fmt;

use strum::IntoStaticStr;

/// The severity of an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum IssueSeverity {
    /// Needs no action now.
    Minor,
    /// The machine cannot be used or controlled.
    Major,
    /// Other machines are endangered too.
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
            /// Severity of the issue.
            pub const fn severity(self) -> IssueSeverity {
                match self { $(Self::$name => IssueSeverity::$severity,)* }
            }
            /// The problem, in one line.
            pub const fn what(self) -> &'static str {
                match self { $(Self::$name => $what,)* }
            }
            /// The cause and the consequence.
            pub const fn why(self) -> &'static str {
                match self { $(Self::$name => $why,)* }
            }
            /// The remedy, with commands in backticks. Words in capitals stand for values.
            pub const fn mend(self) -> &'static str {
                match self { $(Self::$name => $mend,)* }
            }
        }
    };
}

issues! {
    NoPartition "no-partition" Major "the machine belongs to no partition",
        "No agent serves it, so it is neither offered nor controlled. It was created by hand, or by an agent that reported no partition.",
        "Boot it from the network of its partition, or delete it: `metalmesh machine free MACHINE -A`";
    LivelinessDead "liveliness-dead" Major "the machine gives no sign of life",
        "The machine is not allocated, and nothing was heard of it for five minutes: it is off, hangs, or has lost its network.",
        "Reset it: `metalmesh machine power MACHINE reset --wait`; then watch it: `metalmesh machine events MACHINE`";
    LivelinessUnknown "liveliness-unknown" Major "the machine is allocated and silent",
        "The installed system no longer phones home: it is off, hangs, or its owner has disabled the reports. Control takes no action.",
        "Ask its owner; to see its state: `metalmesh machine show MACHINE`; to restart it: `metalmesh machine power MACHINE reset`";
    LivelinessNotAvailable "liveliness-not-available" Minor "nothing was heard of the machine yet",
        "Its BMC is known, but the machine has never booted from the network of its partition.",
        "Boot it from the network: `metalmesh machine power MACHINE pxe && metalmesh machine power MACHINE cycle --wait`";
    FailedMachineReclaim "failed-machine-reclaim" Critical "the machine phones home although it was freed",
        "The system of a former tenant still runs on it. Its ports are isolated, but its disks are not wiped.",
        "Power it off: `metalmesh machine power MACHINE off --wait`; if the BMC refuses, cut the power by hand. Then release it: `metalmesh machine set-state MACHINE available`";
    CrashLoop "crashloop" Major "the machine boots again and again",
        "It never reaches the phase in which it waits for an allocation: a disk, the memory, the firmware or the image that it boots fails.",
        "Find the step that fails: `metalmesh machine events MACHINE`; lock the machine meanwhile: `metalmesh machine set-state MACHINE locked --reason REASON`";
    LastEventError "last-event-error" Minor "the machine had an error",
        "Something failed within the last week, or within the time that the caller asked for. It may have succeeded since.",
        "See the failure: `metalmesh machine events MACHINE`";
    BmcWithoutMac "bmc-without-mac" Minor "the BMC's MAC address is not known",
        "The BMC does not report it, so that a new lease cannot be matched with the machine.",
        "Update the BMC's firmware; to see what the BMC reports: `metalmesh machine bmc MACHINE`";
    BmcWithoutIp "bmc-without-ip" Major "the BMC's address is not known",
        "No agent has found the BMC, so the machine cannot be switched on or off.",
        "Check that the BMC gets an address from pixie, or list it in the configuration of metalmesh-bmc; then see its report: `metalmesh machine bmc MACHINE`";
    BmcInfoOutdated "bmc-info-outdated" Major "the BMC has not been read for a while",
        "Its agent failed to read the BMC for five minutes, or reported nothing for twenty: the BMC hangs, has another password, or the agent is away. A free machine whose BMC was read before is on offer to nobody until it is read again. So is one whose BMC no agent has read yet, but only its own hammer told of, in a partition with a `metalmesh-bmc`.",
        "See the last report: `metalmesh machine bmc MACHINE`; check the agents: `metalmesh doctor --only agents,partitions`";
    AsnUniqueness "asn-not-unique" Critical "another machine has the same AS number",
        "Two machines announce their addresses under one number: routes of one may lead to the other.",
        "Free the machine that was allocated last, and allocate it again: `metalmesh machine free MACHINE`";
    BmcNonDistinctIp "bmc-no-distinct-ip" Critical "another machine has the same BMC address",
        "Orders for one machine would reach the other, and could switch it off.",
        "Give the BMCs different addresses; to see the addresses: `metalmesh machine bmc`";
    BmcContested "bmc-contested" Critical "more than one BMC claims to be the machine's",
        "Two BMCs report the machine's UUID, or the one that did has another address now: orders could reach hardware that somebody else controls. No orders are sent to any of them.",
        "Find out which BMC is in the machine, then confirm it: `metalmesh machine confirm-bmc MACHINE ADDRESS`; remove the other from the BMCs' network";
    NoEventContainer "no-event-container" Major "the machine has no events",
        "Its record is incomplete: its history is not known.",
        "Boot it from the network: `metalmesh machine power MACHINE pxe && metalmesh machine power MACHINE cycle`";
    CableDisputed "cable-disputed" Critical "a machine and a switch, or two machines, disagree on a cable",
        "A cable is confirmed if both ends report it. Here the ends report different cables, or two machines claim the same port and the switch's agent cannot tell which of them it hears: one of them is wrong, or makes a false claim to get another machine's port. No port of a tenant is moved for it; a machine whose claim is refused or contested is not on offer.",
        "Check where the cable is. Lock the machine that is not there, so that its claims no longer count: `metalmesh machine set-state MACHINE locked --reason REASON`; or, once it has been silent for five minutes, delete it: `metalmesh machine free MACHINE -A`. A machine that was moved registers again after a power cycle: `metalmesh machine power MACHINE cycle`";
    CableMissing "cable-missing" Major "the machine has fewer confirmed cables than it should have",
        "It is not on offer: a port that is not confirmed as its own would stay in the network where machines boot while a tenant has the machine. It should have as many cables as its partition requires, or else as many as its NICs hear a leaf or are heard by one.",
        "Check the cable and the leaf's agent: `metalmesh doctor --only agents`; then let the machine register again: `metalmesh machine power MACHINE cycle`; to require another number of cables: `metalmesh partition update PARTITION --uplinks NUMBER`";
}

/// URL of the published catalogue.
const PAGE: &str = "https://github.com/metalmesh/metalmesh/blob/main/docs/reference/issues.md";

impl IssueCode {
    /// The entry of this name. `None` means that there is none.
    pub fn of(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|issue| issue.as_str() == name)
    }

    /// URL of its explanation.
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

    const INTRODUCTION: &str = "# Issues of machines

`metalmesh machine issues` lists the current issues; `metalmesh machine issues MACHINE` adds the reason and the remedy. `--only`, `--omit` and `--severity` filter.
The severity, in parentheses, says whom the issue affects: minor needs no action now, major keeps the machine from being used or controlled, critical endangers other machines too.
`metalmesh explain crashloop` prints the section of an issue.
Words in capitals in a command stand for values.

This page is generated from the catalogue in `proto/errors`: `ISSUES_WRITE=1 cargo test -p proto-errors`.
";

    /// A phrase as the beginning of a sentence.
    fn sentence(phrase: &str) -> String {
        let mut chars = phrase.chars();
        let first = chars.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(chars).collect()
    }

    fn impact(severity: IssueSeverity) -> &'static str {
        match severity {
            IssueSeverity::Minor => "The machine can be used; it needs no action now.",
            IssueSeverity::Major => "The machine cannot be used or controlled until it is mended.",
            IssueSeverity::Critical => "Other machines are endangered too: mend it first.",
        }
    }

    fn page() -> String {
        let mut page = INTRODUCTION.to_owned();
        for code in IssueCode::ALL {
            let (what, why, mend) = (sentence(code.what()), code.why(), code.mend());
            let severity = code.severity();
            let impact = impact(severity);
            let list = "metalmesh machine issues";
            page += &format!(
                "\n## {code}\n\n{what} ({severity}).\n\nMeaning: {why}\n\nImpact: {impact}\n\n\
                 Detect: `{list} --only {code}` lists the machines; details of one: \
                 `{list} MACHINE`.\n\nRemedy: {mend}.\n\nVerify: `{list} MACHINE --only {code}` \
                 lists nothing.\n"
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
