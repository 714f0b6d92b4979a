use super::*;

fn count_live(world: &World) -> u64 {
    (0..world.next_index()).filter(|index| world.at(*index, world.now()).is_some()).count() as u64
}

#[test]
fn equal_seeds_choose_equal_changes() {
    let make = |seed| {
        let mut world = World::new(seed, 1000, 100);
        world.change(Changes { create: 3, update: 20, delete: 10 })
    };
    assert_eq!(make(1), make(1));
    assert_ne!(make(1), make(2));
}

#[test]
fn each_change_has_a_second_of_its_own_and_counts_add_up() {
    let mut world = World::new(1, 100, 100);
    let changes = world.change(Changes { create: 5, update: 10, delete: 20 });
    assert_eq!(changes.len(), 35);
    assert!(changes.windows(2).all(|pair| pair[0].time.plus(1) == pair[1].time));
    assert_eq!((world.live(), count_live(&world)), (85, 85));
}

#[test]
fn the_snapshot_keeps_the_old_truth_until_refreshed() {
    let mut world = World::new(1, 10, 4);
    assert_eq!(world.snapshot().parts, [0..4, 4..8, 8..10]);
    world.apply(0, ChangeKind::Deleted);
    let at = world.snapshot().at;
    assert!(world.at(0, at).is_some() && world.at(0, world.now()).is_none());
    world.refresh_snapshot();
    assert_eq!(world.snapshot().parts, [0..5, 5..9, 9..10], "holes do not count as entries");
    assert_eq!(world.snapshot().at, world.now());
}

#[test]
fn a_full_change_list_is_closed_and_the_next_begins_where_it_ends() {
    let mut world = World::new(1, 100, 100);
    world.change(Changes { update: 7, ..Changes::default() });
    let intervals = world.intervals(3);
    let counts: Vec<usize> = intervals.iter().map(|interval| interval.changes.len()).collect();
    assert_eq!(counts, [3, 3, 1]);
    assert_eq!(intervals[0].until, Some(intervals[1].from));
    assert_eq!(intervals[2].until, None);
    world.forget_changes();
    assert_eq!(world.intervals(3), [Interval { from: world.now(), until: None, changes: 7..7 }]);
}

#[test]
fn more_changes_than_resources_hit_each_of_them_once() {
    let mut world = World::new(1, 4, 100);
    let changes = world.change(Changes { update: 3, delete: 9, create: 0 });
    let kinds: Vec<&str> = changes.iter().map(|change| change.kind.name()).collect();
    assert_eq!(kinds, ["updated", "updated", "updated", "deleted"]);
}

#[test]
fn a_resource_created_again_has_a_version_it_never_had() {
    let mut world = World::new(1, 4, 100);
    world.apply(2, ChangeKind::Deleted);
    assert_eq!(world.apply(2, ChangeKind::Created).version, 1);
}
