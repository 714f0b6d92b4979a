//! Why a request to a gateway failed.

use api::Problem;

/// Why a request failed: what happened, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ClientError {
    pub(crate) kind: Kind,
    message: String,
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is none of that name.
    Absent,
    /// The present state does not allow it: it exists already, or it has ended.
    Conflict,
    /// It was changed meanwhile.
    Changed,
    /// The request is invalid.
    Invalid,
    /// The caller lacks the permission.
    Denied,
    /// No answer, or not now.
    Unavailable,
    /// The server is broken, or no gateway.
    Broken,
}

impl ClientError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The error in a gateway's response: `gateway` is its URL.
    pub(crate) fn refused(problem: &Problem, gateway: &str) -> Self {
        let kind = match (problem.kind.rsplit(':').next().unwrap_or_default(), problem.status) {
            ("not-found", _) => Kind::Absent,
            ("conflict", _) => Kind::Conflict,
            (_, 412) => Kind::Changed,
            ("unauthorized" | "forbidden", _) => Kind::Denied,
            ("too-many-requests" | "unavailable", _) => Kind::Unavailable,
            (_, 400..=499) => Kind::Invalid,
            _ => Kind::Broken,
        };
        let detail = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
        let mut message = detail.clone();
        for error in &problem.errors {
            // The detail of an invalid spec names its fields already.
            if !detail.contains(&error.detail) {
                message += &format!("; {}: {}", error.field, error.detail);
            }
        }
        message += &format!(" ({gateway}, {})", problem.instance);
        if problem.status == 401 {
            message +=
                "; name the gateway with --server and set THRESHER_TOKEN, or pass --token-file or --profile";
        }
        Self { kind, message }
    }

    /// Whether the same request may succeed in a moment.
    pub(crate) fn is_temporary(&self) -> bool {
        self.kind == Kind::Unavailable
    }
}

#[cfg(test)]
mod tests {
    use api::FieldError;

    use super::*;
    use crate::exit::Exit;

    fn problem(kind: &str, status: u16) -> Problem {
        Problem {
            kind: format!("urn:thresher:problem:{kind}"),
            title: "No".to_owned(),
            status,
            detail: "what happened".to_owned(),
            instance: "/v1/sources/a".to_owned(),
            errors: vec![FieldError { field: "mode".to_owned(), detail: "not that".to_owned() }],
        }
    }

    #[test]
    fn a_refusal_says_what_where_and_what_to_do_and_has_the_exit_status_of_its_kind() {
        for (kind, status, exit) in [
            ("not-found", 404, Exit::Usage),
            ("conflict", 409, Exit::Failed),
            ("precondition-failed", 412, Exit::Failed),
            ("invalid", 422, Exit::Usage),
            ("unauthorized", 401, Exit::Usage),
            ("forbidden", 403, Exit::Usage),
            ("unavailable", 503, Exit::Failed),
            ("internal", 500, Exit::Failed),
            ("something-newer", 418, Exit::Usage),
        ] {
            let refused = ClientError::refused(&problem(kind, status), "http://h/");
            assert_eq!(Exit::of(&refused), exit, "{kind}");
            let said = refused.to_string();
            for part in ["what happened", "mode: not that", "http://h/", "/v1/sources/a"] {
                assert!(said.contains(part), "{said}");
            }
            assert_eq!(said.contains("THRESHER_TOKEN"), status == 401, "{said}");
        }
    }
}
