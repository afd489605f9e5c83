//! Enums of the contract and of the state, one table each.

use control_state::{self as state};
use proto_public::api::v2;

/// Two functions: to the wire number, and back (`None` for unspecified and unknown numbers).
macro_rules! pairs {
    ($($to:ident $from:ident: $state:ty => $wire:ident { $($ours:ident = $theirs:ident),* $(,)? })*) => {
        $(
            #[allow(dead_code, reason = "some tables are needed one way only")]
            pub const fn $to(value: $state) -> i32 {
                match value { $(<$state>::$ours => v2::$wire::$theirs as i32,)* }
            }
            #[allow(dead_code, reason = "some tables are needed one way only")]
            pub fn $from(number: i32) -> Option<$state> {
                match v2::$wire::try_from(number).ok()? {
                    $(v2::$wire::$theirs => Some(<$state>::$ours),)*
                    #[allow(unreachable_patterns, reason = "unspecified, and what we lack")]
                    _ => None,
                }
            }
        )*
    };
}

pairs! {
    network_type from_network_type: state::NetworkType => NetworkType {
        External = External, Underlay = Underlay, Super = Super,
        SuperNamespaced = SuperNamespaced, Child = Child, ChildShared = ChildShared,
    }
    nat_type from_nat_type: state::NatType => NatType {
        None = None, Ipv4Masquerade = Ipv4Masquerade,
    }
    network_family from_network_family: state::NetworkFamily => NetworkAddressFamily {
        V4 = V4, V6 = V6, Dual = DualStack,
    }
    family from_family: state::Family => IpAddressFamily { V4 = V4, V6 = V6 }
    ip_type from_ip_type: state::IpType => IpType { Ephemeral = Ephemeral, Static = Static }
    feature from_feature: state::ImageFeature => ImageFeature {
        Machine = Machine, Firewall = Firewall,
    }
    classification from_classification: state::Classification => ImageClassification {
        Preview = Preview, Supported = Supported, Deprecated = Deprecated,
    }
    size_constraint from_size_constraint: state::SizeConstraintType => SizeConstraintType {
        Cores = Cores, Memory = Memory, Storage = Storage, Gpu = Gpu,
    }
    availability from_availability: state::Availability => MachineState {
        Available = Available, Tainted = Tainted, Locked = Locked,
    }
    allocation_type from_allocation_type: state::AllocationType => MachineAllocationType {
        Machine = Machine, Firewall = Firewall,
    }
    component_kind from_component_kind: state::ComponentKind => ComponentType {
        Pixiecore = Pixiecore, MetalCore = MetalCore, MetalBmc = MetalBmc,
        MetalImageCacheSync = MetalImageCacheSync, MetalConsole = MetalConsole,
        MetalMetricsExporter = MetalMetricsExporter, ExternalApplication = ExternalApplication,
    }
    protocol from_protocol: state::Protocol => IpProtocol { Tcp = Tcp, Udp = Udp }
    event_kind from_event_kind: state::EventKind => MachineProvisioningEventType {
        Alive = Alive, Crashed = Crashed, PxeBooting = PxeBooting,
        PlannedReboot = PlannedReboot, Preparing = Preparing, Registering = Registering,
        Waiting = Waiting, Installing = Installing, BootingNewKernel = BootingNewKernel,
        PhonedHome = PhonedHome, MachineReclaim = MachineReclaim,
    }
    format from_format: state::Format => Format {
        Vfat = Vfat, Ext3 = Ext3, Ext4 = Ext4, Swap = Swap, Tmpfs = Tmpfs, None = None,
    }
    lvm_type from_lvm_type: state::LvmType => LvmType {
        Linear = Linear, Striped = Striped, Raid1 = Raid1,
    }
    replace_mode from_replace_mode: state::ReplaceMode => SwitchReplaceMode {
        Operational = Operational, Replace = Replace,
    }
    token_type from_token_type: state::TokenType => TokenType { Api = Api, User = User }
}

/// Liveliness. A machine that was never heard is unknown.
pub const fn liveliness(value: state::Liveliness) -> i32 {
    match value {
        state::Liveliness::Alive => v2::MachineLiveliness::Alive as i32,
        state::Liveliness::Dead => v2::MachineLiveliness::Dead as i32,
        state::Liveliness::Unknown | state::Liveliness::Unspecified => {
            v2::MachineLiveliness::Unknown as i32
        }
    }
}

/// GPT type for the wire. The contract has none for a BIOS boot partition.
pub const fn gpt_type(value: state::GptType) -> i32 {
    match value {
        state::GptType::Boot => v2::GptType::Boot as i32,
        state::GptType::BiosGrub => v2::GptType::Unspecified as i32,
        state::GptType::Linux => v2::GptType::Linux as i32,
        state::GptType::LinuxRaid => v2::GptType::LinuxRaid as i32,
        state::GptType::LinuxLvm => v2::GptType::LinuxLvm as i32,
    }
}

/// GPT type from the wire.
pub fn from_gpt_type(number: i32) -> Option<state::GptType> {
    match v2::GptType::try_from(number).ok()? {
        v2::GptType::Unspecified => None,
        v2::GptType::Boot => Some(state::GptType::Boot),
        v2::GptType::Linux => Some(state::GptType::Linux),
        v2::GptType::LinuxRaid => Some(state::GptType::LinuxRaid),
        v2::GptType::LinuxLvm => Some(state::GptType::LinuxLvm),
    }
}

/// An order to a BMC as a command of the contract. Orders that set a nonce have none.
pub fn bmc_command(action: state::BmcAction) -> Option<v2::MachineBmcCommand> {
    use state::BmcAction;
    use v2::MachineBmcCommand as Command;
    Some(match action {
        BmcAction::PowerOn => Command::On,
        BmcAction::PowerOff => Command::Off,
        BmcAction::PowerReset => Command::Reset,
        BmcAction::PowerCycle => Command::Cycle,
        BmcAction::BootBios => Command::BootToBios,
        BmcAction::BootDisk => Command::BootFromDisk,
        BmcAction::BootPxe => Command::BootFromPxe,
        BmcAction::LedOn => Command::IdentifyLedOn,
        BmcAction::LedOff => Command::IdentifyLedOff,
        BmcAction::SetNonce => return None,
    })
}

/// The BMC action for a command of the contract. `None` for a number without an action.
pub fn from_bmc_command(number: i32) -> Option<state::BmcAction> {
    use state::BmcAction;
    use v2::MachineBmcCommand as Command;
    Some(match Command::try_from(number).ok()? {
        Command::On => BmcAction::PowerOn,
        Command::Off => BmcAction::PowerOff,
        Command::Reset => BmcAction::PowerReset,
        Command::Cycle => BmcAction::PowerCycle,
        Command::BootToBios => BmcAction::BootBios,
        Command::BootFromDisk => BmcAction::BootDisk,
        Command::BootFromPxe => BmcAction::BootPxe,
        Command::IdentifyLedOn => BmcAction::LedOn,
        Command::IdentifyLedOff => BmcAction::LedOff,
        // Only the life cycle orders these two, and not through the contract.
        Command::MachineDeleted | Command::MachineCreated | Command::Unspecified => return None,
    })
}
