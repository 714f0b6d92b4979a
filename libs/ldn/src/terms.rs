//! The names in use, as full IRIs.

/// Prefix of the terms of Activity Streams 2.
pub const AS: &str = "https://www.w3.org/ns/activitystreams#";
/// Prefix of the terms of the Linked Data Platform.
pub const LDP: &str = "http://www.w3.org/ns/ldp#";
/// Prefix of the terms of COAR Notify.
pub const COAR_NOTIFY: &str = "http://purl.org/coar/notify_vocabulary/";
/// From a resource to its inbox (LDN-1); also the relation of a `Link` header.
pub const INBOX: &str = "http://www.w3.org/ns/ldp#inbox";
/// From an inbox to its notifications (LDN-2).
pub const CONTAINS: &str = "http://www.w3.org/ns/ldp#contains";
/// From an inbox to its constraints on notifications (LDN-2); also the relation of a `Link` header.
pub const CONSTRAINED_BY: &str = "http://www.w3.org/ns/ldp#constrainedBy";
/// The type of an inbox, in terms of the Linked Data Platform.
pub const BASIC_CONTAINER: &str = "http://www.w3.org/ns/ldp#BasicContainer";
/// The type of all resources of the Linked Data Platform; also the target of a `Link` with the relation
/// `type`.
pub const RESOURCE: &str = "http://www.w3.org/ns/ldp#Resource";
/// The context of Activity Streams 2.
pub const AS_CONTEXT: &str = "https://www.w3.org/ns/activitystreams";
