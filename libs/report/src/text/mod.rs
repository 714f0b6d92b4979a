//! The report card as plain text, to be sent by mail.

mod findings;
mod letter;
mod numbers;
mod page;
mod tables;

use model::Phase;

use crate::card::{Protocol, ReportCard};
use page::Page;

impl ReportCard {
    /// The card as plain text: lines of at most 100 columns, sections with headings, advice in sentences. It contains
    /// neither paths nor credentials. URIs that are longer than a line lose their middle;
    /// [`ReportCard::serialize`](serde::Serialize) keeps them.
    pub fn text(&self) -> String {
        let mut page = Page::default();
        page.title(match self.source.protocol {
            Protocol::ResourceSync => "Report on a ResourceSync Source",
            Protocol::OaiPmh => "Report on an OAI-PMH repository",
        });
        page.blank();
        self.opening(&mut page);
        findings::write(&mut page, &self.findings);
        tables::sets(&mut page, &self.sets);
        tables::documents(&mut page, self);
        tables::links(&mut page, self);
        tables::collections(&mut page, self);
        tables::from_elsewhere(&mut page, self);
        tables::copies(&mut page, self);
        tables::coverage(&mut page, &self.coverage);
        tables::fixity(&mut page, &self.fixity);
        tables::tolerated(&mut page, &self.quirks);
        tables::problems(&mut page, &self.problems, &self.ignored);
        if let Some(to_let_in) = &self.to_let_in {
            letter::write(&mut page, to_let_in, &self.source);
        }
        page.into_text()
    }

    fn opening(&self, page: &mut Page) {
        page.pair("Source", &self.source.url);
        match &self.looked_at.run {
            None => page.pair("Last looked at", "never"),
            Some(run) => {
                let state = if run.phase == Phase::Finished { "finished" } else { "not finished" };
                let when = run.ended_at.unwrap_or(run.began_at);
                page.pair("Last looked at", &format!("{when} ({} harvest, {state})", run.mode));
            }
        }
        if let Some(when) = self.looked_at.discovered_at {
            page.pair("Discovered", &when.to_string());
        }
    }
}
