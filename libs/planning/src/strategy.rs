//! Chooses the strategy of each set, and advances the set afterwards. Pure.

use std::collections::HashSet;

use jiff::Timestamp;
use model::{DocumentRecord, Mode, Prefer, RunId, SelectionId, SetId, SetRecord};
use resourcesync::Capability;

use crate::{Selection, continuity};

pub use crate::document::is_changes;

/// The documents of a run, before any index is opened.
#[derive(Debug, PartialEq, Eq)]
pub struct Strategy {
    /// Mode of the run: a baseline as soon as one set needs one.
    pub mode: Mode,
    /// Set, kind and URI of each document.
    pub documents: Vec<(SetId, Capability, String)>,
}

/// Chooses for each set: a baseline if it has none (or on request), otherwise its changes. After a baseline, the
/// changes since its `at` are read too. A baseline of another `selection` says nothing about the resources that are
/// selected now. The sets of `again` need a full rescan (module `rescan`). None if no set offers a usable document.
pub fn choose<'a>(
    sets: impl Iterator<Item = (&'a SetId, &'a SetRecord)>,
    asked: Option<Mode>,
    prefer: Option<Prefer>,
    selection: &Selection,
    again: &HashSet<SetId>,
) -> Option<Strategy> {
    let mut strategy = Strategy { mode: Mode::Incremental, documents: Vec::new() };
    for (id, set) in sets {
        let mut add = |capability: Option<Capability>| {
            let Some(capability) = capability else { return false };
            let uris: Vec<_> = set.documents(&capability).map(str::to_owned).collect();
            let any = !uris.is_empty();
            strategy.documents.extend(uris.into_iter().map(|uri| (id.clone(), capability.clone(), uri)));
            any
        };
        let changes = offered(set, [Capability::ChangeList, Capability::ChangeDump], prefer);
        let wants_baseline = match asked {
            Some(Mode::Baseline) => true,
            Some(Mode::Incremental | Mode::Audit | Mode::Repair) => false,
            None => {
                let has_baseline = set.has_baseline && selection.covers(set.selection);
                !has_baseline || changes.is_none() || again.contains(id)
            }
        };
        let baseline = wants_baseline && add(baseline_kind(set, prefer));
        add(changes);
        if baseline {
            strategy.mode = Mode::Baseline;
        }
    }
    (!strategy.documents.is_empty()).then_some(strategy)
}

/// The kind of document from which a set's baseline is read.
pub fn baseline_kind(set: &SetRecord, prefer: Option<Prefer>) -> Option<Capability> {
    offered(set, [Capability::ResourceList, Capability::ResourceDump], prefer)
}

/// The list or the dump of a set, whichever is preferred and offered.
fn offered(set: &SetRecord, [list, dump]: [Capability; 2], prefer: Option<Prefer>) -> Option<Capability> {
    let order = match prefer {
        Some(Prefer::Dump) => [dump, list],
        Some(Prefer::List) | None => [list, dump],
    };
    order.into_iter().find(|kind| set.documents(kind).next().is_some())
}

/// Whether a document of this kind contains all resources of its set.
pub fn is_baseline(kind: &Capability) -> bool {
    matches!(kind, Capability::ResourceList | Capability::ResourceDump)
}

/// The capabilities of the sets, as text.
pub fn offers(sets: &[(SetId, SetRecord)]) -> String {
    let mut names: Vec<_> =
        sets.iter().flat_map(|(_, set)| &set.capabilities).map(|link| link.capability.to_string()).collect();
    names.sort();
    names.dedup();
    if names.is_empty() { "no capability at all".to_owned() } else { names.join(", ") }
}

/// Advances a set after `run`. `documents` are all its known documents. An incompletely read document advances
/// nothing, and no change advances a set past a gap. Returns whether it advanced.
pub fn advance(set: &mut SetRecord, run: RunId, documents: &[DocumentRecord]) -> bool {
    let before = set.clone();
    take_lists(set, run, documents);
    let is_broken =
        |record: &&DocumentRecord| record.capability == Capability::ChangeDump && !record.is_read_whole();
    let mut changes = of_run(documents, run, is_changes).filter(|record| !is_broken(record)).peekable();
    if changes.peek().is_some() && changes.all(DocumentRecord::is_read_whole) {
        set.synchronized_to = continuity::follow(set.synchronized_to, run, documents.iter()).reached;
    }
    *set != before
}

/// Whether `run` read the set's Resource Lists whole, so that its dumps are not needed any more.
pub fn is_listed(run: RunId, documents: &[DocumentRecord]) -> bool {
    let mut lists = of_run(documents, run, |kind| *kind == Capability::ResourceList).peekable();
    lists.peek().is_some() && lists.all(DocumentRecord::is_read_whole)
}

/// Whether `run` read the set's lists, or its dumps, whole.
pub fn is_told_whole(run: RunId, documents: &[DocumentRecord]) -> bool {
    !whole_snapshots(run, documents).is_empty()
}

/// The Resource Lists of a set that `run` read, otherwise its Resource Dumps; none unless all of them were read
/// whole.
fn whole_snapshots(run: RunId, documents: &[DocumentRecord]) -> Vec<&DocumentRecord> {
    let snapshots: Vec<&DocumentRecord> = of_run(documents, run, is_baseline).collect();
    // If a dump was read only in part, the list that was read instead is complete.
    let (dumps, lists): (Vec<_>, Vec<_>) =
        snapshots.into_iter().partition(|record| record.capability == Capability::ResourceDump);
    let lists = if lists.is_empty() { dumps } else { lists };
    if lists.iter().all(|record| record.is_read_whole()) { lists } else { Vec::new() }
}

/// Whether `run` read all changes of a set whole, without a gap to the synchronized time. Then other change documents
/// contain nothing new.
pub fn is_followed(set: &SetRecord, run: RunId, documents: &[DocumentRecord]) -> bool {
    let mut changes = of_run(documents, run, is_changes).peekable();
    changes.peek().is_some()
        && changes.all(DocumentRecord::is_read_whole)
        && continuity::follow(set.synchronized_to, run, documents.iter()).gaps.is_empty()
}

/// Advances a set to the Resource Lists that `run` read, if all of them were read whole.
pub fn take_lists(set: &mut SetRecord, run: RunId, documents: &[DocumentRecord]) {
    let lists = whole_snapshots(run, documents);
    if lists.is_empty() {
        return;
    }
    let before = std::mem::replace(&mut set.has_baseline, true);
    set.selection = one_selection(&lists);
    set.partly_held = false;
    // With several lists, or an index and its parts, only the earliest `at` holds for all.
    let at = lists.iter().map(|record| record.at).min().flatten();
    set.baseline_at = at.or(set.baseline_at);
    let reached = lists.iter().map(|record| record.at_latest).min().flatten();
    // Changes that were followed without a baseline do not cover the time before them, and this baseline may be of
    // that time.
    set.synchronized_to = if before { set.synchronized_to.max(reached) } else { reached };
}

/// The selection with which all these lists were read.
fn one_selection(lists: &[&DocumentRecord]) -> Option<SelectionId> {
    let first = lists.first()?.selection;
    let is_one = lists.iter().all(|list| list.selection == first);
    if is_one { first } else { Some(SelectionId::SEVERAL) }
}

fn of_run(
    documents: &[DocumentRecord],
    run: RunId,
    is_kind: fn(&Capability) -> bool,
) -> impl Iterator<Item = &DocumentRecord> {
    documents.iter().filter(move |record| record.run == run && is_kind(&record.capability))
}

/// Changes that the baseline contains are not applied again. Without a baseline there are none.
pub fn baseline_for_changes(set: &SetRecord) -> Option<Timestamp> {
    // OAI-PMH promises no order: a record may be shown long after its datestamp.
    set.baseline_at.filter(|_| set.has_baseline && set.oai.is_none())
}

#[cfg(test)]
mod tests {
    use model::{CapabilityLink, DocumentState};

    use super::*;
    use crate::HarvestOptions;

    fn set(capabilities: &[Capability]) -> (SetId, SetRecord) {
        let link = |c: &Capability| CapabilityLink::new(c.clone(), format!("http://h/{c}.xml"));
        let set = SetRecord { capabilities: capabilities.iter().map(link).collect(), ..SetRecord::default() };
        (SetId::new("http://h/capabilitylist.xml"), set)
    }

    fn selection(strict: bool) -> Selection {
        Selection::of(&HarvestOptions { strict, ..HarvestOptions::default() }, None)
    }

    fn chosen(set: &(SetId, SetRecord), asked: Option<Mode>) -> Option<(Mode, Vec<Capability>)> {
        let strategy =
            choose([(&set.0, &set.1)].into_iter(), asked, None, &selection(false), &HashSet::new())?;
        Some((strategy.mode, strategy.documents.into_iter().map(|(_, capability, _)| capability).collect()))
    }

    fn document(
        run: RunId,
        capability: Capability,
        state: DocumentState,
        at: Option<i64>,
        until: Option<i64>,
    ) -> DocumentRecord {
        let mut record = crate::queued_document(run, &SetId::new("s"), &capability, None);
        record.state = state;
        record.at = at.map(second);
        record.at_latest = record.at;
        record.until = until.map(second);
        record
    }

    fn second(n: i64) -> Timestamp {
        Timestamp::from_second(n).unwrap()
    }

    const BOTH: [Capability; 2] = [Capability::ResourceList, Capability::ChangeList];

    #[test]
    fn a_new_set_gets_a_baseline_and_the_changes_since() {
        assert_eq!(chosen(&set(&BOTH), None), Some((Mode::Baseline, BOTH.to_vec())));
    }

    #[test]
    fn a_set_with_a_baseline_gets_its_changes_only() {
        let mut known = set(&BOTH);
        known.1.has_baseline = true;
        known.1.selection = Some(selection(false).id());
        assert_eq!(chosen(&known, None), Some((Mode::Incremental, vec![Capability::ChangeList])));
        assert_eq!(chosen(&known, Some(Mode::Baseline)), Some((Mode::Baseline, BOTH.to_vec())));
        let chosen = |asked, is_strict, again: &[&SetId]| {
            let again = again.iter().copied().cloned().collect();
            choose([(&known.0, &known.1)].into_iter(), asked, None, &selection(is_strict), &again)
                .unwrap()
                .mode
        };
        assert_eq!(chosen(None, true, &[]), Mode::Baseline);
        assert_eq!(chosen(None, false, &[&known.0]), Mode::Baseline);
        assert_eq!(chosen(None, false, &[&SetId::new("http://h/other.xml")]), Mode::Incremental);
        assert_eq!(chosen(Some(Mode::Incremental), false, &[&known.0]), Mode::Incremental);
    }

    #[test]
    fn without_change_lists_every_run_is_a_baseline() {
        let mut known = set(&[Capability::ResourceList]);
        known.1.has_baseline = true;
        assert_eq!(chosen(&known, None), Some((Mode::Baseline, vec![Capability::ResourceList])));
        assert_eq!(chosen(&known, Some(Mode::Incremental)), None);
    }

    #[test]
    fn a_bare_change_list_is_followed_without_a_baseline() {
        let bare = set(&[Capability::ChangeList]);
        assert_eq!(chosen(&bare, None), Some((Mode::Incremental, vec![Capability::ChangeList])));
    }

    #[test]
    fn a_set_with_nothing_usable_gives_no_way() {
        assert_eq!(chosen(&set(&[Capability::ResourceDumpManifest]), None), None);
        assert_eq!(offers(&[set(&[Capability::ResourceDumpManifest])]), "resourcedump-manifest");
    }

    #[test]
    fn a_dump_is_read_where_there_is_no_list_or_where_it_is_preferred() {
        use Capability::{ChangeDump, ChangeList, ResourceDump, ResourceList};
        let dumps = set(&[ResourceDump, ChangeDump]);
        assert_eq!(chosen(&dumps, None), Some((Mode::Baseline, vec![ResourceDump, ChangeDump])));
        let all = set(&[ResourceDump, ResourceList, ChangeDump, ChangeList]);
        assert_eq!(chosen(&all, None), Some((Mode::Baseline, vec![ResourceList, ChangeList])));
        let one = [(&all.0, &all.1)].into_iter();
        let preferred = choose(one, None, Some(Prefer::Dump), &selection(false), &HashSet::new()).unwrap();
        let kinds: Vec<_> = preferred.documents.into_iter().map(|(_, kind, _)| kind).collect();
        assert_eq!(kinds, [ResourceDump, ChangeDump]);
    }

    #[test]
    fn a_dump_moves_its_set_when_all_its_packages_are_settled_or_a_list_says_the_same() {
        let (_, mut set) = set(&[Capability::ResourceDump, Capability::ResourceList]);
        let run = RunId::fresh();
        let mut dump = document(run, Capability::ResourceDump, DocumentState::Done, Some(10), None);
        dump.packages = 2;
        assert!(!advance(&mut set, run, std::slice::from_ref(&dump)), "packages are missing");
        let list = document(run, Capability::ResourceList, DocumentState::Done, Some(12), None);
        assert!(advance(&mut set, run, &[dump.clone(), list]));
        assert_eq!((set.has_baseline, set.baseline_at), (true, Some(second(12))));
        let later = RunId::fresh();
        let mut whole = document(later, Capability::ResourceDump, DocumentState::Done, Some(20), None);
        (whole.packages, whole.unpacked) = (2, Some(7));
        assert!(advance(&mut set, later, &[dump, whole]));
        assert_eq!(set.baseline_at, Some(second(20)));
    }

    #[test]
    fn a_set_moves_on_to_the_earliest_at_of_its_lists_and_from_there_with_its_changes() {
        let (_, mut set) = set(&BOTH);
        let run = RunId::fresh();
        let mut documents = vec![
            document(run, Capability::ResourceList, DocumentState::Done, Some(20), None),
            document(run, Capability::ResourceList, DocumentState::Done, Some(10), None),
            document(run, Capability::ChangeList, DocumentState::Done, None, Some(30)),
        ];
        documents[2].from = Some(second(5));
        assert!(advance(&mut set, run, &documents));
        assert!(set.has_baseline);
        assert_eq!((set.baseline_at, set.synchronized_to), (Some(second(10)), Some(second(30))));
        assert!(!advance(&mut set, run, &documents));
    }

    #[test]
    fn changes_that_begin_later_do_not_join_on_and_move_nothing() {
        let (_, mut set) = set(&BOTH);
        set.synchronized_to = Some(second(10));
        let run = RunId::fresh();
        let mut changes = document(run, Capability::ChangeList, DocumentState::Done, None, Some(30));
        changes.from = Some(second(20));
        assert!(!advance(&mut set, run, &[changes.clone()]));
        changes.from = Some(second(10));
        assert!(advance(&mut set, run, &[changes]));
        assert_eq!(set.synchronized_to, Some(second(30)));
    }

    #[test]
    fn an_open_list_moves_its_set_to_its_latest_change() {
        let (_, mut set) = set(&BOTH);
        let run = RunId::fresh();
        let mut changes = document(run, Capability::ChangeList, DocumentState::Done, None, None);
        changes.latest_change = Some(second(25));
        assert!(advance(&mut set, run, &[changes]));
        assert_eq!(set.synchronized_to, Some(second(25)));
    }

    #[test]
    fn changes_that_were_followed_before_the_first_baseline_hide_no_gap_behind_it() {
        let (_, mut set) = set(&BOTH);
        let first = RunId::fresh();
        let mut changes = document(first, Capability::ChangeList, DocumentState::Done, None, None);
        changes.from = Some(second(20));
        assert!(advance(&mut set, first, &[changes.clone()]));
        assert_eq!((set.has_baseline, set.synchronized_to), (false, Some(second(20))));
        let run = RunId::fresh();
        changes.run = run;
        let list = document(run, Capability::ResourceList, DocumentState::Done, Some(10), None);
        assert!(advance(&mut set, run, &[list, changes]));
        assert_eq!((set.baseline_at, set.synchronized_to), (Some(second(10)), Some(second(10))));
    }

    #[test]
    fn a_list_that_was_not_read_whole_moves_nothing() {
        let (_, mut set) = set(&BOTH);
        let run = RunId::fresh();
        for capability in BOTH {
            let lists = [
                document(run, capability.clone(), DocumentState::Done, Some(10), Some(10)),
                document(run, capability, DocumentState::Failed, Some(10), None),
            ];
            assert!(!advance(&mut set, run, &lists));
        }
        assert!(!set.has_baseline);
    }
}
