//! The Sources of a request to a gateway.

use api::Source;
use model::SourceId;

use super::OperatorClient;
use crate::client_error::{ClientError, Kind};
use crate::exit::{Failed, usage};
use crate::values::source_id;

/// A Source of a request, and its entry URL if known.
#[derive(Debug)]
pub(crate) struct SourceRef {
    pub(crate) id: SourceId,
    pub(crate) entry: String,
    /// Whether the operator named it.
    pub(crate) is_named: bool,
}

impl OperatorClient {
    /// The named Source, by its name or its URL; all Sources of the fleet without a name.
    pub(crate) async fn selected(&self, named: Option<&str>) -> Result<Vec<SourceRef>, Failed> {
        let Some(named) = named else {
            let all = self.sources().await?;
            let reference = |source: Source| -> Result<SourceRef, Failed> {
                Ok(SourceRef { id: source.id.parse()?, entry: source.spec.entry.into(), is_named: false })
            };
            return all.into_iter().map(reference).collect();
        };
        let id = source_id(named)?;
        // The catalog of a Source stays when the Source is removed.
        let found = self.source(&id).await?;
        let entry = found.map_or_else(|| named.to_owned(), |source| source.spec.entry.into());
        Ok(vec![SourceRef { id, entry, is_named: true }])
    }

    /// The same for exactly one Source.
    pub(crate) async fn selected_one(&self, named: Option<&str>) -> Result<SourceRef, Failed> {
        let mut all = self.selected(named).await?;
        match (all.pop(), all.len()) {
            (Some(only), 0) => Ok(only),
            (None, _) => Err(usage("the fleet has no Source; add one with `thresher source add`")),
            (Some(last), more) => Err(usage(format!(
                "the fleet has {} Sources; name one by its URL or ID, such as {}; `thresher source ls` lists them",
                more + 1,
                last.id
            ))),
        }
    }
}

impl SourceRef {
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
