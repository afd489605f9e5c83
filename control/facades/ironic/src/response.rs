//! Answers of handlers as responses of HTTP.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, VARY};
use http::{HeaderName, HeaderValue, Response};
use uuid::Uuid;

use crate::answer::IronicAnswer;
use crate::error::{ErrorShape, IronicError};
use crate::version::{ApiVersion, HEADER, NEWEST, OLDEST};

/// Headers with the range of microversions.
const MINIMUM_HEADER: &str = "x-openstack-ironic-api-minimum-version";
const MAXIMUM_HEADER: &str = "x-openstack-ironic-api-maximum-version";
/// Headers with the id of the request, which clients print with an error.
const REQUEST_ID_HEADERS: [&str; 2] = ["x-openstack-request-id", "openstack-request-id"];
/// Header with a token of Keystone.
const SUBJECT_TOKEN_HEADER: &str = "x-subject-token";

/// The part of a response that follows from the request alone.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    /// Shape of errors, and by it the API.
    pub(crate) shape: ErrorShape,
    /// The microversion.
    pub(crate) version: ApiVersion,
    /// `true` if the request's microversion is served.
    is_served: bool,
    request_id: String,
}

impl ResponseHead {
    /// The head of a response. `version` is `None` if the request's is not served.
    pub(crate) fn new(shape: ErrorShape, version: Option<ApiVersion>) -> Self {
        Self {
            shape,
            version: version.unwrap_or_else(|| ApiVersion::of(OLDEST)),
            is_served: version.is_some(),
            request_id: format!("req-{}", Uuid::new_v4()),
        }
    }
}

/// The response to a request.
pub(crate) fn response(
    head: &ResponseHead,
    outcome: Result<IronicAnswer, IronicError>,
) -> Response<Bytes> {
    match outcome {
        Ok(answer) => answered(head, answer),
        Err(error) => {
            if error.status.is_server_error() {
                tracing::warn!(request = %head.request_id, error = %error.text, "a call failed");
            }
            refusal(head, &error)
        }
    }
}

/// The response to a request that is refused. It is not logged: strangers could fill the log.
pub(crate) fn refusal(head: &ResponseHead, error: &IronicError) -> Response<Bytes> {
    let answer = IronicAnswer {
        status: error.status,
        location: None,
        subject_token: None,
        body: Some(error.body(head.shape)),
    };
    answered(head, answer)
}

fn answered(head: &ResponseHead, answer: IronicAnswer) -> Response<Bytes> {
    let IronicAnswer {
        status,
        location,
        subject_token,
        body,
    } = answer;
    let bytes = body.map_or_else(Bytes::new, |body| body.to_string().into());
    let has_body = !bytes.is_empty();
    let mut response = Response::new(bytes);
    *response.status_mut() = status;
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    if has_body {
        set(CONTENT_TYPE, "application/json");
    }
    if let Some(location) = &location {
        set(LOCATION, location);
    }
    if let Some(token) = &subject_token {
        set(HeaderName::from_static(SUBJECT_TOKEN_HEADER), token);
        set(VARY, "X-Auth-Token");
    }
    // The answer depends on the token, in whichever header: no cache may serve it to another caller.
    set(CACHE_CONTROL, "no-store");
    for name in REQUEST_ID_HEADERS {
        set(HeaderName::from_static(name), &head.request_id);
    }
    if head.shape == ErrorShape::Baremetal {
        let oldest = ApiVersion::of(OLDEST).text();
        let newest = ApiVersion::of(NEWEST).text();
        set(HeaderName::from_static(MINIMUM_HEADER), &oldest);
        set(HeaderName::from_static(MAXIMUM_HEADER), &newest);
        if head.is_served {
            set(HeaderName::from_static(HEADER), &head.version.text());
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::json;

    use super::*;

    fn header<'a>(response: &'a Response<Bytes>, name: &str) -> Option<&'a str> {
        response.headers().get(name)?.to_str().ok()
    }

    #[test]
    fn every_answer_of_ironic_names_the_range() {
        let version = ApiVersion::of(90);
        for (version, named) in [(Some(version), Some("1.90")), (None, None)] {
            let head = ResponseHead::new(ErrorShape::Baremetal, version);
            let answered = response(&head, Err(IronicError::no_route()));
            assert_eq!(answered.status(), StatusCode::NOT_FOUND);
            assert_eq!(header(&answered, MINIMUM_HEADER), Some("1.1"));
            assert_eq!(header(&answered, MAXIMUM_HEADER), Some("1.115"));
            assert_eq!(header(&answered, HEADER), named);
            let id = header(&answered, REQUEST_ID_HEADERS[0]).unwrap();
            assert!(id.starts_with("req-"));
            assert_eq!(header(&answered, "cache-control"), Some("no-store"));
        }
    }

    #[test]
    fn tokens_and_places_are_in_the_head() {
        let head = ResponseHead::new(ErrorShape::Identity, None);
        let answer = IronicAnswer::created(json!({}), "http://c/x".to_owned());
        let answered = response(&head, Ok(answer.with_subject_token("t".to_owned())));
        assert_eq!(header(&answered, SUBJECT_TOKEN_HEADER), Some("t"));
        assert_eq!(header(&answered, "location"), Some("http://c/x"));
        assert_eq!(header(&answered, MINIMUM_HEADER), None);
        let empty = response(&head, Ok(IronicAnswer::no_content()));
        assert_eq!(header(&empty, "content-type"), None);
    }
}
