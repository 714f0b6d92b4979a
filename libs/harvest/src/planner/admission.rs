//! Which entries of a list the operator wants, and how those that are left out count.

use model::HomeSite;
use planning::ListedEntry;

use crate::run::RunContext;

/// Whether the resource of an entry is wanted. Counts it as listed if so, and as foreign if it belongs to another
/// site.
pub(crate) fn is_wanted(ctx: &mut RunContext, home: &HomeSite, uri: &str) -> bool {
    let filter = &ctx.options.filter;
    let counters = &mut ctx.run.counters;
    let is_wanted = filter.takes(uri);
    counters.listed += u64::from(is_wanted);
    counters.foreign += u64::from(is_wanted && home.is_foreign(uri));
    counters.foreign_left_out += u64::from(!is_wanted && filter.leaves_out_as_foreign(uri));
    is_wanted
}

/// Whether an entry of a wanted URI is wanted for what it says of its resource. If not, it no longer counts as listed.
pub(crate) fn is_admitted(ctx: &mut RunContext, home: &HomeSite, entry: &ListedEntry) -> bool {
    let is_admitted = ctx.options.filter.admits(entry);
    if !is_admitted {
        let is_loop = ctx.options.filter.is_loop(entry);
        let counters = &mut ctx.run.counters;
        counters.listed -= 1;
        counters.foreign -= u64::from(home.is_foreign(entry.uri.as_str()));
        counters.loops += u64::from(is_loop);
        counters.out_of_scope += u64::from(!is_loop);
    }
    is_admitted
}

/// Leaves a resource to what its links lead to, by the operator's rule. It no longer counts as listed.
pub(super) fn leave_to_links(ctx: &mut RunContext, home: &HomeSite, entry: &ListedEntry) {
    let counters = &mut ctx.run.counters;
    counters.listed -= 1;
    counters.foreign -= u64::from(home.is_foreign(entry.uri.as_str()));
    counters.by_rule += 1;
}
