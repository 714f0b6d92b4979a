//! Dumps: packages are received, opened and adopted. The result is the same as that of a harvest by lists.

mod case;
mod choose;
mod copies;
mod fleet;
mod harvest;
mod killed;
mod receive;
mod show;
mod unchanged;
mod weigh;

const AT: &str = "2026-01-01T00:00:00Z";
const DUMP: &str = "capability=\"resourcedump\" at=\"2026-01-01T00:00:00Z\"";
const CHANGES: &str = "capability=\"changedump\" from=\"2026-01-01T00:00:00Z\"";
