//! Gathers the facts of a plan: the cluster, the new program, and the age of the newest backup.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use control_client::{Client, ClientSettings};
use proto_backup::Head;
use proto_public::metalmesh::admin::v1::{
    ClusterServiceStatusRequest, ClusterServiceStatusResponse, DoctorServiceGetRequest,
    DoctorServiceGetResponse,
};
use tokio::time::timeout;

use super::facts::UpgradeFacts;
use super::{UpgradePlanArgs, program};
use crate::app::App;
use crate::text::now_s;

/// Longest wait for a node's report of itself; then the fact is unknown.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Gathers all facts.
///
/// # Errors
/// The cluster cannot be looked at, or a named file cannot be used.
pub(super) async fn collect(app: &App, args: &UpgradePlanArgs) -> Result<UpgradeFacts> {
    let program = args.program.as_deref().map(program::ask).transpose()?;
    let cluster = cluster(app).await?;
    let backup = match &args.backup {
        Some(file) => Ok(Some(backup_of(file, &cluster.cluster_id)?)),
        None => scheduled(app, &args.nodes).await,
    };
    Ok(UpgradeFacts {
        now_s: now_s(),
        cluster,
        program,
        backup,
    })
}

/// The cluster, as its leader sees it.
///
/// # Errors
/// No node answers.
pub(super) async fn cluster(app: &App) -> Result<ClusterServiceStatusResponse> {
    let request = ClusterServiceStatusRequest { all: false };
    let answer = app.client.clusters().status(request).await?;
    Ok(answer.into_inner())
}

/// Time of a backup, by its head, seconds since 1970.
///
/// # Errors
/// The file is no backup of this cluster.
fn backup_of(file: &Path, cluster: &str) -> Result<i64> {
    let shown = file.display();
    let opened = File::open(file).with_context(|| format!("cannot read {shown}"))?;
    let head = Head::read(&mut BufReader::new(opened)).with_context(|| shown.to_string())?;
    ensure!(
        head.cluster_id == cluster,
        "{shown} is a backup of cluster {} ({}), this one is {cluster}",
        head.cluster,
        head.cluster_id
    );
    Ok(i64::try_from(head.made_at_ms / 1000).unwrap_or(i64::MAX))
}

/// Time of the newest scheduled backup, seconds since 1970. The leader makes them and alone knows.
async fn scheduled(app: &App, nodes: &[String]) -> Result<Option<i64>, String> {
    let mut silence = String::new();
    let mut has_schedule = None;
    for url in std::iter::once(&app.settings.api_url).chain(nodes) {
        let report = match report(app, url).await {
            Ok(report) => report,
            Err(error) => {
                silence = format!("{url}: {error}");
                continue;
            }
        };
        has_schedule = Some(has_schedule.unwrap_or(false) || report.has_schedule);
        if report.serves_sessions {
            let places = report.backups.iter();
            let newest = places.filter_map(|place| Some(place.newest.as_ref()?.seconds));
            return Ok(newest.max());
        }
    }
    match has_schedule {
        Some(false) => Ok(None),
        Some(true) => Err("the node that leads makes them, and nobody asked it".to_owned()),
        None => Err(silence),
    }
}

async fn report(app: &App, url: &str) -> Result<DoctorServiceGetResponse, String> {
    let settings = ClientSettings {
        api_url: url.to_owned(),
        ..app.settings.clone()
    };
    let client = Client::new(&settings).map_err(|error| error.to_string())?;
    let mut doctor = client.doctor();
    match timeout(REPORT_TIMEOUT, doctor.get(DoctorServiceGetRequest {})).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(status.message().to_owned()),
        Err(_) => Err(format!("no answer in {} s", REPORT_TIMEOUT.as_secs())),
    }
}
