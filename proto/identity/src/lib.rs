//! SPIFFE-style identities, certificate profiles and rustls configurations.
