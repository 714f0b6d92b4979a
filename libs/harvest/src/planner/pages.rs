//! Landing pages (Signposting, docs/adr/0073): their lists are read like other documents, and each page is read for
//! its typed links. What these lead to becomes entries; from there on it is planned like what lists name.
//!
//! Records of a repository lead to pages too (`of_records`): what these name are links of the record.
//!
//! A list queues the pages that have to be asked. A page that its sitemap describes, or that did not change since, costs
//! no request. Each page is planned in one batch with its record, so a crash reads on at the next page.

mod ask;
mod listed;
mod of_records;
mod page_links;
mod planned;
mod waiting;

use model::{PageList, SetId};
use planning::pages::PageRules;

use crate::run::RunContext;

pub(crate) use self::listed::limits;
pub(crate) use self::of_records::LedRecord;

/// How a set names its landing pages, if it does.
pub(crate) fn list_of(ctx: &RunContext, set: &SetId) -> Option<PageList> {
    ctx.sets.get(set).and_then(|set| set.pages)
}

/// The rules of this run for the links of pages.
pub(crate) fn rules(ctx: &RunContext) -> PageRules<'_> {
    PageRules { follow: &ctx.options.follow, filter: &ctx.options.filter }
}
