//! Generated types and services of the public v2 API.
