//! Why a request of an operator's command failed, through a gateway or over NATS.

use api::Problem;
use control::ControlError;

use crate::exit::Exit;

/// Why a request failed: what happened, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{said}")]
pub(crate) struct NotDone {
    pub(crate) kind: Kind,
    said: String,
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
    /// The server or the fleet is broken.
    Broken,
}

impl NotDone {
    pub(crate) fn new(kind: Kind, said: impl Into<String>) -> Self {
        Self { kind, said: said.into() }
    }

    /// The error in a gateway's response: `whom` is its URL.
    pub(crate) fn refused(problem: &Problem, whom: &str) -> Self {
        let kind = match (problem.kind.rsplit(':').next().unwrap_or_default(), problem.status) {
            ("not-found", _) => Kind::Absent,
            ("conflict", _) => Kind::Conflict,
            ("changed", _) => Kind::Changed,
            ("unauthorized" | "forbidden", _) => Kind::Denied,
            ("too-many-requests" | "unavailable", _) => Kind::Unavailable,
            (_, 400..=499) => Kind::Invalid,
            _ => Kind::Broken,
        };
        let detail = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
        let mut said = detail.clone();
        for error in &problem.errors {
            // The detail of an invalid spec names its fields already.
            if !detail.contains(&error.detail) {
                said += &format!("; {}: {}", error.field, error.detail);
            }
        }
        said += &format!(" (said by {whom} of {})", problem.instance);
        if problem.status == 401 {
            said += "; set THRESHER_TOKEN, or give --token-file or a --profile";
        }
        Self { kind, said }
    }

    /// The exit status for scripts.
    pub(crate) fn exit(&self) -> Exit {
        match self.kind {
            Kind::Absent | Kind::Invalid | Kind::Denied => Exit::Usage,
            Kind::Conflict | Kind::Changed | Kind::Unavailable | Kind::Broken => Exit::Failed,
        }
    }

    /// Whether the same request may succeed in a moment.
    pub(crate) fn is_temporary(&self) -> bool {
        self.kind == Kind::Unavailable
    }
}

impl From<ControlError> for NotDone {
    fn from(error: ControlError) -> Self {
        let kind = match &error {
            ControlError::Absent { .. } => Kind::Absent,
            ControlError::Exists { .. } | ControlError::Refused(_) | ControlError::NotAsked(_) => {
                Kind::Conflict
            }
            ControlError::Conflict { .. } => Kind::Changed,
            ControlError::Invalid(_) => Kind::Invalid,
            ControlError::Unavailable { .. } => Kind::Unavailable,
            ControlError::Config(_) | ControlError::Unreadable { .. } => Kind::Broken,
        };
        Self::new(kind, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use api::FieldError;

    use super::*;

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
            ("changed", 412, Exit::Failed),
            ("invalid", 422, Exit::Usage),
            ("unauthorized", 401, Exit::Usage),
            ("forbidden", 403, Exit::Usage),
            ("unavailable", 503, Exit::Failed),
            ("internal", 500, Exit::Failed),
            ("something-newer", 418, Exit::Usage),
        ] {
            let refused = NotDone::refused(&problem(kind, status), "http://h/");
            assert_eq!(refused.exit(), exit, "{kind}");
            let said = refused.to_string();
            for part in ["what happened", "mode: not that", "http://h/", "/v1/sources/a"] {
                assert!(said.contains(part), "{said}");
            }
            assert_eq!(said.contains("THRESHER_TOKEN"), status == 401, "{said}");
        }
    }
}
