//! The life of nodes: provision states, power, boot device, and what was observed of them.
//!
//! Handlers find the node, ask the rule, and let a pure function decide (`provision::plan`,
//! `provision::deploy`); `orders` carries decisions out. `rights` is the relation of a project to a
//! machine, which a rule of the policy cannot replace.

mod boot_device;
mod console;
mod hardware;
mod history;
mod indicators;
mod inventory;
mod orders;
mod power;
mod provision;
mod refusals;
mod rights;
mod states;
mod unsupported;
mod vendor;

use control_authz::FacadeMethod;
use http::Method;

pub(crate) use self::rights::may_use;
use crate::methods;
use crate::route::IronicRoute;

const PASSTHRU: &str = "/nodes/{node}/vendor_passthru";
/// As the command line calls it.
const NAMED_PASSTHRU: &str = "/nodes/{node}/vendor_passthru/{method}";

const fn passthru(verb: Method, path: &'static str, method: &'static FacadeMethod) -> IronicRoute {
    IronicRoute {
        verb,
        path,
        since: 0,
        method,
        run: vendor::pass,
    }
}

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/states",
        since: 0,
        method: &methods::NODES_GET,
        run: states::show,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/nodes/{node}/states/power",
        since: 0,
        method: &methods::NODES_SET_POWER,
        run: power::set,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/nodes/{node}/states/provision",
        since: 0,
        method: &methods::NODES_SET_PROVISION_STATE,
        run: provision::set,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/nodes/{node}/states/boot_mode",
        since: 0,
        method: &methods::NODES_UNSUPPORTED,
        run: unsupported::set_boot_mode,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/nodes/{node}/states/secure_boot",
        since: 0,
        method: &methods::NODES_UNSUPPORTED,
        run: unsupported::set_secure_boot,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/nodes/{node}/states/raid",
        since: 0,
        method: &methods::NODES_UNSUPPORTED,
        run: unsupported::set_raid,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/states/console",
        since: 0,
        method: &methods::NODES_GET,
        run: console::show,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/nodes/{node}/states/console",
        since: 0,
        method: &methods::NODES_UNSUPPORTED,
        run: console::set,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/management/boot_device",
        since: 0,
        method: &methods::NODES_GET,
        run: boot_device::show,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/nodes/{node}/management/boot_device",
        since: 0,
        method: &methods::NODES_SET_BOOT_DEVICE,
        run: boot_device::set,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/management/boot_device/supported",
        since: 0,
        method: &methods::NODES_GET,
        run: boot_device::supported,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/nodes/{node}/management/inject_nmi",
        since: 0,
        method: &methods::NODES_UNSUPPORTED,
        run: unsupported::inject_nmi,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/management/indicators",
        since: 0,
        method: &methods::NODES_GET,
        run: indicators::list,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/management/indicators/{indicator}",
        since: 0,
        method: &methods::NODES_GET,
        run: indicators::show,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/nodes/{node}/management/indicators/{indicator}",
        since: 0,
        method: &methods::NODES_SET_INDICATOR,
        run: indicators::set,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/management/indicators/{component}/{indicator}",
        since: 0,
        method: &methods::NODES_GET,
        run: indicators::show,
    },
    IronicRoute {
        verb: Method::PUT,
        path: "/nodes/{node}/management/indicators/{component}/{indicator}",
        since: 0,
        method: &methods::NODES_SET_INDICATOR,
        run: indicators::set,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/history",
        since: 78,
        method: &methods::NODES_GET,
        run: history::list,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/history/{event}",
        since: 78,
        method: &methods::NODES_GET,
        run: history::show,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/inventory",
        since: 81,
        method: &methods::NODES_GET,
        run: inventory::show,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/bios",
        since: 40,
        method: &methods::NODES_GET,
        run: hardware::list_bios,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/bios/{setting}",
        since: 40,
        method: &methods::NODES_GET,
        run: hardware::show_bios,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/firmware",
        since: 86,
        method: &methods::NODES_GET,
        run: hardware::list_firmware,
    },
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/vendor_passthru/methods",
        since: 0,
        method: &methods::NODES_GET,
        run: vendor::methods,
    },
    passthru(Method::GET, PASSTHRU, &methods::NODES_GET),
    passthru(Method::POST, PASSTHRU, &methods::NODES_UNSUPPORTED),
    passthru(Method::PUT, PASSTHRU, &methods::NODES_UNSUPPORTED),
    passthru(Method::DELETE, PASSTHRU, &methods::NODES_UNSUPPORTED),
    passthru(Method::GET, NAMED_PASSTHRU, &methods::NODES_GET),
    passthru(Method::POST, NAMED_PASSTHRU, &methods::NODES_UNSUPPORTED),
    passthru(Method::PUT, NAMED_PASSTHRU, &methods::NODES_UNSUPPORTED),
    passthru(Method::DELETE, NAMED_PASSTHRU, &methods::NODES_UNSUPPORTED),
    IronicRoute {
        verb: Method::GET,
        path: "/nodes/{node}/vmedia",
        since: 93,
        method: &methods::NODES_GET,
        run: vendor::virtual_media,
    },
    IronicRoute {
        verb: Method::POST,
        path: "/nodes/{node}/vmedia",
        since: 89,
        method: &methods::NODES_UNSUPPORTED,
        run: vendor::attach_media,
    },
    IronicRoute {
        verb: Method::DELETE,
        path: "/nodes/{node}/vmedia",
        since: 89,
        method: &methods::NODES_UNSUPPORTED,
        run: vendor::detach_media,
    },
];
