//! The way of a port into the bridge of a segment.

use rtnetlink::LinkBridgePort;
use rtnetlink::packet_route::link::InfoBridgePort;

use super::link::Link;
use super::requests::change;
use super::{Linux, failed};
use crate::back_end::NosError;

/// A request to the kernel by which a port enters a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// Brings the port up or down.
    SetUp(bool),
    /// Puts the port into the bridge.
    Join,
    /// Sets whether the port reaches other private ports.
    SetPrivate(bool),
}

/// The requests by which a port enters a bridge, in their order.
///
/// A port has flags only while it is in a bridge, and begins with their defaults: open. One request
/// cannot do both, because the kernel sets the flags in the old bridge before the port leaves it. A
/// port that is to be private therefore enters down, and stays so if a later request fails. Its
/// machine sees a link that goes away for a moment.
fn requests(link: &Link, bridge: u32, is_private: bool) -> Vec<Request> {
    let set_private = Request::SetPrivate(is_private);
    if link.controller == Some(bridge) {
        return vec![set_private];
    }
    if is_private && link.up {
        let [down, up] = [false, true].map(Request::SetUp);
        return vec![down, Request::Join, set_private, up];
    }
    vec![Request::Join, set_private]
}

impl Linux {
    /// Puts a port into a bridge, or changes its privacy there.
    pub(super) async fn enter_bridge(
        &self,
        link: &Link,
        bridge: u32,
        is_private: bool,
    ) -> Result<(), NosError> {
        for request in requests(link, bridge, is_private) {
            self.request_entry(link, bridge, request).await?;
        }
        Ok(())
    }

    async fn request_entry(
        &self,
        link: &Link,
        bridge: u32,
        request: Request,
    ) -> Result<(), NosError> {
        let (port, change) = (&link.name, change(link.index));
        match request {
            Request::SetUp(up) => {
                let change = if up { change.up() } else { change.down() };
                self.set(change.build(), || format!("set {port} up={up}"))
                    .await
            }
            Request::Join => {
                let join = change.controller(bridge).build();
                self.set(join, || format!("put {port} into its segment"))
                    .await
            }
            Request::SetPrivate(is_on) => {
                let flag = LinkBridgePort::new(link.index)
                    .append_info_data(InfoBridgePort::Isolated(is_on));
                let set = self.handle.link().set_port(flag.build()).execute().await;
                set.map_err(|e| failed(format!("set {port} private={is_on}"), e))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proto_wire_lldp::Mac;

    use super::*;
    use crate::linux::link::{BridgePort, Kind};

    const QUARANTINE: u32 = 3;
    const BRIDGE: u32 = 4;

    fn port(controller: u32, up: bool, is_private: bool) -> Link {
        Link {
            index: 9,
            name: "swp1".into(),
            kind: Kind::Other,
            mac: Mac::default(),
            up,
            carrier: up,
            controller: Some(controller),
            mtu: 1500,
            port: BridgePort {
                is_private,
                ..BridgePort::default()
            },
            learns_link_local: false,
            has_vlan: false,
            routes: false,
            is_unnumbered: true,
        }
    }

    /// The port after a request, as the kernel carries it out.
    fn after(mut link: Link, request: Request) -> Link {
        match request {
            Request::SetUp(up) => link.up = up,
            Request::Join => {
                link.controller = Some(BRIDGE);
                link.port = BridgePort::default();
            }
            Request::SetPrivate(is_on) => link.port.is_private = is_on,
        }
        link
    }

    #[test]
    fn a_port_is_private_before_it_forwards_whichever_request_fails() {
        let (down, up) = (Request::SetUp(false), Request::SetUp(true));
        let [open, private] = [false, true].map(Request::SetPrivate);
        let join = Request::Join;
        for (link, is_private, expected) in [
            (
                port(QUARANTINE, true, false),
                true,
                vec![down, join, private, up],
            ),
            (port(QUARANTINE, false, false), true, vec![join, private]),
            (port(QUARANTINE, true, false), false, vec![join, open]),
            (port(QUARANTINE, false, false), false, vec![join, open]),
            (port(BRIDGE, true, true), false, vec![open]),
            (port(BRIDGE, true, true), true, vec![private]),
            // An entry whose last two requests failed.
            (port(BRIDGE, false, false), true, vec![private]),
        ] {
            let made = requests(&link, BRIDGE, is_private);
            assert_eq!(made, expected, "{link:?} to private={is_private}");
            let was_up = link.up;
            let mut now = link;
            for request in made {
                now = after(now, request);
                let is_open = now.up && now.controller == Some(BRIDGE) && !now.port.is_private;
                assert!(!is_private || !is_open, "open after {request:?}");
            }
            assert_eq!(
                (now.controller, now.port.is_private, now.up),
                (Some(BRIDGE), is_private, was_up)
            );
        }
    }
}
