use super::*;
use proptest::prelude::*;

const BUDGET: u64 = 1 << 20;
const KIB: u64 = 1 << 10;

/// A table, and its bodies as their connections see them.
#[derive(Default)]
struct Bodies {
    table: BodyTable,
    holders: HashMap<u64, Arc<Holder>>,
}

impl Bodies {
    fn add(&mut self, client: u8, held: u64, now_ms: u64) -> u64 {
        let holder = Arc::new(Holder::default());
        holder.note(held, held, now_ms);
        let client = (client > 0).then_some(ClientKey::V4([192, 0, 2, client]));
        let id = self.table.add(Arc::clone(&holder), client, Waker::noop().clone(), now_ms);
        self.holders.insert(id, holder);
        id
    }

    fn ask(&mut self, id: u64, wanted: u64, now_ms: u64) -> bool {
        self.table.ask(id, wanted, BUDGET, now_ms) == Granted::Yes
    }

    /// Adds one that gets its first bytes and then what it wants, and receives it.
    fn grow(&mut self, client: u8, bytes: u64, now_ms: u64) -> Option<u64> {
        let id = self.add(client, 5 * KIB, now_ms);
        let granted = self.ask(id, FIRST_BYTES, now_ms) && self.ask(id, bytes - 5 * KIB, now_ms);
        let held = bytes.min(self.holders[&id].allowed());
        self.holders[&id].note(held, held, now_ms);
        granted.then_some(id)
    }

    fn end(&mut self, id: u64) {
        self.holders.remove(&id);
        self.table.remove(id, BUDGET);
    }

    fn cut(&self) -> Vec<(u64, Cut)> {
        let cut = self.holders.iter().filter_map(|(id, holder)| Some((*id, holder.cut()?)));
        let mut cut: Vec<_> = cut.collect();
        cut.sort_unstable_by_key(|(id, _)| *id);
        cut
    }

    /// Fills all but the reserve with bodies of so many bytes. Returns their numbers.
    fn fill(&mut self, client: u8, bytes: u64, now_ms: u64) -> Vec<u64> {
        (0..BUDGET / 8 * 7 / bytes).filter_map(|_| self.grow(client, bytes, now_ms)).collect()
    }
}

#[test]
fn what_fits_is_granted_and_what_does_not_waits_for_its_turn() {
    let mut bodies = Bodies::default();
    let first = bodies.fill(0, 128 * KIB, 0);
    assert_eq!(first.len(), 7);
    let next = bodies.add(0, 5 * KIB, 10);
    assert!(bodies.ask(next, FIRST_BYTES, 10), "the reserve is for first bytes");
    assert!(!bodies.ask(next, 100 * KIB, 20));
    assert!(!bodies.ask(next, 100 * KIB, 200), "quick ones are not cut for it");
    assert_eq!(bodies.cut(), []);
    bodies.end(first[0]);
    assert_eq!(bodies.holders[&next].allowed(), 105 * KIB);
    assert!(bodies.ask(next, 1, 300), "it was granted by the release");
}

#[test]
fn a_slow_body_keeps_only_what_it_holds_and_is_cut_if_that_is_not_enough() {
    let mut bodies = Bodies::default();
    let slow: Vec<u64> = bodies.fill(0, 128 * KIB, 0);
    for id in &slow[..2] {
        // They were granted twice as much as they use.
        bodies.table.set_granted(*id, 192 * KIB);
    }
    let next = bodies.add(0, 5 * KIB, 60_000);
    assert!(bodies.ask(next, FIRST_BYTES, 60_000));
    assert!(slow.iter().all(|id| bodies.holders[id].allowed() == 128 * KIB), "unused: taken back");
    assert_eq!(bodies.cut(), []);
    assert!(!bodies.ask(next, 200 * KIB, 60_020));
    assert_eq!(bodies.cut(), [], "it has patience");
    assert!(!bodies.ask(next, 200 * KIB, 60_130));
    let cut = bodies.cut();
    assert_eq!(cut.len(), 1);
    assert!(slow.contains(&cut[0].0) && cut[0].1 == Cut::Slow);
    assert!(!bodies.ask(next, 200 * KIB, 60_140), "the cut one has still to end");
    assert_eq!(bodies.cut().len(), 1);
    bodies.end(cut[0].0);
    assert!(!bodies.ask(next, 200 * KIB, 60_150));
    assert_eq!(bodies.cut().len(), 1, "a second one, as the first was not enough");
    bodies.end(bodies.cut()[0].0);
    assert!(bodies.ask(next, 200 * KIB, 60_160));
}

#[test]
fn the_worst_holds_much_for_long_and_makes_no_progress() {
    let mut bodies = Bodies::default();
    let short = bodies.grow(0, 64 * KIB, 0).expect("it fits");
    let worst = bodies.grow(0, 512 * KIB, 0).expect("it fits");
    let quick = bodies.grow(0, 300 * KIB, 59_000).expect("it fits");
    for at_ms in [60_000, 60_200] {
        let next = bodies.add(0, 5 * KIB, at_ms);
        bodies.ask(next, FIRST_BYTES, at_ms);
        assert!(!bodies.ask(next, 300 * KIB, at_ms));
        assert!(!bodies.ask(next, 300 * KIB, at_ms + 150));
    }
    assert_eq!(bodies.cut(), [(worst, Cut::Slow)]);
    assert!(bodies.holders[&short].cut().is_none() && bodies.holders[&quick].cut().is_none());
}

#[test]
fn a_body_that_can_go_to_the_disk_neither_waits_nor_has_others_cut() {
    let mut bodies = Bodies::default();
    let slow = bodies.fill(0, 128 * KIB, 0);
    let next = bodies.add(0, 5 * KIB, 60_000);
    bodies.holders[&next].set_can_spill(true);
    assert!(bodies.ask(next, FIRST_BYTES, 60_000));
    for at_ms in [60_010, 60_200, 75_000] {
        let granted = bodies.table.ask(next, 100 * KIB, BUDGET, at_ms);
        assert_eq!(granted, Granted::No, "at {at_ms}");
    }
    assert_eq!((bodies.cut(), bodies.table.waiting.len()), (vec![], 0));
    let before = bodies.table.granted;
    bodies.holders[&next].note(0, 5 * KIB, 75_000);
    bodies.table.release(next, BUDGET);
    assert_eq!(bodies.holders[&next].allowed(), 0, "others may have what it was granted");
    assert_eq!(bodies.table.granted, before - 21 * KIB);
    // The reserve is for the first bytes of others.
    bodies.table.set_granted(slow[0], 144 * KIB);
    assert!(!bodies.ask(next, FIRST_BYTES, 75_010));
    bodies.end(slow[0]);
    assert!(bodies.ask(next, FIRST_BYTES, 75_020));
    bodies.end(next);
    for id in &slow[1..] {
        bodies.end(*id);
    }
    assert_eq!((bodies.table.granted, bodies.table.ending, bodies.table.first_waiting), (0, 0, 0));
}

#[test]
fn the_worst_goes_to_the_disk_if_it_can_in_place_of_being_cut() {
    let mut bodies = Bodies::default();
    let slow = bodies.fill(0, 128 * KIB, 0);
    for id in &slow {
        bodies.holders[id].set_can_spill(true);
    }
    let next = bodies.add(0, 5 * KIB, 60_000);
    assert!(bodies.ask(next, FIRST_BYTES, 60_000));
    assert!(!bodies.ask(next, 100 * KIB, 60_010));
    assert!(!bodies.ask(next, 100 * KIB, 60_200));
    let told = |bodies: &Bodies| -> Vec<u64> {
        slow.iter().copied().filter(|id| bodies.holders[id].is_to_spill()).collect()
    };
    assert_eq!((bodies.cut(), told(&bodies).len()), (vec![], 1));
    assert!(!bodies.ask(next, 100 * KIB, 60_300));
    assert_eq!(told(&bodies).len(), 1, "it has still to do so");
    let first = told(&bodies)[0];
    bodies.holders[&first].note(0, 128 * KIB, 60_310);
    bodies.table.release(first, BUDGET);
    assert!(told(&bodies).is_empty(), "it has done so");
    assert_eq!(bodies.holders[&next].allowed(), 105 * KIB, "which was for this one");
    bodies.holders[&next].note(105 * KIB, 105 * KIB, 60_900);
    // One that is told to, and ends before, is counted once.
    let last = bodies.add(0, 5 * KIB, 61_000);
    assert!(bodies.ask(last, FIRST_BYTES, 61_000));
    assert!(!bodies.ask(last, 100 * KIB, 61_010));
    assert!(!bodies.ask(last, 100 * KIB, 61_200));
    let (ended, whole) = (told(&bodies)[0], slow.iter().find(|id| **id != first));
    bodies.table.complete(*whole.expect("seven"), BUDGET);
    bodies.table.complete(ended, BUDGET);
    assert_eq!((told(&bodies), bodies.table.ending), (vec![], 0));
}

#[test]
fn a_new_body_has_the_worst_cut_at_once_if_even_the_reserve_is_taken() {
    let mut bodies = Bodies::default();
    let mut slow = Vec::new();
    while bodies.table.granted + 64 * KIB <= BUDGET {
        let id = bodies.add(0, 48 * KIB, 0);
        assert!(bodies.ask(id, FIRST_BYTES, 0));
        bodies.holders[&id].note(64 * KIB, 64 * KIB, 0);
        slow.push(id);
    }
    let new: Vec<u64> = (0..4).map(|_| bodies.add(0, 5 * KIB, 50_000)).collect();
    for id in &new {
        assert!(!bodies.ask(*id, FIRST_BYTES, 50_000) || bodies.cut().is_empty());
    }
    let cut: Vec<u64> = bodies.cut().iter().map(|(id, _)| *id).collect();
    assert!(!cut.is_empty() && cut.iter().all(|id| slow.contains(id)));
    for id in cut {
        bodies.end(id);
    }
    for round in 1..10 {
        for id in &new {
            _ = bodies.ask(*id, FIRST_BYTES, 50_000 + round * 10);
        }
        let cut: Vec<u64> = bodies.cut().iter().map(|(id, _)| *id).collect();
        assert!(cut.iter().all(|id| slow.contains(id)), "never a new one");
        for id in cut {
            bodies.end(id);
        }
    }
    assert!(new.iter().all(|id| bodies.holders[id].allowed() > 0));
}

#[test]
fn bodies_that_wait_for_each_other_do_not_wait_for_ever() {
    let mut bodies = Bodies::default();
    let all: Vec<u64> = (0..14).map(|_| bodies.grow(0, 64 * KIB, 0).expect("it fits")).collect();
    for at_ms in (10..2_000).step_by(10) {
        for id in &all {
            assert!(!bodies.ask(*id, 64 * KIB, at_ms));
        }
    }
    assert_eq!(bodies.cut(), [], "all of them are quick");
    for at_ms in (2_010..2_100).step_by(10) {
        for id in &all {
            _ = bodies.ask(*id, 64 * KIB, at_ms);
        }
    }
    let cut = bodies.cut();
    assert!(matches!(cut[..], [(_, Cut::Full)]), "{cut:?}");
    bodies.end(cut[0].0);
    let grown = all.iter().filter_map(|id| bodies.holders.get(id));
    assert_eq!(grown.filter(|holder| holder.allowed() == 128 * KIB).count(), 1);
}

#[test]
fn bodies_that_come_to_their_end_are_waited_for_but_not_for_ever() {
    let mut bodies = Bodies::default();
    let mut running = bodies.fill(0, 128 * KIB, 0);
    for id in &running {
        bodies.table.complete(*id, BUDGET);
    }
    let next = bodies.add(0, 5 * KIB, 0);
    assert!(bodies.ask(next, FIRST_BYTES, 0));
    for round in 0..26 {
        let at_ms = round * 400;
        assert!(!bodies.ask(next, 300 * KIB, at_ms));
        if at_ms < WAIT_MS_MAX {
            assert_eq!(bodies.cut(), [], "others end every now and then");
        }
        bodies.end(running.remove(0));
        let id = bodies.grow(0, 100 * KIB, at_ms).expect("the place of the other");
        bodies.table.complete(id, BUDGET);
        running.push(id);
    }
    assert_eq!(bodies.cut(), [(next, Cut::Full)]);
}

#[test]
fn a_client_has_its_share_while_there_are_others() {
    let mut bodies = Bodies::default();
    let many = bodies.fill(1, 32 * KIB, 0);
    assert_eq!(many.len(), 28, "alone it may have all");
    let other = bodies.add(2, 5 * KIB, 0);
    assert!(bodies.ask(other, FIRST_BYTES, 0));
    bodies.end(many[0]);
    bodies.end(many[1]);
    assert!(bodies.ask(other, 32 * KIB, 10));
    let more = bodies.add(1, 5 * KIB, 10);
    assert!(!bodies.ask(more, FIRST_BYTES, 10));
    // Its own slow ones give way, not those of others.
    assert!(!bodies.ask(more, FIRST_BYTES, 5_000));
    let cut = bodies.cut();
    assert!(!cut.is_empty() && cut.iter().all(|(id, _)| many.contains(id)), "{cut:?}");
    bodies.end(other);
    assert!(bodies.ask(more, FIRST_BYTES, 5_010), "it is alone again");
}

#[test]
fn a_whole_body_keeps_its_memory_and_is_never_cut() {
    let mut bodies = Bodies::default();
    for id in bodies.fill(0, 128 * KIB, 0) {
        bodies.table.complete(id, BUDGET);
    }
    let next = bodies.add(0, 5 * KIB, 90_000);
    assert!(bodies.ask(next, FIRST_BYTES, 90_000));
    for at_ms in (90_000..95_000).step_by(10) {
        assert!(!bodies.ask(next, 300 * KIB, at_ms));
    }
    // All that can be cut is the one that waits: there is no memory for it.
    assert_eq!(bodies.cut(), [(next, Cut::Full)]);
}

#[test]
fn a_wait_is_not_held_against_a_body() {
    let mut bodies = Bodies::default();
    let waiting = bodies.grow(0, 512 * KIB, 0).expect("it fits");
    let whole = bodies.grow(0, 384 * KIB, 0).expect("it fits");
    bodies.table.complete(whole, BUDGET);
    assert!(!bodies.ask(waiting, 64 * KIB, 10));
    assert_eq!(bodies.table.entries[&waiting].active_ms(800), 10);
    bodies.end(whole);
    assert_eq!(bodies.table.entries[&waiting].active_ms(10), 10);
    assert!(!bodies.table.entries[&waiting].is_slow(900));
}

proptest! {
    #[test]
    fn grants_never_exceed_the_budget_and_the_sums_are_right(
        steps in prop::collection::vec((0_u8..8, 0_usize..20, 1_u64..300, 0_u64..2_000), 1..200),
    ) {
        let (mut bodies, mut ids, mut now_ms) = (Bodies::default(), Vec::new(), 0);
        for (step, place, kib, later_ms) in steps {
            now_ms += later_ms;
            let id = ids.get(place % ids.len().max(1)).copied();
            match (step, id) {
                (0 | 1, _) | (_, None) => {
                    let id = bodies.add(u8::try_from(place % 4).expect("small"), 5 * KIB, now_ms);
                    bodies.ask(id, FIRST_BYTES, now_ms);
                    ids.push(id);
                }
                (2, Some(id)) => {
                    ids.retain(|other| *other != id);
                    bodies.end(id);
                }
                (3, Some(id)) if bodies.holders[&id].allowed() > 0 => {
                    let holder = &bodies.holders[&id];
                    let held = holder.held().max(holder.allowed());
                    holder.note(held, held, now_ms);
                    bodies.table.complete(id, BUDGET);
                }
                (6, Some(id)) => bodies.holders[&id].set_can_spill(kib % 3 > 0),
                (7, Some(id)) if !bodies.table.entries[&id].is_whole() => {
                    bodies.holders[&id].note(0, kib * KIB, now_ms);
                    bodies.table.release(id, BUDGET);
                }
                (_, Some(id)) => {
                    let entry = &bodies.table.entries[&id];
                    if !entry.is_whole() && entry.granted > 0 {
                        bodies.ask(id, kib * KIB, now_ms);
                    }
                }
            }
            let table = &bodies.table;
            let sum: u64 = table.entries.values().map(|entry| entry.granted).sum();
            let ending = table.entries.values().filter(|entry| entry.is_ending());
            let first = table.entries.values().filter(|one| one.granted == 0 && one.wait.is_some());
            prop_assert_eq!(table.granted, sum);
            prop_assert_eq!(table.ending, ending.map(|entry| entry.granted).sum::<u64>());
            prop_assert_eq!(table.first_waiting, first.count() as u64);
            let of_clients: usize = table.of_clients.values().map(|one| one.bodies).sum();
            let known = table.entries.values().filter(|entry| entry.client.is_some()).count();
            prop_assert_eq!(of_clients, known);
            prop_assert!(sum <= BUDGET, "{} is granted", sum);
        }
    }
}
