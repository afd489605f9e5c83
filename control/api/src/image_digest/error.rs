//! The reasons for which control finds no digest.

use std::time::Duration;

use control_gate::refusal::of_state;
use control_state::{ErrorCode, StateError};
use proto_types::ImageId;
use tonic::Status;

/// No digest was found. The texts go to the caller: none of them holds a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("it must be an http or https URL with a host")]
    Url,
    #[error("its server cannot be reached from this control node")]
    Unreachable,
    #[error("its server is silent for too long")]
    Stalled,
    #[error("finding it takes longer than {:?}", .0)]
    TooSlow(Duration),
    #[error("its server answers {0}")]
    Answered(u16),
    #[error("it is redirected more than 5 times, or from https to http")]
    Redirect,
    #[error("the file is longer than {bytes_max} bytes")]
    TooLong { bytes_max: u64 },
    #[error("the file is empty")]
    Empty,
    #[error("the file ends early")]
    Broken,
    #[error("the file has another MD5 than the one that is published beside it")]
    Md5,
    #[error("the fetch failed; see the log of this control node")]
    Failed,
    #[error("this control node finds the digests of {0} images already")]
    Busy(usize),
    #[error("this control node shuts down")]
    Stopping,
}

impl FetchError {
    /// The refusal of a call on this image.
    pub(crate) fn status(&self, image: &ImageId) -> Status {
        let code = match self {
            Self::Busy(_) => ErrorCode::TooMany,
            Self::Stopping => ErrorCode::Unavailable,
            _ => ErrorCode::ImageDigestNotFound,
        };
        let message = format!("image \"{image}\": no digest is found for its url: {self}");
        let error = StateError::new(code, message).object("image", image);
        of_state(match self {
            Self::Busy(_) => {
                error.hint("try again in a moment, or set the label metalmesh.dev/digest")
            }
            _ => error,
        })
    }
}
