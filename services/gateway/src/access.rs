//! Which Sources a caller sees and may write, and which Source a name means.
//!
//! A token may be limited to labels. Any other Source is for it as if it were not there: lists leave it out, and a
//! request about it gets the same response as one about a Source that does not exist. All requests about one Source
//! come through [`source`].

use control::{ControlError, NameOrId, Selector, SourceSpec, Spec, Versioned};
use model::SourceId;

use crate::api_error::ApiError;
use crate::state::Gateway;
use crate::tokens::Caller;

/// The Source that a caller refers to by its name or its ID.
///
/// For a caller that sees all Sources, an ID needs no Source: what was stored of a removed one can still be read.
///
/// # Errors
/// [`ApiError::not_found`].
pub(crate) async fn source(gateway: &Gateway, caller: &Caller, text: &str) -> Result<SourceId, ApiError> {
    let meant: NameOrId =
        text.parse().map_err(|error| ApiError::not_found(format!("there is no such source: {error}")))?;
    let sources = gateway.control.sources();
    let found = match meant {
        NameOrId::Id(id) if caller.sees_all() => return Ok(id),
        NameOrId::Id(id) => sources.get(&id).await,
        NameOrId::Name(name) => sources.named(&name).await,
    };
    visible_of(caller, text, found).map(|found| found.id.clone())
}

/// A Source that the caller sees.
///
/// # Errors
/// [`ApiError::not_found`].
pub(crate) async fn visible(
    gateway: &Gateway,
    caller: &Caller,
    source: &SourceId,
) -> Result<Versioned<SourceSpec>, ApiError> {
    visible_of(caller, source.as_str(), gateway.control.sources().get(source).await)
}

fn visible_of(
    caller: &Caller,
    text: &str,
    found: Result<Versioned<SourceSpec>, ControlError>,
) -> Result<Versioned<SourceSpec>, ApiError> {
    let is_hidden = match &found {
        Ok(found) => !caller.sees(found),
        Err(ControlError::Absent { .. }) => true,
        // Its labels are unknown.
        Err(ControlError::Unreadable { .. }) => !caller.sees_all(),
        Err(_) => false,
    };
    if is_hidden {
        return Err(ApiError::not_found(format!("there is no source {text}")));
    }
    Ok(found?)
}

/// Checks that the caller may write a spec: it must see the Source afterwards.
///
/// # Errors
/// [`ApiError::forbidden`].
pub(crate) fn check_written(caller: &Caller, spec: &Spec) -> Result<(), ApiError> {
    match caller.selector() {
        Some(selector) if !selector.matches(&spec.labels) => {
            let name = caller.name();
            let said =
                format!("the token {name} is limited to Sources with {selector}; set labels that match");
            Err(ApiError::forbidden(said.clone()).fields([("labels", said)]))
        }
        _ => Ok(()),
    }
}

/// Checks that the caller may add or change a Source that exists. This cannot be refused as if there were none, because
/// the request would else succeed.
///
/// # Errors
/// [`ApiError::conflict`].
pub(crate) fn check_existing(caller: &Caller, found: &SourceSpec) -> Result<(), ApiError> {
    if caller.sees(found) {
        return Ok(());
    }
    Err(ControlError::Exists { what: format!("source {}", found.id) }.into())
}

/// The Sources that a list shows: those that the caller sees, and that match its request.
#[derive(Debug)]
pub(crate) struct SourceFilter<'a> {
    caller: &'a Caller,
    selector: Option<&'a Selector>,
}

impl<'a> SourceFilter<'a> {
    pub(crate) fn new(caller: &'a Caller, selector: Option<&'a Selector>) -> Self {
        Self { caller, selector }
    }

    /// Whether the list shows the Source.
    pub(crate) fn admits(&self, spec: &Spec) -> bool {
        self.caller.sees(spec) && self.selector.is_none_or(|selector| selector.matches(&spec.labels))
    }

    /// Whether the list shows what belongs to the Source with this ID. Without any condition, the Source may be gone.
    pub(crate) fn admits_id(&self, gateway: &Gateway, source: &SourceId) -> bool {
        if self.caller.sees_all() && self.selector.is_none() {
            return true;
        }
        gateway.views.sources.get(source).is_some_and(|spec| self.admits(&spec))
    }
}
