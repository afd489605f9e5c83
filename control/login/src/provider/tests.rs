use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;

#[test]
fn people_are_called_as_the_published_server_calls_them() {
    let claims = json!({
        "sub": "7", "email": "ada@acme.example", "email_verified": true, "name": "Ada",
        "picture": "javascript:alert(1)",
    });
    let claims = claims.as_object().unwrap();
    let ada = person(claims, "email").unwrap();
    assert_eq!(ada.login, "ada@acme.example@openid-connect");
    assert_eq!((ada.name.as_deref(), ada.picture), (Some("Ada"), None));
    assert_eq!(person(claims, "sub").unwrap().login, "7@openid-connect");
    assert!(matches!(
        person(claims, "nick"),
        Err(ProviderError::NoClaim(_))
    ));
    for unverified in [json!(false), json!("true"), Value::Null] {
        let mut claims = claims.clone();
        claims["email_verified"] = unverified;
        assert!(matches!(
            person(&claims, "email"),
            Err(ProviderError::Unverified)
        ));
        person(&claims, "sub").unwrap();
    }
}

fn provider(issuer: String) -> OidcProvider {
    // Others may have chosen it already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let settings = ProviderSettings {
        issuer,
        client_id: "mesh".into(),
        client_secret: "secret".into(),
        ca: None,
        url: "http://127.0.0.1:1".parse().unwrap(),
        user_claim: "email".into(),
    };
    OidcProvider::new(settings).unwrap()
}

/// Answers each request with what `answer` says of its path; counts them.
async fn serve(
    listener: TcpListener,
    asked: Arc<AtomicUsize>,
    answer: impl Fn(&str) -> String + Send,
) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        asked.fetch_add(1, Ordering::SeqCst);
        let head = String::from_utf8(head).unwrap();
        let body = answer(head.split(' ').nth(1).unwrap());
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn a_provider_is_asked_once_by_all_who_want_to_know() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let about = json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorise"),
        "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/keys"),
    });
    let answer = move |path: &str| match path {
        "/keys" => json!({"keys": []}).to_string(),
        _ => about.to_string(),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, Arc::clone(&asked), answer));
    let provider = provider(issuer);
    let now = Timestamp::from_ms(1_000_000);
    let all = join_all((0..20).map(|_| provider.known(FRESH_MS, now))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(
        asked.load(Ordering::SeqCst),
        2,
        "about itself, and its keys"
    );
    provider.known(FRESH_MS, now).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    provider
        .known(AGAIN_MS, now.plus_ms(AGAIN_MS))
        .await
        .unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_silent_provider_delays_all_once_and_then_nobody() {
    // Nobody accepts: connections are made, and nothing ever comes back.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let provider = provider(format!("http://{}", listener.local_addr().unwrap()));
    let now = Timestamp::from_ms(1_000_000);
    let began = Instant::now();
    let all = join_all((0..20).map(|_| provider.known(FRESH_MS, now))).await;
    assert!(all.iter().all(Result::is_err));
    assert!(began.elapsed() < 2 * TIMEOUT, "{:?}", began.elapsed());
    let began = Instant::now();
    provider.known(FRESH_MS, now).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::ZERO, "the failure is remembered");
    tokio::time::advance(FAILED_FOR).await;
    provider.known(FRESH_MS, now).await.unwrap_err();
    assert!(
        began.elapsed() > FAILED_FOR,
        "and asked again after a while"
    );
}
