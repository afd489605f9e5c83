//! Two processes of one identity: one renews the certificate, the other follows.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agents_kit::state_dir::StoredSession;
use agents_kit::{Agent, Credential, Key, KitError, StateDir};
use proto_link::now_ms;
use proto_mesh::{SwitchReport, SwitchServiceClient};

use crate::fixture::*;

const HOUR: Duration = Duration::from_secs(3600);

fn session(credential: Credential, control: &Control) -> StoredSession {
    StoredSession {
        credential,
        control: vec![control.addr.to_string()],
        ticket_id: String::new(),
    }
}

async fn report(agent: &Agent) {
    let switch: SwitchServiceClient = agent.client();
    switch.report(SwitchReport::default()).await.unwrap();
}

#[tokio::test]
async fn a_follower_takes_the_new_certificate_and_renews_none() {
    let ca = Ca::new();
    let control = Control::start(&ca);
    let place = Place::new();
    let dir = StateDir::open(&place.state_dir()).unwrap();
    let life = Duration::from_secs(3);
    let first = ca.credential(CORE, now_ms(), life);
    let end_ms = first.identity().unwrap().not_after_ms;
    dir.store(&session(first, &control)).unwrap();
    let agent = Agent::follow(dir.clone()).unwrap();
    report(&agent).await;
    eventually("the certificate ends", || now_ms() > end_ms).await;

    let key = dir.next_key().unwrap();
    let second = ca.credential_of(key, CORE, now_ms(), HOUR);
    let serial = second.identity().unwrap().serial;
    dir.store(&session(second, &control)).unwrap();
    let own = || agent.credential().identity().unwrap().serial;
    eventually("it takes the new one", || own() == serial).await;
    report(&agent).await;
    for count in [&ca.renewals, &ca.resumptions, &ca.joins] {
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_read_in_the_middle_of_a_key_change_writes_nothing() {
    agents_kit::install_crypto_provider();
    let ca = Ca::new();
    let place = Place::new();
    let path = place.state_dir();
    let dir = StateDir::open(&path).unwrap();
    assert!(matches!(
        Agent::follow(dir.clone()),
        Err(KitError::NotJoined)
    ));
    let next = dir.next_key().unwrap();
    let second = ca.credential_of(next, CORE, now_ms(), HOUR);
    let stored = StoredSession {
        credential: second.clone(),
        control: vec![],
        ticket_id: String::new(),
    };
    dir.store(&stored).unwrap();
    // The state between two writes: the certificate is that of the next key already.
    let old = Key::generate().unwrap();
    dir.write("key.pem", old.to_pem().as_bytes()).unwrap();
    let pem = second.key.to_pem();
    dir.write("next-key.pem", pem.as_bytes()).unwrap();
    let read = dir.read_session().unwrap().unwrap();
    assert_eq!(read.credential.key.to_pem(), pem);
    let key = || fs::read_to_string(path.join("key.pem")).unwrap();
    assert_eq!(
        key(),
        old.to_pem().as_str(),
        "the owner finishes the change"
    );
    // The owner does at its next start.
    assert!(dir.session().unwrap().is_some());
    assert_eq!(key(), pem.as_str());
    assert!(dir.pending_key().unwrap().is_none());
}
