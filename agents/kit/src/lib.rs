//! What all agents share: enrolment, session, renewal, last-good cache.
