//! Names of enums that the wire, the storage and people use.

use control_state::{
    AgentKind, BmcAction, EventKind, Family, Format, GptType, HoldCause, LvmType, NetworkType,
    Phase,
};

#[test]
fn names_of_layouts_do_not_change() {
    for (format, name) in [
        (Format::Vfat, "vfat"),
        (Format::Ext3, "ext3"),
        (Format::Ext4, "ext4"),
        (Format::Swap, "swap"),
        (Format::Tmpfs, "tmpfs"),
        (Format::None, "none"),
    ] {
        assert_eq!(format.as_str(), name);
    }
    for (kind, name) in [
        (LvmType::Linear, "linear"),
        (LvmType::Striped, "striped"),
        (LvmType::Raid1, "raid1"),
    ] {
        assert_eq!(kind.as_str(), name);
    }
    for (kind, code) in [
        (GptType::Boot, "ef00"),
        (GptType::BiosGrub, "ef02"),
        (GptType::Linux, "8300"),
        (GptType::LinuxRaid, "fd00"),
        (GptType::LinuxLvm, "8e00"),
    ] {
        assert_eq!(kind.as_str(), code);
    }
}

#[test]
fn names_of_networks_do_not_change() {
    for (kind, name) in [
        (NetworkType::External, "external"),
        (NetworkType::Underlay, "underlay"),
        (NetworkType::Super, "super"),
        (NetworkType::SuperNamespaced, "super-namespaced"),
        (NetworkType::Child, "child"),
        (NetworkType::ChildShared, "child-shared"),
    ] {
        assert_eq!(kind.as_str(), name);
    }
    // Names of prefix pools, which are stored, contain these.
    assert_eq!((Family::V4.as_str(), Family::V6.as_str()), ("v4", "v6"));
}

#[test]
fn names_of_agents_do_not_change() {
    for (kind, name) in [
        (AgentKind::Core, "core"),
        (AgentKind::Bmc, "bmc"),
        (AgentKind::Pixie, "pixie"),
    ] {
        assert_eq!(kind.as_str(), name);
    }
}

#[test]
fn names_of_phases_and_actions_do_not_change() {
    for (phase, name) in [
        (Phase::New, "new"),
        (Phase::Wiping, "wiping"),
        (Phase::Waiting, "waiting"),
        (Phase::Installing, "installing"),
        (Phase::BootOrder, "boot-order"),
        (Phase::Rebooting, "rebooting"),
        (Phase::TenantPorts, "tenant-ports"),
        (Phase::Running, "running"),
        (Phase::ReclaimPowerOff, "reclaim-power-off"),
        (Phase::ReclaimPorts, "reclaim-ports"),
        (Phase::ReclaimBoot, "reclaim-boot"),
        (Phase::ReclaimRegister, "reclaim-register"),
        (Phase::Held(HoldCause::Install), "held"),
    ] {
        assert_eq!((phase.as_str(), phase.to_string().as_str()), (name, name));
    }
    for (action, name) in [
        (BmcAction::PowerOn, "power-on"),
        (BmcAction::PowerOff, "power-off"),
        (BmcAction::PowerReset, "power-reset"),
        (BmcAction::PowerCycle, "power-cycle"),
        (BmcAction::BootPxe, "boot-pxe"),
        (BmcAction::BootDisk, "boot-disk"),
        (BmcAction::BootBios, "boot-bios"),
        (BmcAction::LedOn, "led-on"),
        (BmcAction::LedOff, "led-off"),
        (BmcAction::SetNonce, "set-nonce"),
    ] {
        assert_eq!(action.as_str(), name);
    }
}

#[test]
fn names_of_events_do_not_change_and_read_back() {
    let names = [
        "Alive",
        "Crashed",
        "PXE Booting",
        "Planned Reboot",
        "Preparing",
        "Registering",
        "Waiting",
        "Installing",
        "Booting New Kernel",
        "Phoned Home",
        "Machine Reclaim",
    ];
    assert_eq!(EventKind::ALL.len(), names.len());
    for (kind, name) in EventKind::ALL.iter().zip(names) {
        assert_eq!(kind.as_str(), name);
        assert_eq!(name.parse::<EventKind>().unwrap(), *kind);
    }
    for unknown in ["Pxe Booting", "PxeBooting", "alive", ""] {
        let error = unknown.parse::<EventKind>().unwrap_err();
        assert!(error.message.contains("is not a known event"), "{error:?}");
    }
}
