//! The Sources of a request to a gateway.

use api::Source;
use model::SourceId;

use super::{Kind, NotDone, Server};
use crate::commands::source::source_id;
use crate::exit::{Failed, usage};

/// A Source of a request, and its entry URL if known.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) id: SourceId,
    pub(crate) entry: String,
    /// Whether the operator named it.
    pub(crate) is_named: bool,
}

impl Server {
    /// The named Source, by its name or its URL; all Sources of the fleet without a name.
    pub(crate) async fn about(&self, named: Option<&str>) -> Result<Vec<About>, Failed> {
        let Some(named) = named else {
            let all: Vec<Source> = self.all(&["sources"], &[]).await?;
            let about = |source: Source| -> Result<About, Failed> {
                Ok(About { id: source.id.parse()?, entry: source.wanted.entry.into(), is_named: false })
            };
            return all.into_iter().map(about).collect();
        };
        let id = source_id(named)?;
        // The catalog of a Source stays when the Source is removed.
        let entry = match self.get::<Source>(&["sources", id.as_str()], &[]).await {
            Ok(source) => source.wanted.entry.into(),
            Err(error) if error.kind == Kind::Absent => named.to_owned(),
            Err(error) => return Err(error.into()),
        };
        Ok(vec![About { id, entry, is_named: true }])
    }

    /// The same for exactly one Source.
    pub(crate) async fn about_one(&self, named: Option<&str>) -> Result<About, Failed> {
        let mut all = self.about(named).await?;
        match (all.pop(), all.len()) {
            (Some(only), 0) => Ok(only),
            (None, _) => Err(usage("the gateway's fleet harvests no Source; `thresher source add` adds one")),
            (Some(last), more) => Err(usage(format!(
                "the gateway's fleet harvests {} Sources; give the URL or the name of one of them, such as {}; `thresher source ls` shows all",
                more + 1,
                last.id
            ))),
        }
    }
}

impl About {
    /// The result; None when nothing is stored of a Source and the command did not name it.
    ///
    /// # Errors
    /// Every other error, as it is.
    pub(crate) fn found<T>(&self, found: Result<T, NotDone>) -> Result<Option<T>, NotDone> {
        match found {
            Err(error) if error.kind == Kind::Absent && !self.is_named => Ok(None),
            found => found.map(Some),
        }
    }
}
