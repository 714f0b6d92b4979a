//! The pauses between looks at a Source.

use std::time::Duration;

/// The least pause between two looks at a Source.
pub(super) const LEAST: Duration = Duration::from_secs(1);
/// How much later others are looked at where some come first, so that these wait for no turn of theirs.
pub(super) const AFTER_FIRST: Duration = Duration::from_secs(1);
/// The pause after news. A catalog that is open for reading shows commits up to a second late, so what a run told before
/// may come only then.
pub(super) const AFTER_NEWS: Duration = Duration::from_secs(3);
/// The pause after a first failure. It doubles.
pub(super) const FIRST_FAILURE: Duration = Duration::from_secs(1);
/// The longest pause after failures.
pub(super) const LONGEST_FAILURE: Duration = Duration::from_secs(60);
/// The pause while another publisher writes the publication.
pub(super) const WHILE_HELD: Duration = Duration::from_secs(5);
/// How long after a change lists and files become old, so that they are closed or removed.
pub(super) const AGING: Duration = Duration::from_secs(50 * 3_600);
/// How often a Source is looked at in that time.
pub(super) const AGING_LOOKS: Duration = Duration::from_secs(3_600);
/// How often another Source is looked at, although no run tells of a change.
pub(super) const IDLE_LOOKS: Duration = Duration::from_secs(24 * 3_600);
