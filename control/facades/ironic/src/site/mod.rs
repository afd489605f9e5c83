//! The site: drivers, conductors, chassis, deploy templates, runbooks, shards, and the parts of Ironic
//! that metalmesh does not have.

mod chassis;
mod conductors;
mod documents;
mod drivers;
mod runbook_content;
mod runbooks;
mod steps;
mod templates;
mod unserved;

use control_authz::FacadeMethod;
use http::Method;

use crate::methods;
use crate::request::IronicCall;
use crate::route::{HandlerFuture, IronicRoute};

/// A handler.
type SiteHandler = for<'a> fn(&'a IronicCall<'a>) -> HandlerFuture<'a>;

/// Microversions that introduced parts of the API.
const SHARDS: u16 = 82;
const RUNBOOKS: u16 = 92;
const INSPECTION_RULES: u16 = 96;
const RUNBOOK_TRAITS: u16 = 112;

const fn route(
    verb: Method,
    path: &'static str,
    since: u16,
    method: &'static FacadeMethod,
    run: SiteHandler,
) -> IronicRoute {
    IronicRoute {
        verb,
        path,
        since,
        method,
        run,
    }
}

const fn get(path: &'static str, since: u16, run: SiteHandler) -> IronicRoute {
    route(Method::GET, path, since, &methods::SITE_GET, run)
}

/// A call that changes nothing and is recorded: it would, where Ironic has the part.
const fn unserved(verb: Method, path: &'static str, since: u16, run: SiteHandler) -> IronicRoute {
    route(verb, path, since, &methods::SITE_UNSUPPORTED, run)
}

const CHASSIS: &str = "/chassis";
const ONE_CHASSIS: &str = "/chassis/{chassis}";
const TEMPLATES: &str = "/deploy_templates";
const ONE_TEMPLATE: &str = "/deploy_templates/{template}";
const ALL_RUNBOOKS: &str = "/runbooks";
const ONE_RUNBOOK: &str = "/runbooks/{runbook}";
const TRAITS: &str = "/runbooks/{runbook}/traits";
const ONE_TRAIT: &str = "/runbooks/{runbook}/traits/{trait}";
const RULES: &str = "/inspection_rules";
const ONE_RULE: &str = "/inspection_rules/{rule}";
const PASSTHRU: &str = "/drivers/{driver}/vendor_passthru";
/// As the command line calls it.
const NAMED_PASSTHRU: &str = "/drivers/{driver}/vendor_passthru/{method}";
const CONNECTORS: &str = "/volume/connectors";
const ONE_CONNECTOR: &str = "/volume/connectors/{volume}";
const TARGETS: &str = "/volume/targets";
const ONE_TARGET: &str = "/volume/targets/{volume}";

/// Its routes.
pub(crate) static ROUTES: &[IronicRoute] = &[
    get("/drivers", 0, drivers::list),
    get("/drivers/{driver}", 0, drivers::show),
    get("/drivers/{driver}/properties", 0, drivers::properties),
    get(
        "/drivers/{driver}/raid/logical_disk_properties",
        0,
        drivers::raid_properties,
    ),
    get(
        "/drivers/{driver}/vendor_passthru/methods",
        0,
        drivers::passthru_methods,
    ),
    get(PASSTHRU, 0, drivers::passthru),
    unserved(Method::POST, PASSTHRU, 0, drivers::passthru),
    unserved(Method::PUT, PASSTHRU, 0, drivers::passthru),
    unserved(Method::PATCH, PASSTHRU, 0, drivers::passthru),
    unserved(Method::DELETE, PASSTHRU, 0, drivers::passthru),
    get(NAMED_PASSTHRU, 0, drivers::passthru),
    unserved(Method::POST, NAMED_PASSTHRU, 0, drivers::passthru),
    unserved(Method::PUT, NAMED_PASSTHRU, 0, drivers::passthru),
    unserved(Method::PATCH, NAMED_PASSTHRU, 0, drivers::passthru),
    unserved(Method::DELETE, NAMED_PASSTHRU, 0, drivers::passthru),
    get("/conductors", 0, conductors::list),
    get("/conductors/{conductor}", 0, conductors::show),
    route(
        Method::GET,
        CHASSIS,
        0,
        &methods::CHASSIS_GET,
        chassis::list,
    ),
    route(
        Method::POST,
        CHASSIS,
        0,
        &methods::CHASSIS_CREATE,
        chassis::create,
    ),
    route(
        Method::GET,
        "/chassis/detail",
        0,
        &methods::CHASSIS_GET,
        chassis::list_details,
    ),
    route(
        Method::GET,
        ONE_CHASSIS,
        0,
        &methods::CHASSIS_GET,
        chassis::show,
    ),
    route(
        Method::PATCH,
        ONE_CHASSIS,
        0,
        &methods::CHASSIS_UPDATE,
        chassis::update,
    ),
    route(
        Method::DELETE,
        ONE_CHASSIS,
        0,
        &methods::CHASSIS_DELETE,
        chassis::delete,
    ),
    route(
        Method::GET,
        TEMPLATES,
        0,
        &methods::TEMPLATES_GET,
        templates::list,
    ),
    route(
        Method::POST,
        TEMPLATES,
        0,
        &methods::TEMPLATES_CREATE,
        templates::create,
    ),
    route(
        Method::GET,
        ONE_TEMPLATE,
        0,
        &methods::TEMPLATES_GET,
        templates::show,
    ),
    route(
        Method::PATCH,
        ONE_TEMPLATE,
        0,
        &methods::TEMPLATES_UPDATE,
        templates::update,
    ),
    route(
        Method::DELETE,
        ONE_TEMPLATE,
        0,
        &methods::TEMPLATES_DELETE,
        templates::delete,
    ),
    route(
        Method::GET,
        ALL_RUNBOOKS,
        RUNBOOKS,
        &methods::RUNBOOKS_GET,
        runbooks::list,
    ),
    route(
        Method::POST,
        ALL_RUNBOOKS,
        RUNBOOKS,
        &methods::RUNBOOKS_CREATE,
        runbooks::create,
    ),
    route(
        Method::GET,
        ONE_RUNBOOK,
        RUNBOOKS,
        &methods::RUNBOOKS_GET,
        runbooks::show,
    ),
    route(
        Method::PATCH,
        ONE_RUNBOOK,
        RUNBOOKS,
        &methods::RUNBOOKS_UPDATE,
        runbooks::update,
    ),
    route(
        Method::DELETE,
        ONE_RUNBOOK,
        RUNBOOKS,
        &methods::RUNBOOKS_DELETE,
        runbooks::delete,
    ),
    route(
        Method::GET,
        TRAITS,
        RUNBOOK_TRAITS,
        &methods::RUNBOOKS_GET,
        runbooks::list_traits,
    ),
    route(
        Method::PUT,
        TRAITS,
        RUNBOOK_TRAITS,
        &methods::RUNBOOKS_UPDATE,
        runbooks::set_traits,
    ),
    route(
        Method::DELETE,
        TRAITS,
        RUNBOOK_TRAITS,
        &methods::RUNBOOKS_UPDATE,
        runbooks::remove_traits,
    ),
    route(
        Method::PUT,
        ONE_TRAIT,
        RUNBOOK_TRAITS,
        &methods::RUNBOOKS_UPDATE,
        runbooks::add_trait,
    ),
    route(
        Method::DELETE,
        ONE_TRAIT,
        RUNBOOK_TRAITS,
        &methods::RUNBOOKS_UPDATE,
        runbooks::remove_trait,
    ),
    get("/shards", SHARDS, unserved::shards),
    get(RULES, INSPECTION_RULES, unserved::list_inspection_rules),
    get(ONE_RULE, INSPECTION_RULES, unserved::show_inspection_rule),
    unserved(
        Method::POST,
        RULES,
        INSPECTION_RULES,
        unserved::create_inspection_rule,
    ),
    unserved(
        Method::DELETE,
        RULES,
        INSPECTION_RULES,
        unserved::delete_inspection_rules,
    ),
    unserved(
        Method::PATCH,
        ONE_RULE,
        INSPECTION_RULES,
        unserved::update_inspection_rule,
    ),
    unserved(
        Method::DELETE,
        ONE_RULE,
        INSPECTION_RULES,
        unserved::delete_inspection_rule,
    ),
    get("/volume", 0, unserved::volume),
    get(CONNECTORS, 0, unserved::list_connectors),
    get(TARGETS, 0, unserved::list_targets),
    get(ONE_CONNECTOR, 0, unserved::connector),
    get(ONE_TARGET, 0, unserved::target),
    unserved(Method::POST, CONNECTORS, 0, unserved::create_volume),
    unserved(Method::POST, TARGETS, 0, unserved::create_volume),
    unserved(Method::PATCH, ONE_CONNECTOR, 0, unserved::connector),
    unserved(Method::DELETE, ONE_CONNECTOR, 0, unserved::connector),
    unserved(Method::PATCH, ONE_TARGET, 0, unserved::target),
    unserved(Method::DELETE, ONE_TARGET, 0, unserved::target),
    unserved(Method::POST, "/events", 0, unserved::events),
];
