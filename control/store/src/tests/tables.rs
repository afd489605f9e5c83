//! The control plane's own state in the store.

use control_state::{Command, CreateTenant, DeleteTenant, ErrorKind, Op, Tables, Tenant};
use proto_types::TenantId;
use tests_support::{objects, permit_for};

use super::*;
use crate::{ChangeEvent, ProposeError, Revision, StateMachine};

pub(super) fn tenant(login: &str) -> CreateTenant {
    objects::tenant(login, None)
}

pub(super) async fn propose(
    store: &Store,
    op: impl Into<Op>,
) -> Result<control_state::Reply, ProposeError<control_state::StateError>> {
    let command = Command::new(store.now(), "test", op);
    let permit = permit_for(command.op.name());
    store.propose(&permit, &command).await
}

fn hash(tables: &Tables) -> [u8; 32] {
    tables.state_hash().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_come_back_equal_from_rows_and_from_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let image = tempfile::tempdir().unwrap();
    let live = dir.path().join("live");
    let store: Store = Store::open(config(&live)).await.unwrap();
    let mut watch = store.watch();
    for n in 0..20 {
        propose(&store, tenant(&format!("tenant-{n}")))
            .await
            .unwrap();
    }
    let gone: TenantId = "tenant-3".parse().unwrap();
    propose(
        &store,
        DeleteTenant {
            login: gone.clone(),
            personal: false,
        },
    )
    .await
    .unwrap();
    let (before, revision) = store.read_versioned(|t, r| (hash(t), r)).await.unwrap();
    assert!(revision >= Revision(21));
    let Some(ChangeEvent::Changed { changes, .. }) = watch.next().await else {
        panic!("no event")
    };
    assert!(
        changes
            .iter()
            .any(|c| c.key == "tenant-0" && c.record.is_some())
    );

    let refused = propose(&store, tenant("tenant-1")).await;
    let Err(ProposeError::Rejected(error)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(
        store.read(hash).await.unwrap(),
        before,
        "refused is unchanged"
    );

    // The crash image has little or nothing in its rows and replays the log.
    copy_dir(&live, image.path());
    store.shutdown().await;
    for dir in [live.as_path(), image.path()] {
        let store: Store = Store::open(config(dir)).await.unwrap();
        assert_eq!(store.read(hash).await.unwrap(), before, "{}", dir.display());
        assert!(
            store
                .read(|t| t.get::<Tenant>(&gone).is_none())
                .await
                .unwrap()
        );
        store.shutdown().await;
    }
}

#[test]
fn rows_of_other_versions_are_refused() {
    let mut tables = Tables::new();
    tables.set_revision(6);
    let command = Command::new(proto_types::Timestamp::from_ms(1), "test", tenant("acme"));
    let outcome = StateMachine::apply(&mut tables, &command);
    let made = outcome
        .changes
        .iter()
        .find(|change| change.key == "acme")
        .unwrap();
    let row = tables.row(made).unwrap();
    let value = row.value.unwrap();
    let login: TenantId = "acme".parse().unwrap();
    let mut tables = Tables::new();
    StateMachine::load(&mut tables, &row.key, &value).unwrap();
    assert_eq!(tables.revision_of::<Tenant>(&login), Some(7));
    // Version 1 had no revision between its byte and the object.
    let first = [&[1], &value[9..]].concat();
    for broken in [&first[..], &[][..], &[2, 0, 0], &[3, 1]] {
        let mut tables = Tables::new();
        assert!(StateMachine::load(&mut tables, &row.key, broken).is_err());
    }
}
