//! The pages that people see: plain HTML, no scripts, nothing from elsewhere.

use bytes::Bytes;
use control_gate::passwords::BYTES_MAX;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, RETRY_AFTER,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::response::Builder;
use http::{Response, StatusCode};
use url::Url;

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:24rem;margin:15vh auto;padding:0 1rem}\
label,input,button{display:block;width:100%;box-sizing:border-box}\
input,button{font:inherit;padding:.5rem;margin:.25rem 0 1rem}.bad{color:#a00}";

/// The form in which built-in users log in.
pub(super) fn form(state: &str, redirect: &Url, refusal: Option<&str>) -> Page {
    let refusal = refusal.map_or_else(String::new, |text| {
        format!("<p class=bad role=alert>{}</p>", escape(text))
    });
    let body = format!(
        "<form method=post action=/auth/login>{refusal}\
         <input type=hidden name=state value=\"{}\">\
         <label>Login<input name=login autocomplete=username maxlength=128 required autofocus>\
         </label><label>Password<input name=password type=password \
         autocomplete=current-password maxlength={BYTES_MAX} required></label>\
         <button>Log in</button></form>",
        escape(state)
    );
    let status = match refusal.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::UNAUTHORIZED,
    };
    Page {
        status,
        title: "Log in to metalmesh",
        body,
        // Browsers hold the target of the redirect that answers a form against this, too.
        form_action: format!("'self' {}", redirect.origin().ascii_serialization()),
    }
}

/// A page before it is an answer.
#[derive(Debug)]
pub(super) struct Page {
    status: StatusCode,
    title: &'static str,
    body: String,
    form_action: String,
}

impl Page {
    /// A page with a text.
    pub(super) fn text(status: StatusCode, title: &'static str, text: &str) -> Self {
        Self {
            status,
            title,
            body: format!("<p>{}</p>", escape(text)),
            form_action: "'none'".to_owned(),
        }
    }

    /// The answer, which sets this cookie where there is one.
    pub(super) fn answer(self, cookie: Option<&str>) -> Response<Bytes> {
        let html = format!(
            "<!doctype html><html lang=en><meta charset=utf-8>\
             <meta name=viewport content=\"width=device-width\"><title>{title}</title>\
             <style>{STYLE}</style><h1>{title}</h1>{}</html>\n",
            self.body,
            title = self.title,
        );
        let policy = format!(
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
             frame-ancestors 'none'; form-action {}",
            self.form_action
        );
        let head = head(self.status, cookie)
            .header(CONTENT_TYPE, "text/html; charset=utf-8")
            .header(CONTENT_SECURITY_POLICY, policy);
        whole(head, html.into())
    }
}

/// Sends the browser on.
pub(super) fn redirect(to: &Url, cookie: Option<&str>) -> Response<Bytes> {
    let head = head(StatusCode::SEE_OTHER, cookie).header(LOCATION, to.as_str());
    whole(head, Bytes::new())
}

/// Too many attempts.
pub(super) fn wait(seconds: u64) -> Response<Bytes> {
    let text = format!(
        "Too many attempts. Try again in {} minutes.",
        seconds.div_ceil(60)
    );
    let mut answer = Page::text(StatusCode::TOO_MANY_REQUESTS, "Not now", &text).answer(None);
    answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    answer
}

fn head(status: StatusCode, cookie: Option<&str>) -> Builder {
    let head = Response::builder()
        .status(status)
        .header(CACHE_CONTROL, "no-store")
        .header(REFERRER_POLICY, "no-referrer")
        .header(X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(X_FRAME_OPTIONS, "DENY");
    match cookie {
        Some(cookie) => head.header(SET_COOKIE, cookie),
        None => head,
    }
}

fn whole(head: Builder, body: Bytes) -> Response<Bytes> {
    head.body(body).unwrap_or_else(|error| {
        tracing::error!(error = %error, "a login page could not be made");
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        answer
    })
}

/// Text that stays text in HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_stays_text() {
        assert_eq!(
            escape("<a href='x'>&\""),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;"
        );
        let to = "http://127.0.0.1:9/c".parse().unwrap();
        let answer = form("\"><script>", &to, Some("<b>")).answer(None);
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        let body = String::from_utf8(answer.body().to_vec()).unwrap();
        assert!(
            !body.contains("<script>") && !body.contains("<b>"),
            "{body}"
        );
        let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(
            policy.contains("form-action 'self' http://127.0.0.1:9"),
            "{policy}"
        );
    }
}
