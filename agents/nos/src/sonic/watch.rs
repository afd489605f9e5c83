//! Tasks that hear of changes and of neighbours.

use std::sync::Arc;
use std::time::Duration;

use proto_wire_lldp::Frame;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::database::Database;
use super::db::Db;
use super::error::SonicError;
use super::observe::parse_mac;
use super::rows::Row;
use crate::lldp::Neighbours;

/// Pause before redis is asked again after a failure.
const AGAIN: Duration = Duration::from_secs(1);
/// Interval in which SONiC's table of neighbours is read.
const INTERVAL: Duration = Duration::from_secs(2);
/// Time that a neighbour stays after it was read, seconds. SONiC removes it when its own time ends.
const TTL_S: u16 = 6;

/// Changes of configuration and of ports. SONiC turns keyspace notifications on by itself.
const PATTERNS: [&str; 4] = [
    "__keyspace@4__:*",
    "__keyspace@0__:PORT_TABLE:*",
    "__keyspace@0__:INTF_TABLE:*",
    "__keyspace@0__:ISOLATION_GROUP_TABLE:*",
];

/// Notifies of every change.
pub(super) async fn changes(database: Database, changed: Arc<Notify>) {
    loop {
        let ended = database.follow(&PATTERNS, || changed.notify_one()).await;
        if let Err(error) = ended {
            tracing::debug!(%error, "no news from SONiC");
        }
        // Changes in between were told to nobody.
        changed.notify_one();
        tokio::time::sleep(AGAIN).await;
    }
}

/// Keeps the table of neighbours as SONiC's own LLDP knows them.
pub(super) async fn neighbours(database: Database, table: Neighbours) {
    loop {
        if let Err(error) = read(&database, &table).await {
            tracing::debug!(%error, "no neighbours from SONiC");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn read(database: &Database, table: &Neighbours) -> Result<(), SonicError> {
    const ENTRY: &str = "LLDP_ENTRY_TABLE:";
    let ports = database.keys(Db::Config, &["PORT|"]).await?;
    let keys = ports.iter().filter_map(|key| key.strip_prefix("PORT|"));
    let keys: Vec<String> = keys.map(|port| format!("{ENTRY}{port}")).collect();
    for (key, row) in database.rows(Db::Appl, &keys).await? {
        table.heard(key.trim_start_matches(ENTRY), frame(&row), Instant::now());
    }
    Ok(())
}

fn frame(row: &Row) -> Frame {
    let text = |name| row.get(name).cloned().unwrap_or_default();
    let (chassis_id, port_id) = (text("lldp_rem_chassis_id"), text("lldp_rem_port_id"));
    // The table does not have the address of the sender; most hosts announce it.
    let source = parse_mac(&port_id).or_else(|| parse_mac(&chassis_id));
    Frame {
        source: source.unwrap_or_default(),
        chassis_id,
        port_id,
        system_name: text("lldp_rem_sys_name"),
        system_description: text("lldp_rem_sys_desc"),
        ttl_s: TTL_S,
    }
}
