//! Which Sources a gateway is asked about.

use api::Source;
use model::SourceId;

use super::{Kind, NotDone, Server};
use crate::commands::source::source_id;
use crate::exit::{Failed, usage};

/// A Source that a gateway is asked about, and where it was entered, as far as that is known.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) id: SourceId,
    pub(crate) entry: String,
    /// Whether it was named by the operator.
    pub(crate) is_named: bool,
}

impl Server {
    /// The Source that is named, by its name or its URL; all that the fleet harvests, where none is.
    pub(crate) async fn about(&self, named: Option<&str>) -> Result<Vec<About>, Failed> {
        let Some(named) = named else {
            let all: Vec<Source> = self.all(&["sources"], &[]).await?;
            let about = |source: Source| -> Result<About, Failed> {
                Ok(About { id: source.id.parse()?, entry: source.wanted.entry.into(), is_named: false })
            };
            return all.into_iter().map(about).collect();
        };
        let id = source_id(named)?;
        // What is held of a Source stays when it is not harvested any more.
        let entry = match self.get::<Source>(&["sources", id.as_str()], &[]).await {
            Ok(source) => source.wanted.entry.into(),
            Err(error) if error.kind == Kind::Absent => named.to_owned(),
            Err(error) => return Err(error.into()),
        };
        Ok(vec![About { id, entry, is_named: true }])
    }

    /// The same where it can only be one.
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
    /// What was found; nothing where nothing is held of a Source that nobody named.
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
