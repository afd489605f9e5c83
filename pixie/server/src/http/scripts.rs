//! The iPXE script of a machine: identifies it, asks control, answers with its boot target.

use std::time::Duration;

use hyper::{Response, StatusCode};
use pixie_boot::{Installer, Target, script};
use proto_types::{MacAddr, MachineId};
use tokio::time::timeout;

use super::{Body, Context, plain};
use crate::clock::now_ms;
use crate::control::{ControlError, Seen};

/// Time limit of the call to control. After it the machine boots by the last desired state.
const CONTROL_WAIT: Duration = Duration::from_secs(2);

/// The query of iPXE's request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    mac: Option<MacAddr>,
    /// `None` in the first request of a boot. Empty means that the firmware has no UUID.
    uuid: Option<String>,
    /// Architecture as in DHCP option 93.
    arch: u16,
    /// `true` if a waiting machine polls; not a new boot.
    again: bool,
}

impl Query {
    fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let (mut platform, mut buildarch) = ("", "");
        for (name, value) in text.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "mac" => query.mac = value.replace('-', ":").parse().ok(),
                "uuid" => query.uuid = Some(value.into()),
                "platform" => platform = value,
                "buildarch" => buildarch = value,
                "again" => query.again = value == "1",
                _ => {}
            }
        }
        // iPXE reports its own build, not option 93. An x86 build on UEFI counts as 64-bit.
        query.arch = match (platform, buildarch) {
            ("efi", "i386") => 6,
            ("efi", "arm64") => 11,
            ("efi", _) => 7,
            _ => 0,
        };
        query
    }
}

/// Answers with a script.
pub(super) async fn script(context: &Context, query: &str) -> Response<Body> {
    let query = Query::parse(query);
    let network = &context.shared.config.networks[context.network].network;
    let base = network.http_base();
    let Some(mac) = query.mac else {
        return plain(StatusCode::BAD_REQUEST, "mac is missing or malformed\n");
    };
    // Any host can name any MAC. The lease ties the request to the card, so that no host learns or
    // triggers another machine's boot.
    if context.shared.holder(context.network, context.from) != Some(mac) {
        tracing::warn!(%mac, from = %context.from, "script refused: the address is not its lease");
        return plain(
            StatusCode::FORBIDDEN,
            "this address is not the lease of that mac\n",
        );
    }
    // The URL from DHCP has no UUID. The answer sends iPXE back with the one from SMBIOS.
    let Some(uuid) = query.uuid else {
        return plain(StatusCode::OK, script::identify(&base, mac));
    };
    let Some(machine) = identify(context, &uuid, mac) else {
        tracing::warn!(%mac, uuid, "no SMBIOS UUID");
        let why = "the firmware reports no SMBIOS UUID";
        return plain(StatusCode::OK, script::nothing(&base, mac, why));
    };
    // A machine must not boot as another one by naming its UUID. The card's owner decides.
    let owner = context.shared.desired().machines.owner(mac);
    if let Some(owner) = owner.filter(|owner| *owner != machine) {
        tracing::warn!(%mac, %machine, %owner, "script refused: the card is another machine's");
        let why =
            format!("card {mac} belongs to machine {owner}, not {machine}: remove that first");
        return plain(StatusCode::OK, script::nothing(&base, mac, &why));
    }
    let seen = Seen {
        machine,
        mac,
        arch: query.arch,
        seen_ms: now_ms(),
        to_disk: false,
        relayed: context.shared.relayed(mac),
    };
    let target = if query.again {
        // A poll is answered from the table: hundreds of held machines poll, and each event would
        // be a write in control.
        last_good(context, &seen)
    } else {
        ask(context, seen).await
    };
    context
        .shared
        .boots()
        // Before the script is sent: the installer that it starts asks for a ticket, which is
        // refused without this note.
        .note(machine, mac, target == Target::Hammer, now_ms());
    tracing::info!(%machine, %mac, ?target, "script");
    let text = match target {
        Target::Hammer => hammer(context, &base, machine, mac),
        Target::Disk => script::disk(machine),
        Target::Nothing => script::nothing(
            &base,
            mac,
            &format!("machine {machine} is held out of service"),
        ),
    };
    plain(StatusCode::OK, text)
}

/// The script that boots the wanted installer, or one that waits until it is available.
fn hammer(context: &Context, base: &str, machine: MachineId, mac: MacAddr) -> String {
    let (shared, desired) = (&context.shared, context.shared.desired());
    let fetched = shared.installer.pair_of(&desired.installer);
    let trouble = shared.installer.trouble();
    let (fetched, trouble) = (
        fetched.as_ref().map(|pair| pair.key.as_str()),
        trouble.as_ref().map(|trouble| trouble.text.as_str()),
    );
    let pair = match desired.installer.installer(fetched, trouble) {
        Installer::Own => None,
        Installer::Pair(key) => Some(key),
        Installer::Waits(why) => {
            tracing::warn!(%machine, %mac, why, "installer not available yet");
            return script::not_yet(base, mac, &why);
        }
    };
    let own = &shared.config.commandline;
    script::hammer(&script::Hammer {
        http_base: base,
        machine,
        mac,
        pair,
        commandline: desired.installer.commandline(own, &desired.commandline),
    })
}

/// Identifies a machine by its UUID or, if that is blank, by its Ethernet address.
fn identify(context: &Context, uuid: &str, mac: MacAddr) -> Option<MachineId> {
    // Boards without a UUID show all zeros or all ones; each such board would be the same machine.
    let told = uuid.parse::<MachineId>().ok();
    told.filter(|id| !id.uuid().is_nil() && !id.uuid().is_max())
        .or_else(|| {
            context
                .shared
                .desired()
                .machines
                .find(None, mac)
                .map(|machine| machine.id)
        })
}

/// Reports the boot to control, whose answer decides because it is newer than the table. Without an
/// answer in time the table decides, and the event goes to the spool with the outcome: control may
/// have wanted another target meanwhile.
async fn ask(context: &Context, seen: Seen) -> Target {
    let shared = &context.shared;
    match timeout(CONTROL_WAIT, shared.control.seen(seen.clone())).await {
        Ok(Ok(target)) => {
            shared.control_answered();
            target.unwrap_or_else(|| last_good(context, &seen))
        }
        // Not spooled: control would refuse the event again.
        Ok(Err(ControlError::Refused(reason))) => {
            tracing::warn!(machine = %seen.machine, mac = %seen.mac, reason, "event refused");
            last_good(context, &seen)
        }
        // A call without an answer may have arrived. Control recognises the repetition of a report
        // by card and time.
        Ok(Err(ControlError::Away(_))) | Err(_) => {
            let target = last_good(context, &seen);
            let to_disk = target == Target::Disk;
            shared.spool.add(Seen { to_disk, ..seen });
            target
        }
    }
}

/// The target in the last desired state. An unknown machine boots the installer, which registers
/// it.
fn last_good(context: &Context, seen: &Seen) -> Target {
    let desired = context.shared.desired();
    let known = desired.machines.find(Some(seen.machine), seen.mac);
    known.map_or(Target::Hammer, |known| known.target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_ipxe_is_read() {
        let query = Query::parse(
            "mac=52-54-00-77-01-01&uuid=6f1c&platform=efi&buildarch=x86_64&again=1&x&y=",
        );
        assert_eq!(query.mac, Some(MacAddr([0x52, 0x54, 0, 0x77, 1, 1])));
        assert_eq!(query.uuid.as_deref(), Some("6f1c"));
        assert_eq!((query.arch, query.again), (7, true));
        assert_eq!(Query::parse("uuid=&platform=pcbios&buildarch=i386").arch, 0);
        assert_eq!(Query::parse("mac=1"), Query::default());
        assert_eq!(Query::parse("platform=efi&buildarch=arm64").arch, 11);
    }
}
