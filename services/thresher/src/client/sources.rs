//! The Sources of a request to a gateway.

use std::fmt::Display;

use api::{Source, Spec};
use control::{NameOrId, Selector, SourceName};
use model::SourceId;

use super::OperatorClient;
use crate::client_error::{ClientError, Kind};
use crate::exit::{Failed, usage};
use crate::values;

/// A Source of a request, with its name and its entry URL if known.
#[derive(Debug)]
pub(crate) struct SourceRef {
    pub(crate) id: SourceId,
    pub(crate) name: Option<SourceName>,
    pub(crate) entry: String,
    /// Whether the operator named it.
    pub(crate) is_named: bool,
}

/// What people call a Source: its name, or else its ID.
pub(crate) fn called<'a>(name: Option<&'a SourceName>, id: &'a str) -> &'a str {
    name.map_or(id, SourceName::as_str)
}

/// The error for a Source that does not exist.
pub(crate) fn no_source(source: impl Display) -> Failed {
    usage(format!("no Source {source}; `thresher source ls` lists the Sources"))
}

impl OperatorClient {
    /// The ID of the Source that the operator names by its name, its URL or its ID. Only a name needs a request. A
    /// Source of that URL or ID need not exist.
    pub(crate) async fn source_id(&self, text: &str) -> Result<SourceId, Failed> {
        if text.contains("://") {
            return values::source_id(text);
        }
        let name = match text.parse().map_err(usage)? {
            NameOrId::Id(id) => return Ok(id),
            NameOrId::Name(name) => name,
        };
        match self.get::<Source>(&["sources", name.as_str()], &[]).await {
            Ok(source) => Ok(source.id.parse()?),
            Err(error) if error.kind == Kind::Absent => Err(no_source(name)),
            Err(error) => Err(error.into()),
        }
    }

    /// The named Source, by its name, its URL or its ID; all Sources of the fleet without a name.
    pub(crate) async fn selected(&self, named: Option<&str>) -> Result<Vec<SourceRef>, Failed> {
        let Some(named) = named else { return self.matching(None).await };
        let id = self.source_id(named).await?;
        // The catalog of a Source stays when the Source is removed.
        let found = self.source(&id).await?.map(|source| source.spec);
        let name = found.as_ref().and_then(|spec| spec.name.clone());
        let entry = found.map_or_else(|| named.to_owned(), |spec| spec.entry.into());
        Ok(vec![SourceRef { id, name, entry, is_named: true }])
    }

    /// The Sources whose labels match; all Sources of the fleet without a selector.
    pub(crate) async fn matching(&self, selector: Option<&Selector>) -> Result<Vec<SourceRef>, Failed> {
        let reference = |source: Source| -> Result<SourceRef, Failed> {
            let Spec { name, entry, .. } = source.spec;
            Ok(SourceRef { id: source.id.parse()?, name, entry: entry.into(), is_named: false })
        };
        self.sources(selector).await?.into_iter().map(reference).collect()
    }

    /// The same for exactly one Source.
    pub(crate) async fn selected_one(&self, named: Option<&str>) -> Result<SourceRef, Failed> {
        let mut all = self.selected(named).await?;
        match (all.pop(), all.len()) {
            (Some(only), 0) => Ok(only),
            (None, _) => Err(usage("the fleet has no Source; add one with `thresher source add`")),
            (Some(last), more) => Err(usage(format!(
                "the fleet has {} Sources; name one by its name, URL or ID, such as {}; `thresher source ls` lists them",
                more + 1,
                last.called()
            ))),
        }
    }
}

impl SourceRef {
    /// What people call it: its name, or else its ID.
    pub(crate) fn called(&self) -> &str {
        called(self.name.as_ref(), self.id.as_str())
    }

    /// The result; None when nothing is stored of a Source and the command did not name it.
    ///
    /// # Errors
    /// Every other error, as it is.
    pub(crate) fn found<T>(&self, found: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
        match found {
            Err(error) if error.kind == Kind::Absent && !self.is_named => Ok(None),
            found => found.map(Some),
        }
    }
}
