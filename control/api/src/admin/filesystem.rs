//! Filesystem layouts, kept by administrators.

use std::sync::Arc;

use control_convert::layout::{
    from_constraints, from_disks, from_filesystems, from_layout, from_logical_volumes, from_raids,
    from_volume_groups, layout,
};
use control_convert::{lock, parse, required, unless_empty};
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::life::check_installable;
use control_state::{self as state, CreateLayout, DeleteLayout, UpdateLayout, query};
use proto_public::admin::v2 as admin;
use proto_public::admin::v2::filesystem_service_match_request::Match;
use proto_types::{LayoutId, MachineId};
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl admin::filesystem_service_server::FilesystemService for Services {
    async fn create(
        &self,
        request: Request<admin::FilesystemServiceCreateRequest>,
    ) -> ApiResult<admin::FilesystemServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let wanted = required("filesystem_layout", request.into_inner().filesystem_layout)?;
        let wanted = from_layout(wanted)?;
        check_installable(&wanted).map_err(of_state)?;
        let made = self.layout_reply(&caller, CreateLayout(wanted)).await?;
        let filesystem_layout = Some(layout(&made));
        ok(admin::FilesystemServiceCreateResponse { filesystem_layout })
    }

    async fn update(
        &self,
        request: Request<admin::FilesystemServiceUpdateRequest>,
    ) -> ApiResult<admin::FilesystemServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = UpdateLayout {
            id: parse("id", &request.id)?,
            lock: lock(request.update_meta)?,
            name: request.name,
            description: request.description,
            filesystems: unless_empty(from_filesystems(request.filesystems)?),
            disks: unless_empty(from_disks(request.disks)?),
            raids: unless_empty(from_raids(request.raid)?),
            volume_groups: unless_empty(from_volume_groups(request.volume_groups)),
            logical_volumes: unless_empty(from_logical_volumes(request.logical_volumes)?),
            constraints: request.constraints.map(from_constraints).transpose()?,
        };
        self.check_update(&caller, &op).await?;
        let changed = self.layout_reply(&caller, op).await?;
        let filesystem_layout = Some(layout(&changed));
        ok(admin::FilesystemServiceUpdateResponse { filesystem_layout })
    }

    async fn delete(
        &self,
        request: Request<admin::FilesystemServiceDeleteRequest>,
    ) -> ApiResult<admin::FilesystemServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let op = DeleteLayout(parse("id", &request.get_ref().id)?);
        let gone = self.layout_reply(&caller, op).await?;
        let filesystem_layout = Some(layout(&gone));
        ok(admin::FilesystemServiceDeleteResponse { filesystem_layout })
    }

    /// The layout that machines of a size get with an image, or whether a machine's disks can
    /// take a given one.
    async fn r#match(
        &self,
        request: Request<admin::FilesystemServiceMatchRequest>,
    ) -> ApiResult<admin::FilesystemServiceMatchResponse> {
        let caller = Caller::of(&request)?;
        let found = match required("match", request.into_inner().r#match)? {
            Match::SizeAndImage(wanted) => {
                let (size, image) = (parse("size", &wanted.size)?, parse("image", &wanted.image)?);
                let read = self.gate.read(&caller, |tables| {
                    query::layout(tables, &query::match_layout(tables, &size, &image)?)
                });
                read.await?
            }
            Match::MachineAndFilesystemlayout(wanted) => {
                let machine: MachineId = parse("machine", &wanted.machine)?;
                let id: LayoutId = parse("filesystem_layout", &wanted.filesystem_layout)?;
                let read = self.gate.read(&caller, |tables| {
                    let found = query::layout(tables, &id)?;
                    query::check_layout(tables, machine, &found)?;
                    Ok(found)
                });
                read.await?
            }
        };
        let filesystem_layout = Some(layout(&found));
        ok(admin::FilesystemServiceMatchResponse { filesystem_layout })
    }
}

impl Services {
    /// Checks that machines can be installed with the updated layout. An update of other fields is
    /// not checked: a layout that is older than the rules may break them, and can still be renamed.
    async fn check_update(&self, caller: &Caller, op: &UpdateLayout) -> Result<(), Status> {
        let touches = op.filesystems.is_some()
            || op.raids.is_some()
            || op.volume_groups.is_some()
            || op.logical_volumes.is_some();
        if !touches {
            return Ok(());
        }
        // The update itself refuses an unknown layout.
        let found = self
            .gate
            .read(caller, |tables| Ok(query::layout(tables, &op.id).ok()));
        let Some(mut changed) = found.await? else {
            return Ok(());
        };
        take(&mut changed.filesystems, op.filesystems.as_ref());
        take(&mut changed.raids, op.raids.as_ref());
        take(&mut changed.volume_groups, op.volume_groups.as_ref());
        take(&mut changed.logical_volumes, op.logical_volumes.as_ref());
        check_installable(&changed).map_err(of_state)
    }

    async fn layout_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<state::Layout>, Status> {
        self.gate
            .propose(caller, op)
            .await?
            .layout()
            .map_err(of_state)
    }
}

fn take<T: Clone>(field: &mut Vec<T>, update: Option<&Vec<T>>) {
    if let Some(update) = update {
        field.clone_from(update);
    }
}
