//! Errors as text for people: the cause, and a hint what to do next.

use control_client::ClientError;
use tonic::{Code, Status};

/// The text of an error for stderr: the chain of causes, then the hint on a line of its own.
pub(crate) fn explain(error: &anyhow::Error) -> String {
    let status = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Status>());
    let Some(status) = status else {
        let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
        return format!("error: {}{}", chain.join(": "), client_hint(error));
    };
    let outer: Vec<String> = error
        .chain()
        .take_while(|cause| cause.downcast_ref::<Status>().is_none())
        .map(ToString::to_string)
        .collect();
    let mut text = String::from("error: ");
    for cause in outer {
        text.push_str(&cause);
        text.push_str(": ");
    }
    text.push_str(&message(status));
    if let Some(hint) = hint(status) {
        text.push_str("\nhint:  ");
        text.push_str(hint);
    }
    text
}

fn message(status: &Status) -> String {
    if status.message().is_empty() {
        return status.code().description().to_owned();
    }
    if status.code() == Code::Unavailable {
        // tonic's own message is "tcp connect error" or the like; the reason is the last source.
        let mut cause = std::error::Error::source(status);
        let mut last = status.message().to_owned();
        while let Some(error) = cause {
            last = error.to_string();
            cause = error.source();
        }
        return format!("the server cannot be reached: {last}");
    }
    status.message().to_owned()
}

/// Code of the server's refusal of a call without a token.
const NO_TOKEN: &str = "MM-1108 ";

/// Hints that only this program can give, as they name contexts and flags. Most errors of the
/// server carry their own hint.
fn hint(status: &Status) -> Option<&'static str> {
    let text = status.message();
    match status.code() {
        Code::Unavailable => {
            Some("check the address (metalmesh context show) and that metalmeshd runs there")
        }
        code if code == Code::Unauthenticated || text.starts_with(NO_TOKEN) => Some(
            "the token is missing, revoked or expired; put a new one into the context: \
             metalmesh context add NAME --api-url URL --token-file FILE --activate",
        ),
        Code::PermissionDenied if !text.contains("hint") => Some(
            "see what this token may do: metalmesh whoami; metalmesh methods. Commands on objects \
             of a project need --project or: metalmesh context set-project PROJECT",
        ),
        Code::DeadlineExceeded => Some("try again, or look at: metalmesh health"),
        _ => None,
    }
}

fn client_hint(error: &anyhow::Error) -> &'static str {
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::ContextFile { .. }) => "\nhint:  correct or remove the file",
        _ => "",
    }
}
