//! The certificate authority is replaced while sessions are open.

use std::time::Duration;

use control_state::{AgentKind, CaPhase, CaRotation, ForceCaRotation, Tick};
use proto_identity::{Credential, Key, Roots, tls};
use proto_link::{ALPN, DialError, MeshClient, MeshClientConfig, SessionState};
use proto_mesh::*;
use tokio::time::timeout;

use crate::fixture::*;

/// A session of whoever trusts these roots.
fn session(control: &Control, roots: Roots, credential: &Credential) -> MeshClient {
    let tls = tls::client_config(roots, Some(credential), ALPN).unwrap();
    let addresses = vec![control.address().to_string()];
    MeshClient::new(MeshClientConfig::new(addresses, tls)).unwrap()
}

async fn until(mesh: &MeshClient, want: impl Fn(&SessionState) -> bool) -> SessionState {
    let mut state = mesh.state();
    let found = timeout(PATIENCE, state.wait_for(|state| want(state))).await;
    found.unwrap().unwrap().clone()
}

fn phase(control: &Control) -> CaPhase {
    let name = CaRotation::ONE.to_owned();
    let found = control
        .store
        .read_local(|t| t.get::<CaRotation>(&name).map(|it| it.phase));
    found.unwrap().unwrap()
}

async fn tick(control: &Control, ms: u64) {
    control.clock.advance(ms);
    control.propose(Tick::default()).await.unwrap();
}

async fn renew(mesh: &MeshClient, key: &Key) -> Credential {
    let request = RenewRequest {
        csr: key.request().unwrap(),
    };
    let identity = IdentityServiceClient::from(mesh.clone());
    credential(identity.renew(request).await.unwrap(), key)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_is_replaced_under_open_sessions() {
    let control = Control::start().await;
    let is_up = |state: &SessionState| *state == SessionState::Up;
    let ticket = Control::new_ticket(AgentKind::Core, "p1", "leaf1");
    let ticket = control.ticket(ticket).await;
    let key = Key::generate().unwrap();
    let first = control.join(&ticket, &key).await.unwrap();
    let roots = Roots::Certificates(first.roots.clone());
    let open = session(&control, roots.clone(), &first);
    until(&open, is_up).await;

    let begin = control
        .pki
        .next_generation(Duration::from_secs(3600), false)
        .unwrap();
    control.propose(begin).await.unwrap();
    assert_eq!(control.pki.roots().len(), 2);
    // Whoever knows the old root alone is let in as before, and learns the new one.
    let asleep = session(&control, roots.clone(), &first);
    until(&asleep, is_up).await;
    asleep.close().await;
    let second = renew(&open, &key).await;
    assert_eq!(second.roots.len(), 2);
    assert_ne!(second.chain[1], first.chain[1], "of the new generation");
    let new_root = Roots::Certificates(vec![second.roots[0].clone()]);
    let fresh = session(&control, new_root, &second);
    until(&fresh, is_up).await;

    let until_ms = control.store.now().plus_ms(600_000);
    control
        .propose(ForceCaRotation { until: until_ms })
        .await
        .unwrap();
    tick(&control, 1).await;
    assert_eq!(
        phase(&control),
        CaPhase::Switched,
        "everybody has a new one"
    );
    assert!(is_up(&open.state().borrow()));
    tick(&control, 20_000).await;
    assert_eq!(phase(&control), CaPhase::Done);
    assert_eq!(control.pki.roots(), [second.roots[0].clone()]);
    // What the old one issued ends with it; what the new one issued goes on.
    until(&open, |s| matches!(s, SessionState::Down(Some(_)))).await;
    renew(&fresh, &key).await;
    assert!(is_up(&fresh.state().borrow()));
    let overslept = session(&control, roots, &first);
    let untrusted =
        |s: &SessionState| matches!(s, SessionState::Down(Some(DialError::Untrusted { .. })));
    let SessionState::Down(Some(said)) = until(&overslept, untrusted).await else {
        panic!("it is down");
    };
    assert!(said.to_string().contains("metalmesh join create"), "{said}");
    control.stop().await;
}
