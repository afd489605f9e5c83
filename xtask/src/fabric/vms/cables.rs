//! Guests and the cables between them.

/// Machines of the site. Each has a NIC at the port of its number on both leaves.
pub(super) const MACHINES: usize = 6;
/// Number of the guest with control and machines.
pub(super) const SITE: usize = 3;

/// A switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct SwitchVm {
    pub(super) name: &'static str,
    /// Last part of its addresses.
    pub(super) number: u8,
    pub(super) is_leaf: bool,
}

pub(super) const SWITCHES: [SwitchVm; 3] = [
    SwitchVm {
        name: "leaf11",
        number: 11,
        is_leaf: true,
    },
    SwitchVm {
        name: "leaf12",
        number: 12,
        is_leaf: true,
    },
    SwitchVm {
        name: "spine21",
        number: 21,
        is_leaf: false,
    },
];
const SPINE: usize = 2;

/// A NIC of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) guest: usize,
    /// Name of the device in the guest.
    pub(super) device: String,
}

/// A cable.
#[derive(Clone, Debug)]
pub(super) struct Cable {
    pub(super) ends: [End; 2],
}

impl Cable {
    fn new(one: (usize, &str), other: (usize, &str)) -> Self {
        let ends = [one, other].map(|(guest, device)| End {
            guest,
            device: device.to_owned(),
        });
        Self { ends }
    }
}

/// All cables, in the order of their numbers.
pub(super) fn all() -> Vec<Cable> {
    let mut cables = Vec::new();
    for (index, switch) in SWITCHES.iter().enumerate() {
        cables.push(Cable::new(
            (index, "mgmt"),
            (SITE, &format!("mg{}", switch.number)),
        ));
    }
    for leaf in 0..SPINE {
        cables.push(Cable::new(
            (leaf, "swp31"),
            (SPINE, &format!("swp{}", leaf + 1)),
        ));
        for machine in 1..=MACHINES {
            cables.push(Cable::new(
                (leaf, &format!("swp{machine}")),
                (SITE, &format!("m{machine}e{leaf}")),
            ));
        }
    }
    cables
}

/// A NIC of a guest as QEMU has it.
#[derive(Clone, Debug)]
pub(super) struct Nic {
    /// Number of its cable.
    pub(super) cable: usize,
    /// Its end of the cable.
    pub(super) side: usize,
}

impl Nic {
    /// Name of QEMU's network back-end.
    pub(super) fn id(&self) -> String {
        format!("cable{}", self.cable)
    }

    fn mac(&self) -> String {
        format!("52:54:00:00:{:02x}:{:02x}", self.side, self.cable)
    }
}

/// The NICs of a guest.
pub(super) fn nics(guest: usize) -> Vec<Nic> {
    let mut nics = Vec::new();
    for (number, cable) in all().iter().enumerate() {
        let sides = cable.ends.iter().enumerate();
        let own = sides.filter(|(_, end)| end.guest == guest);
        nics.extend(own.map(|(side, _)| Nic {
            cable: number,
            side,
        }));
    }
    nics
}

/// Pairs of MAC and device name of a guest's NICs, for its init.
pub(super) fn names(guest: usize) -> String {
    let cables = all();
    let pair = |nic: &Nic| {
        let device = &cables[nic.cable].ends[nic.side].device;
        format!("{}={device}", nic.mac())
    };
    nics(guest).iter().map(pair).collect::<Vec<_>>().join(",")
}

/// QEMU's arguments for a guest's NICs.
pub(super) fn arguments(guest: usize, dir: &std::path::Path) -> Vec<String> {
    let path = |cable: usize, side: usize| format!("{}/{cable}.{side}", dir.display());
    let mut arguments = Vec::new();
    for nic in nics(guest) {
        let (cable, id) = (nic.cable, nic.id());
        let (local, remote) = (path(cable, nic.side), path(cable, 1 - nic.side));
        arguments.push("-netdev".into());
        arguments.push(format!(
            "dgram,id={id},local.type=unix,local.path={local},remote.type=unix,remote.path={remote}"
        ));
        arguments.push("-device".into());
        // An empty option ROM: the guest does not boot from the network.
        arguments.push(format!(
            "virtio-net-pci,netdev={id},mac={},romfile=",
            nic.mac()
        ));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_hangs_on_both_leaves() {
        let cables = all();
        for machine in 1..=MACHINES {
            for leaf in 0..2 {
                let site = End {
                    guest: SITE,
                    device: format!("m{machine}e{leaf}"),
                };
                let cable = cables.iter().find(|cable| cable.ends.contains(&site));
                let other = &cable.unwrap().ends[0];
                assert_eq!(
                    (other.guest, other.device.as_str()),
                    (leaf, &*format!("swp{machine}"))
                );
            }
        }
        assert_eq!(nics(SPINE).len(), 3);
        assert!(names(SPINE).contains("52:54:00:00:00:02=mgmt"));
    }
}
