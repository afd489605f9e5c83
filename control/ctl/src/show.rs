//! Rows of tables, one implementation a message.

use proto_public::admin::v2::{TaskInfo, VpnServiceAuthKeyResponse};
use proto_public::api::v2::{
    AuditTrace, Component, FilesystemLayout, Image, ImageUsage, Ip, Machine,
    MachineProvisioningEvent, Network, Partition, Project, ProjectInvite, Size,
    SizeImageConstraint, SizeReservation, Switch, SwitchNicWithMachine, SwitchWithMachines, Tenant,
    TenantInvite, Token, VpnNode,
};
use proto_public::metalmesh::admin::v1::{
    Amounts, AuditExport, CaRoot, CaRotation, Identity, JoinTicket, LoginUser, Node, Policy,
    PolicyUse, ProjectComponent, Quota, TokenUse, quota,
};

use crate::cmd::identity::state_of;
use crate::cmd::partition::bmc_nonce;
use crate::cmd::quota::{used_of, used_of_sizes};
use crate::output::Row;
use crate::text::{age, bytes, enum_text, meta_age, moment, or_dash, show_labels};

/// Implements [`Row`]: titles and cells, those of wide tables after the bar.
macro_rules! row {
    ($type:ty, $name:literal, |$it:ident| [$($title:literal: $cell:expr),* $(,)?],
     wide [$($wide_title:literal: $wide_cell:expr),* $(,)?]) => {
        impl Row for $type {
            const NAME: &'static str = $name;
            fn titles(wide: bool) -> Vec<&'static str> {
                let mut titles = vec![$($title),*];
                if wide {
                    titles.extend_from_slice(&[$($wide_title),*]);
                }
                titles
            }
            fn cells(&self, wide: bool) -> Vec<String> {
                let $it = self;
                let mut cells: Vec<String> = vec![$($cell.into()),*];
                if wide {
                    let more: Vec<String> = vec![$($wide_cell.into()),*];
                    cells.extend(more);
                }
                cells
            }
        }
    };
}

fn maybe(text: Option<&String>) -> String {
    or_dash(text.cloned().unwrap_or_default())
}

row!(Tenant, "metalstack.api.v2.Tenant", |t| [
    "login": t.login.clone(), "name": t.name.clone(), "age": meta_age(t.meta.as_ref()),
    "description": t.description.clone(),
], wide [
    "email": or_dash(t.email.clone()), "created by": or_dash(t.created_by.clone()),
    "labels": show_labels(t.meta.as_ref()),
]);

row!(Project, "metalstack.api.v2.Project", |p| [
    "id": p.uuid.clone(), "tenant": p.tenant.clone(), "name": p.name.clone(),
    "age": meta_age(p.meta.as_ref()), "description": p.description.clone(),
], wide ["labels": show_labels(p.meta.as_ref())]);

row!(TenantInvite, "metalstack.api.v2.TenantInvite", |i| [
    "into": i.target_tenant.clone(), "name": i.target_tenant_name.clone(),
    "role": enum_text("metalstack.api.v2.TenantRole", i.role), "by": i.tenant.clone(),
    "expires": age(i.expires_at.as_ref()),
], wide ["secret": or_dash(i.secret.clone())]);

row!(ProjectInvite, "metalstack.api.v2.ProjectInvite", |i| [
    "into": i.project.clone(), "name": i.project_name.clone(),
    "role": enum_text("metalstack.api.v2.ProjectRole", i.role), "tenant": i.tenant.clone(),
    "expires": age(i.expires_at.as_ref()),
], wide ["secret": or_dash(i.secret.clone())]);

row!(SizeReservation, "metalstack.api.v2.SizeReservation", |r| [
    "id": r.id.clone(), "name": r.name.clone(), "project": r.project.clone(),
    "size": r.size.clone(), "partitions": r.partitions.join(","), "amount": r.amount.to_string(),
], wide [
    "description": r.description.clone(), "age": meta_age(r.meta.as_ref()),
    "labels": show_labels(r.meta.as_ref()),
]);

row!(SizeImageConstraint, "metalstack.api.v2.SizeImageConstraint", |c| [
    "size": c.size.clone(), "name": maybe(c.name.as_ref()),
    "allows": c.image_constraints.iter()
        .map(|it| format!("{} {}", it.image, it.semver_match))
        .collect::<Vec<_>>().join("; "),
], wide [
    "description": maybe(c.description.as_ref()), "age": meta_age(c.meta.as_ref()),
]);

row!(Quota, "metalmesh.admin.v1.Quota", |q| [
    "of": match &q.subject {
        Some(quota::Subject::Tenant(login)) => format!("tenant {login}"),
        Some(quota::Subject::Project(id)) => format!("project {id}"),
        None => "-".to_owned(),
    },
    "machines": used_of(part(&q.used, |a| a.machines), part(&q.limits, |a| a.machines)),
    "of size": used_of_sizes(q),
    "networks": used_of(part(&q.used, |a| a.networks), part(&q.limits, |a| a.networks)),
    "ips": used_of(part(&q.used, |a| a.ips), part(&q.limits, |a| a.ips)),
], wide ["age": age(q.updated_at.as_ref())]);

fn part(of: &Option<Amounts>, get: impl Fn(&Amounts) -> Option<u32>) -> Option<u32> {
    of.as_ref().and_then(get)
}

row!(Policy, "metalmesh.admin.v1.Policy", |p| [
    "name": p.name.clone(), "methods": p.methods.len().to_string(),
    "generation": p.generation.to_string(), "by": or_dash(p.updated_by.clone()),
    "age": age(p.updated_at.as_ref()),
    "refused": used(p, |it| it.denied), "permitted": used(p, |it| it.allowed),
    "failed": used(p, |it| it.failed),
], wide [
    "asked": used(p, |it| it.asked),
    "fault": or_dash(p.r#use.as_ref().map(|it| it.fault.clone()).unwrap_or_default()),
]);

/// What came of a policy at the node that answered.
fn used(policy: &Policy, get: impl Fn(&PolicyUse) -> u64) -> String {
    let number = policy.r#use.as_ref().map(get);
    number.map_or_else(|| "-".to_owned(), |it| it.to_string())
}

row!(Component, "metalstack.api.v2.Component", |c| [
    "id": c.uuid.clone(), "type": enum_text("metalstack.api.v2.ComponentType", c.r#type),
    "identifier": c.identifier.clone(), "started": age(c.started_at.as_ref()),
    "reported": age(c.reported_at.as_ref()),
    "version": or_dash(c.version.as_ref().map(|v| v.version.clone()).unwrap_or_default()),
], wide [
    "token": or_dash(c.token.as_ref().map(|t| t.uuid.clone()).unwrap_or_default()),
    "age": meta_age(c.meta.as_ref()),
]);

row!(Token, "metalstack.api.v2.Token", |t| [
    "id": t.uuid.clone(), "user": t.user.clone(), "roles": token_roles(t),
    "expires": age(t.expires.as_ref()), "age": age(t.issued_at.as_ref()),
    "description": t.description.clone(),
], wide [
    "permissions": t.permissions.iter()
        .map(|p| format!("{}:{}", or_dash(p.subject.clone()), p.methods.join("+")))
        .collect::<Vec<_>>().join(" "),
    "labels": show_labels(t.meta.as_ref()),
]);

/// All roles of a token on one line.
pub(crate) fn token_roles(token: &Token) -> String {
    let mut roles = Vec::new();
    let maps = [
        (
            &token.project_roles,
            "metalstack.api.v2.ProjectRole",
            "project",
        ),
        (
            &token.tenant_roles,
            "metalstack.api.v2.TenantRole",
            "tenant",
        ),
        (
            &token.machine_roles,
            "metalstack.api.v2.MachineRole",
            "machine",
        ),
    ];
    for (map, name, kind) in maps {
        for (subject, role) in map {
            roles.push(format!("{kind}:{subject}={}", enum_text(name, *role)));
        }
    }
    roles.sort();
    if let Some(role) = token.admin_role {
        roles.insert(
            0,
            format!("admin={}", enum_text("metalstack.api.v2.AdminRole", role)),
        );
    }
    if let Some(role) = token.infra_role {
        roles.insert(
            0,
            format!("infra={}", enum_text("metalstack.api.v2.InfraRole", role)),
        );
    }
    or_dash(roles.join(" "))
}

row!(Partition, "metalstack.api.v2.Partition", |p| [
    "id": p.id.clone(), "age": meta_age(p.meta.as_ref()), "bmc nonce": bmc_nonce(p),
    "description": p.description.clone(),
], wide [
    "dns": p.dns_servers.iter().map(|d| d.ip.clone()).collect::<Vec<_>>().join(","),
    "ntp": p.ntp_servers.iter().map(|n| n.address.clone()).collect::<Vec<_>>().join(","),
    "labels": show_labels(p.meta.as_ref()),
]);

row!(Size, "metalstack.api.v2.Size", |s| [
    "id": s.id.clone(), "name": maybe(s.name.as_ref()), "constraints": size_constraints(s),
    "age": meta_age(s.meta.as_ref()),
], wide [
    "description": maybe(s.description.as_ref()), "labels": show_labels(s.meta.as_ref()),
]);

fn size_constraints(size: &Size) -> String {
    let one = |c: &proto_public::api::v2::SizeConstraint| {
        let kind = enum_text("metalstack.api.v2.SizeConstraintType", c.r#type);
        let (min, max) = match kind.as_str() {
            "memory" | "storage" => (bytes(c.min), bytes(c.max)),
            _ => (c.min.to_string(), c.max.to_string()),
        };
        let only = c
            .identifier
            .as_ref()
            .map(|id| format!(" of {id}"))
            .unwrap_or_default();
        format!("{kind} {min} to {max}{only}")
    };
    size.constraints
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join(", ")
}

row!(Image, "metalstack.api.v2.Image", |i| [
    "id": i.id.clone(), "name": maybe(i.name.as_ref()),
    "class": enum_text("metalstack.api.v2.ImageClassification", i.classification),
    "for": i.features.iter().map(|f| enum_text("metalstack.api.v2.ImageFeature", *f))
        .collect::<Vec<_>>().join(","),
    "expires": age(i.expires_at.as_ref()),
], wide [
    "url": i.url.clone(), "description": maybe(i.description.as_ref()),
    "labels": show_labels(i.meta.as_ref()),
]);

row!(FilesystemLayout, "metalstack.api.v2.FilesystemLayout", |f| [
    "id": f.id.clone(), "name": maybe(f.name.as_ref()),
    "filesystems": f.filesystems.iter().map(|one| {
        let format = enum_text("metalstack.api.v2.Format", one.format);
        format!("{} {format}", one.path.as_deref().unwrap_or("-"))
    }).collect::<Vec<_>>().join(", "),
    "sizes": f.constraints.as_ref().map(|c| c.sizes.join(",")).unwrap_or_default(),
], wide [
    "disks": f.disks.iter()
        .map(|d| format!("{} ({} partitions)", d.device, d.partitions.len()))
        .collect::<Vec<_>>().join(", "),
    "images": f.constraints.as_ref().map(|c| {
        let mut images: Vec<_> = c.images.iter().map(|(os, v)| format!("{os} {v}")).collect();
        images.sort();
        images.join(", ")
    }).unwrap_or_default(),
]);

row!(Network, "metalstack.api.v2.Network", |n| [
    "id": n.id.clone(), "name": maybe(n.name.as_ref()),
    "type": enum_text("metalstack.api.v2.NetworkType", n.r#type),
    "partition": maybe(n.partition.as_ref()), "project": maybe(n.project.as_ref()),
    "prefixes": n.prefixes.join(","), "ips": network_usage(n),
], wide [
    "destinations": n.destination_prefixes.join(","),
    "nat": enum_text("metalstack.api.v2.NATType", n.nat_type),
    "vrf": n.vrf.map(|vrf| vrf.to_string()).unwrap_or_default(),
    "parent": maybe(n.parent_network.as_ref()), "age": meta_age(n.meta.as_ref()),
    "labels": show_labels(n.meta.as_ref()),
]);

/// Used and available addresses.
pub(crate) fn network_usage(network: &Network) -> String {
    let Some(consumption) = &network.consumption else {
        return "-".into();
    };
    let used = |usage: &proto_public::api::v2::NetworkUsage, family: &str| {
        format!("{}/{} {family}", usage.used_ips, usage.available_ips)
    };
    let v4 = consumption.ipv4.as_ref().map(|usage| used(usage, "v4"));
    let v6 = consumption.ipv6.as_ref().map(|usage| used(usage, "v6"));
    or_dash(v4.into_iter().chain(v6).collect::<Vec<_>>().join(" "))
}

row!(Ip, "metalstack.api.v2.IP", |i| [
    "ip": i.ip.clone(), "name": or_dash(i.name.clone()), "network": i.network.clone(),
    "project": i.project.clone(), "type": enum_text("metalstack.api.v2.IPType", i.r#type),
    "age": meta_age(i.meta.as_ref()),
], wide [
    "id": i.uuid.clone(), "description": i.description.clone(),
    "labels": show_labels(i.meta.as_ref()),
]);

row!(Machine, "metalstack.api.v2.Machine", |m| [
    "id": m.uuid.clone(),
    "event": last_event(m),
    "when": age(m.recent_provisioning_events.as_ref().and_then(|e| e.last_event_time.as_ref())),
    "state": machine_state(m),
    "phase": label(m, "metalmesh.dev/phase").unwrap_or("-").to_owned(),
    "name": m.allocation.as_ref().map_or_else(|| "-".into(), |a| a.name.clone()),
    "project": m.allocation.as_ref().map_or_else(|| "-".into(), |a| a.project.clone()),
    "size": m.size.as_ref().map_or_else(|| "-".into(), |s| or_dash(s.id.clone())),
    "image": m.allocation.as_ref().and_then(|a| a.image.as_ref())
        .map_or_else(|| "-".into(), |i| i.id.clone()),
    "partition": m.partition.as_ref().map(|p| p.id.clone()).unwrap_or_default(),
    "ips": machine_ips(m),
], wide [
    "liveliness": m.status.as_ref()
        .map(|s| enum_text("metalstack.api.v2.MachineLiveliness", s.liveliness))
        .unwrap_or_default(),
    "hostname": m.allocation.as_ref().map_or_else(|| "-".into(), |a| a.hostname.clone()),
    "rack": or_dash(m.rack.clone()),
    "age": m.allocation.as_ref().map_or_else(|| "-".into(), |a| meta_age(a.meta.as_ref())),
    "reason": reason(m),
    "labels": show_labels(m.meta.as_ref()),
]);

/// The newest event; of equal times the one that the server puts first.
pub(crate) fn newest(machine: &Machine) -> Option<&MachineProvisioningEvent> {
    let recent = machine.recent_provisioning_events.as_ref()?;
    let time =
        |event: &&MachineProvisioningEvent| event.time.map(|time| (time.seconds, time.nanos));
    recent.events.iter().rev().max_by_key(time)
}

/// The newest event's name.
pub(crate) fn last_event(machine: &Machine) -> String {
    let name = newest(machine).map_or_else(|| "-".into(), event_name);
    let trouble = machine
        .recent_provisioning_events
        .as_ref()
        .map_or(0, |recent| recent.state);
    let state = "metalstack.api.v2.MachineProvisioningEventState";
    match enum_text(state, trouble).as_str() {
        "-" => name,
        trouble => format!("{name} ({trouble})"),
    }
}

/// A label of the machine.
pub(crate) fn label<'a>(machine: &'a Machine, key: &str) -> Option<&'a str> {
    let labels = machine.meta.as_ref()?.labels.as_ref()?;
    labels.labels.get(key).map(String::as_str)
}

/// Where the machine stands in its life, and since when.
pub(crate) fn phase(machine: &Machine) -> String {
    let Some(phase) = label(machine, "metalmesh.dev/phase") else {
        return "-".into();
    };
    match label(machine, "metalmesh.dev/phase-since").and_then(|since| since.parse().ok()) {
        Some(since) => format!("{phase}, for {}", age(Some(&since))),
        None => phase.to_owned(),
    }
}

/// An event's name.
pub(crate) fn event_name(event: &MachineProvisioningEvent) -> String {
    enum_text(
        "metalstack.api.v2.MachineProvisioningEventType",
        event.event,
    )
}

/// The state that an admin or a failure gave.
pub(crate) fn machine_state(machine: &Machine) -> String {
    let condition = machine
        .status
        .as_ref()
        .and_then(|status| status.condition.as_ref());
    condition.map_or_else(
        || "-".into(),
        |condition| enum_text("metalstack.api.v2.MachineState", condition.state),
    )
}

/// Why the machine is as it is.
pub(crate) fn reason(machine: &Machine) -> String {
    let condition = machine
        .status
        .as_ref()
        .and_then(|status| status.condition.as_ref());
    or_dash(
        condition
            .map(|condition| condition.description.clone())
            .unwrap_or_default(),
    )
}

fn machine_ips(machine: &Machine) -> String {
    let networks = machine
        .allocation
        .iter()
        .flat_map(|allocation| &allocation.networks);
    or_dash(
        networks
            .flat_map(|network| network.ips.clone())
            .collect::<Vec<_>>()
            .join(","),
    )
}

row!(MachineProvisioningEvent, "metalstack.api.v2.MachineProvisioningEvent", |e| [
    "time": moment(e.time.as_ref()), "age": age(e.time.as_ref()), "event": event_name(e),
    "message": e.message.clone(),
], wide []);

row!(Switch, "metalstack.api.v2.Switch", |s| [
    "id": s.id.clone(), "partition": s.partition.clone(), "rack": maybe(s.rack.as_ref()),
    "os": s.os.as_ref().map(|os| {
        format!("{} {}", enum_text("metalstack.api.v2.SwitchOSVendor", os.vendor), os.version)
    }).unwrap_or_default(),
    "ports up": format!("{}/{}", s.nics.iter().filter(|nic| port_actual(nic) == "up").count(),
        s.nics.len()),
    "machines": s.machine_connections.len().to_string(),
    "last sync": age(s.last_sync.as_ref().and_then(|sync| sync.time.as_ref())),
], wide [
    "address": s.management_ip.clone(),
    "agent": s.os.as_ref().map(|os| os.metal_core_version.clone()).unwrap_or_default(),
    "last error": s.last_sync_error.as_ref().and_then(|sync| sync.error.clone())
        .unwrap_or_default(),
]);

/// What a port really is.
pub(crate) fn port_actual(nic: &proto_public::api::v2::SwitchNic) -> String {
    nic.state.as_ref().map_or_else(
        || "-".into(),
        |state| enum_text("metalstack.api.v2.SwitchPortStatus", state.actual),
    )
}

row!(AuditTrace, "metalstack.api.v2.AuditTrace", |a| [
    "time": moment(a.timestamp.as_ref()), "user": or_dash(a.user.clone()),
    "tenant": or_dash(a.tenant.clone()), "project": maybe(a.project.as_ref()),
    "method": a.method.clone(),
    "code": a.result_code.map_or_else(|| "-".into(), |code| code.to_string()),
], wide [
    "id": a.uuid.clone(), "source": or_dash(a.source_ip.clone()), "body": maybe(a.body.as_ref()),
]);

row!(TaskInfo, "metalstack.admin.v2.TaskInfo", |t| [
    "id": t.id.clone(), "type": t.r#type.clone(),
    "state": enum_text("metalstack.admin.v2.TaskState", t.state),
    "works on": String::from_utf8_lossy(&t.payload).into_owned(),
    "ended": age(t.completed_at.as_ref()), "error": or_dash(t.last_error.clone()),
], wide ["queue": t.queue.clone(), "deadline": age(t.deadline.as_ref())]);

row!(VpnNode, "metalstack.api.v2.VPNNode", |n| [
    "id": n.id.to_string(), "name": n.name.clone(), "project": n.project.clone(),
    "addresses": or_dash(n.ip_addresses.join(",")), "online": n.online.to_string(),
    "seen": age(n.last_seen.as_ref()),
], wide []);

row!(VpnServiceAuthKeyResponse, "metalstack.admin.v2.VPNServiceAuthKeyResponse", |k| [
    "address": k.address.clone(), "key": k.auth_key.clone(),
    "ephemeral": k.ephemeral.to_string(), "reusable": k.reusable.to_string(),
    "expires": moment(k.expires_at.as_ref()),
], wide []);

row!(JoinTicket, "metalmesh.admin.v1.JoinTicket", |t| [
    "id": t.id.clone(), "kind": enum_text("metalmesh.admin.v1.AgentKind", t.kind),
    "partition": t.partition.clone(), "agent": t.agent.clone(), "state": ticket_state(t),
    "expires": age(t.expires_at.as_ref()), "age": age(t.created_at.as_ref()),
], wide ["key": or_dash(t.key_sha256.clone()), "tpm": or_dash(t.tpm_ek_sha256.clone())]);

row!(Identity, "metalmesh.admin.v1.Identity", |i| [
    "id": i.id.clone(), "kind": enum_text("metalmesh.admin.v1.IdentityKind", i.kind),
    "state": state_of(i), "joined by": enum_text("metalmesh.admin.v1.JoinMethod", i.joined_by),
    "issued": age(i.issued_at.as_ref()), "expires": age(i.expires_at.as_ref()),
    "last seen": age(i.last_seen.as_ref()),
], wide [
    "partition": or_dash(i.partition.clone()), "project": or_dash(i.project.clone()),
    "serial": i.serial.clone(), "joined with": or_dash(i.joined_with.clone()),
    "authority": i.authority.to_string(), "reason": or_dash(i.revoked_reason.clone()),
]);

row!(CaRoot, "metalmesh.admin.v1.CaRoot", |r| [
    "generation": r.generation.to_string(), "sha256": r.sha256.clone(),
    "signs": if r.signs { "yes" } else { "no" }, "expires": age(r.expires_at.as_ref()),
    "age": age(r.created_at.as_ref()),
], wide []);

row!(CaRotation, "metalmesh.admin.v1.CaRotation", |r| [
    "from": r.from.to_string(), "to": r.to.to_string(),
    "phase": enum_text("metalmesh.admin.v1.CaPhase", r.phase),
    "forced": if r.forced { "yes" } else { "no" }, "waiting": r.waiting.to_string(),
    "began": age(r.began_at.as_ref()), "until": age(r.until.as_ref()),
], wide ["switched": age(r.switched_at.as_ref()), "done": age(r.done_at.as_ref())]);

row!(ProjectComponent, "metalmesh.admin.v1.ProjectComponent", |c| [
    "id": c.id.clone(), "kind": enum_text("metalmesh.admin.v1.ProjectComponentKind", c.kind),
    "name": c.name.clone(), "expires": age(c.expires_at.as_ref()),
    "last used": age(c.last_used.as_ref()), "age": age(c.issued_at.as_ref()),
], wide ["project": c.project.clone(), "methods": c.methods.len().to_string()]);

row!(AuditExport, "metalmesh.admin.v1.AuditExport", |e| [
    "name": e.name.clone(), "sequence": e.sequence.to_string(), "behind": e.behind.to_string(),
    "missed up to": or_dash(Some(e.missed).filter(|it| *it > 0).map_or_else(String::new, |it| it.to_string())),
    "noted": age(e.at.as_ref()),
], wide []);

row!(ImageUsage, "metalstack.api.v2.ImageUsage", |u| [
    "image": u.image.as_ref().map_or_else(String::new, |it| it.id.clone()),
    "machines": u.used_by.len().to_string(),
], wide ["used by": or_dash(u.used_by.join(","))]);

row!(SwitchWithMachines, "metalstack.api.v2.SwitchWithMachines", |s| [
    "switch": s.id.clone(), "partition": s.partition.clone(), "rack": or_dash(s.rack.clone()),
    "ports": or_dash(s.connections.iter().map(connection).collect::<Vec<_>>().join(",")),
], wide []);

/// Port=machine.
fn connection(of: &SwitchNicWithMachine) -> String {
    let port = of.nic.as_ref().map_or("-", |nic| nic.name.as_str());
    let machine = of.machine.as_ref().map_or("-", |it| it.uuid.as_str());
    format!("{port}={machine}")
}

row!(TokenUse, "metalmesh.admin.v1.TokenUse", |u| [
    "id": u.uuid.clone(), "last used": age(u.last_used.as_ref()),
], wide []);

row!(LoginUser, "metalmesh.admin.v1.LoginUser", |u| [
    "login": u.login.clone(), "name": u.name.clone(), "email": or_dash(u.email.clone()),
    "logged in": age(u.logged_in_at.as_ref()), "age": age(u.created_at.as_ref()),
], wide ["password": age(u.password_set_at.as_ref())]);

row!(Node, "metalmesh.admin.v1.Node", |n| [
    "node": n.id.to_string(), "role": enum_text("metalmesh.admin.v1.NodeRole", n.role),
    "peers": or_dash(n.peer_address.clone()),
    "behind": n.behind.map_or_else(|| "-".to_owned(), |behind| behind.to_string()),
    "heard": age(n.heard_at.as_ref()), "joined": age(n.joined_at.as_ref()),
    "level": n.feature_level.to_string(),
], wide [
    "mesh": or_dash(n.mesh_addresses.join(",")), "version": or_dash(n.version.clone()),
    "expires": age(n.expires_at.as_ref()), "removed": age(n.removed_at.as_ref()),
]);

fn ticket_state(ticket: &JoinTicket) -> String {
    if ticket.revoked {
        "revoked".into()
    } else if ticket.redeemed_at.is_some() {
        "used".into()
    } else if age(ticket.expires_at.as_ref()).starts_with("in ") {
        "open".into()
    } else {
        "expired".into()
    }
}
