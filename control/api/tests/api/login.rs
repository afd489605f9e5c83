//! Logging in with a browser as a built-in user.

use std::net::IpAddr;
use std::time::Duration;

use control_state::{AuditEntry, AuditPhase};
use http::StatusCode;
use mesh::login_user_service_client::LoginUserServiceClient;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use reqwest::header::{COOKIE, LOCATION, RETRY_AFTER, SET_COOKIE};
use tonic::Code;

use crate::node::Node;

const PASSWORD: &str = "correct horse battery";
const BACK: &str = "http://127.0.0.1:9/callback/1?old=query";

/// A browser, as far as it matters here.
struct Browser {
    http: reqwest::Client,
    base: String,
}

/// What it sees of a page.
struct Page {
    status: StatusCode,
    cookie: String,
    location: Option<String>,
    retry_after: Option<String>,
    text: String,
}

impl Page {
    fn state(&self) -> &str {
        let (_, rest) = self.text.split_once("name=state value=\"").unwrap();
        rest.split_once('"').unwrap().0
    }

    fn token(&self) -> String {
        let location = self.location.as_deref().unwrap();
        let token = location.strip_prefix("http://127.0.0.1:9/callback/1?token=");
        token.unwrap().to_owned()
    }
}

impl Browser {
    fn new(node: &Node) -> Self {
        Self::at(node, [127, 0, 0, 1])
    }

    /// A browser at this address.
    fn at(node: &Node, address: [u8; 4]) -> Self {
        // Others may have chosen it already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .local_address(IpAddr::from(address))
            .timeout(Duration::from_secs(60))
            .build()
            .unwrap();
        Self {
            http,
            base: format!("http://{}", node.address),
        }
    }

    async fn seen(&self, request: reqwest::RequestBuilder) -> Page {
        let answer = request.send().await.unwrap();
        let header = |name| {
            let value = answer.headers().get(name);
            value.map(|it| it.to_str().unwrap().to_owned())
        };
        let cookie = header(SET_COOKIE).unwrap_or_default();
        Page {
            status: answer.status(),
            cookie: cookie.split(';').next().unwrap().to_owned(),
            location: header(LOCATION),
            retry_after: header(RETRY_AFTER),
            text: answer.text().await.unwrap(),
        }
    }

    async fn begin(&self, back: &str) -> Page {
        let query: String = url::form_urlencoded::byte_serialize(back.as_bytes()).collect();
        let url = format!("{}/auth/openid-connect?redirect-url={query}", self.base);
        self.seen(self.http.get(url)).await
    }

    async fn send(&self, cookie: &str, state: &str, login: &str, password: &str) -> Page {
        let fields = [("state", state), ("login", login), ("password", password)];
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let request = self
            .http
            .post(format!("{}/auth/login", self.base))
            .header(COOKIE, cookie)
            .body(form);
        self.seen(request).await
    }

    async fn log_in(&self, login: &str, password: &str) -> Page {
        let page = self.begin(BACK).await;
        self.send(&page.cookie, page.state(), login, password).await
    }
}

async fn with_user(login: &str) -> Node {
    let node = Node::start().await;
    let request = mesh::LoginUserServiceCreateRequest {
        login: login.to_owned(),
        password: PASSWORD.to_owned(),
        ..Default::default()
    };
    let mut users = LoginUserServiceClient::new(node.as_admin());
    users.create(request).await.unwrap();
    node
}

async fn whoami(node: &Node, token: &str) -> Result<api::User, tonic::Status> {
    let mut users = api::user_service_client::UserServiceClient::new(node.wire(Some(token)));
    let answer = users.get(api::UserServiceGetRequest {}).await?;
    Ok(answer.into_inner().user.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_logs_in_and_is_somebody() {
    let node = with_user("ada").await;
    let browser = Browser::new(&node);
    let page = browser.begin(BACK).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let done = browser
        .send(&page.cookie, page.state(), "ada", PASSWORD)
        .await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let user = whoami(&node, &done.token()).await.unwrap();
    assert_eq!(user.login, "ada");
    assert_eq!(user.default_tenant.unwrap().login, "ada");

    // A user, not an administrator.
    let mut tenants = proto_public::admin::v2::tenant_service_client::TenantServiceClient::new(
        node.wire(Some(&done.token())),
    );
    let refused = tenants
        .list(proto_public::admin::v2::TenantServiceListRequest::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);

    // Its record came with it, and has no password.
    let records: Vec<AuditEntry> = node
        .store
        .read_local(|tables| {
            let all = tables.all::<AuditEntry>();
            all.filter(|it| it.method == "/auth/login" || it.method.contains("LoginUser"))
                .map(|it| AuditEntry::clone(it))
                .collect()
        })
        .unwrap();
    assert!(!format!("{records:?}").contains(PASSWORD));
    let login = records
        .iter()
        .find(|it| it.method == "/auth/login")
        .unwrap();
    assert_eq!(
        (login.user.as_str(), login.phase),
        ("ada", AuditPhase::Call)
    );
    assert_eq!(
        (login.result_code, login.source_ip.as_str()),
        (Some(0), "127.0.0.1")
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_known_is_told_what_a_wrong_password_is() {
    let node = with_user("ada").await;
    let browser = Browser::new(&node);
    let mut texts = Vec::new();
    for (login, password) in [("ada", "wrong password"), ("eve", PASSWORD), ("\u{7}", "x")] {
        let page = browser.begin(BACK).await;
        let state = page.state().to_owned();
        let refused = browser.send(&page.cookie, &state, login, password).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        texts.push(refused.text.replace(&state, "STATE"));
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:#?}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_browser_or_place_gets_no_token() {
    let node = with_user("ada").await;
    let browser = Browser::new(&node);
    for back in [
        "",
        "http://evil.example/",
        "https://127.0.0.1.evil.example/x",
    ] {
        let page = browser.begin(back).await;
        assert_eq!(
            (page.status, page.cookie.as_str()),
            (StatusCode::BAD_REQUEST, ""),
            "{back}"
        );
    }
    let (one, other) = (browser.begin(BACK).await, browser.begin(BACK).await);
    for (cookie, state) in [
        ("", one.state()),
        (other.cookie.as_str(), one.state()),
        (one.cookie.as_str(), ""),
    ] {
        let refused = browser.send(cookie, state, "ada", PASSWORD).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        assert!(refused.location.is_none());
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_ends() {
    let node = with_user("ada").await;
    let browser = Browser::new(&node);
    for _ in 0..10 {
        let refused = browser.log_in("ada", "a wrong password").await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    }
    let stopped = browser.log_in("ada", PASSWORD).await;
    assert_eq!(stopped.status, StatusCode::TOO_MANY_REQUESTS);
    let seconds: u64 = stopped.retry_after.unwrap().parse().unwrap();
    assert!((1..=300).contains(&seconds), "{seconds}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_keeps_nobody_else_out() {
    let node = with_user("ada").await;
    let flood = Browser::at(&node, [127, 0, 0, 9]);
    let page = flood.begin(BACK).await;
    let mut refused = 0;
    for number in 0..600 {
        let login = format!("nobody-{number}");
        let answer = flood.send(&page.cookie, page.state(), &login, "x").await;
        refused += usize::from(answer.status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(refused >= 540, "{refused}");
    let done = Browser::new(&node).log_in("ada", PASSWORD).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_users_guesses_leave_others_their_own() {
    let node = with_user("ada").await;
    let request = mesh::LoginUserServiceCreateRequest {
        login: "bob".into(),
        password: PASSWORD.into(),
        ..Default::default()
    };
    let mut users = LoginUserServiceClient::new(node.as_admin());
    users.create(request).await.unwrap();
    let request = |old: &str| mesh::LoginUserServiceChangePasswordRequest {
        old_password: old.into(),
        new_password: "another good password".into(),
    };
    let (ada, bob) = (node.login("ada").await, node.login("bob").await);
    let mut users = LoginUserServiceClient::new(node.wire(Some(&ada)));
    for _ in 0..70 {
        users.change_password(request("a guess")).await.unwrap_err();
    }
    let mut users = LoginUserServiceClient::new(node.wire(Some(&bob)));
    users.change_password(request(PASSWORD)).await.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_change_their_own_password_with_the_old_one() {
    const NEW: &str = "another good password";
    let node = with_user("ada").await;
    let browser = Browser::new(&node);
    let token = browser.log_in("ada", PASSWORD).await.token();
    let mut users = LoginUserServiceClient::new(node.wire(Some(&token)));
    let request = |old: &str, new: &str| mesh::LoginUserServiceChangePasswordRequest {
        old_password: old.into(),
        new_password: new.into(),
    };
    for (old, new) in [("a wrong password", NEW), (PASSWORD, "short")] {
        let refused = users.change_password(request(old, new)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }
    users.change_password(request(PASSWORD, NEW)).await.unwrap();
    let over = whoami(&node, &token).await.unwrap_err();
    assert_eq!(over.code(), Code::Unauthenticated);
    let token = browser.log_in("ada", NEW).await.token();
    // Whoever has a token only does not get to guess for long.
    let mut users = LoginUserServiceClient::new(node.wire(Some(&token)));
    let mut refused = Code::InvalidArgument;
    for _ in 0..20 {
        let guess = request("a wrong password", NEW);
        refused = users.change_password(guess).await.unwrap_err().code();
    }
    assert_eq!(refused, Code::ResourceExhausted);
    // Somebody whom a provider knows has no password here.
    node.tenant("bob").await;
    let bob = node.login("bob").await;
    let mut users = LoginUserServiceClient::new(node.wire(Some(&bob)));
    let refused = users
        .change_password(request(PASSWORD, NEW))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let kept = node.store.read_local(|tables| {
        let all = tables.all::<AuditEntry>();
        all.filter_map(|it| it.body.clone()).collect::<String>()
    });
    let kept = kept.unwrap();
    assert!(!kept.contains(PASSWORD) && !kept.contains(NEW), "{kept}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_ends_the_old_sessions() {
    let node = with_user("ada").await;
    let browser = Browser::new(&node);
    let old = browser.log_in("ada", PASSWORD).await.token();
    whoami(&node, &old).await.unwrap();
    let mut users = LoginUserServiceClient::new(node.as_admin());
    let request = mesh::LoginUserServiceSetPasswordRequest {
        login: "ada".into(),
        password: "another good password".into(),
    };
    users.set_password(request).await.unwrap();
    let refused = whoami(&node, &old).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert_eq!(
        browser.log_in("ada", PASSWORD).await.status,
        StatusCode::UNAUTHORIZED
    );
    let new = browser.log_in("ada", "another good password").await.token();
    whoami(&node, &new).await.unwrap();
    let request = mesh::LoginUserServiceRemoveRequest {
        login: "ada".into(),
    };
    users.remove(request).await.unwrap();
    assert_eq!(
        whoami(&node, &new).await.unwrap_err().code(),
        Code::Unauthenticated
    );
    let short = mesh::LoginUserServiceCreateRequest {
        login: "bob".into(),
        password: "short".into(),
        ..Default::default()
    };
    assert_eq!(
        users.create(short).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    node.stop().await;
}
