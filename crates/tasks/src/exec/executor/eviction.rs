//! Closing idle connections to make room: those of the client that has most go first, and of these
//! the longest idle.
//!
//! Nothing is kept per connection for this. Each idle one has a timer for its deadline, and the
//! earliest deadline is that of the longest idle. Tasks are asked in that order, until enough of
//! them could give way; where there are many more, some from anywhere are asked too: most of these
//! belong to the client that has most. Then the tasks that are chosen are asked to do it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use gustnado_reactor::Token;

use crate::exec::executor::context::{self, WorkerContext};
use crate::exec::wakers::task_id::TaskId;
use crate::exec::worker::evictions::{EvictionAnswer, EvictionQuestion};

/// Tasks that are asked in one go. To ask one costs less than a microsecond; where the kernel has
/// to be asked whose connection it is, a few.
const ASKED_MAX: usize = 1024;
/// Tasks that could give way, among which is chosen.
const CANDIDATES_MAX: usize = 256;
/// Tasks from anywhere that are asked too, if there are more than [`ASKED_MAX`].
const SPREAD_MAX: usize = 256;

/// A task that could give way. The one with the earliest deadline has been idle for longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EvictionCandidate {
    deadline_ms: u64,
    token: Token,
    client: Option<u64>,
}

/// Asks tasks in the order of their deadlines, and lets as many give way as were requested, as far
/// as enough are found for now.
///
/// - `place`: the index of the worker's handle.
/// - `ask`: runs a task that waits, and returns what it answers.
pub(crate) fn evict(
    ctx: &WorkerContext,
    place: usize,
    mut ask: impl FnMut(TaskId, EvictionQuestion) -> EvictionAnswer,
) {
    // This thread may have slept elsewhere, and tasks go by its clock.
    ctx.reactor.borrow_mut().tick();
    ctx.note_time();
    let requests = &ctx.shared.evictions;
    let wanted = requests.take(place);
    let first = ctx.first_timers(requests.after_ms(place), ASKED_MAX);
    let last_ms = first.last().map_or(0, |(deadline_ms, _)| *deadline_ms);
    let has_all = first.len() < ASKED_MAX;
    let mut candidates = find_candidates(first, &mut ask);
    if !has_all {
        candidates.extend(find_candidates(ctx.spread_timers(SPREAD_MAX), &mut ask));
    }
    let is_short = choose(candidates, wanted, |token| {
        ask(TaskId::of_token(token), EvictionQuestion::DoSo) == EvictionAnswer::GivesWay
    }) < wanted;
    // Tasks that have nothing to give up must not be asked again before all others were.
    requests.set_after_ms(place, if is_short && !has_all { last_ms } else { 0 });
    ctx.shared.end_eviction();
}

/// Takes note that a file could not be opened because descriptors have run out: idle connections
/// give way, if they are descriptors.
pub fn request_descriptors() {
    context::try_with(|ctx| ctx.shared.request_descriptors());
}

/// Asks tasks one after the other, until enough of them could give way. Returns these.
fn find_candidates(
    timers: Vec<(u64, Token)>,
    ask: &mut impl FnMut(TaskId, EvictionQuestion) -> EvictionAnswer,
) -> Vec<EvictionCandidate> {
    // By what they say themselves: a timer may be early, as it is only moved when that is needed.
    let candidate_of = |(_, token)| match ask(TaskId::of_token(token), EvictionQuestion::CouldIt) {
        EvictionAnswer::Candidate { deadline_ms, client } => {
            Some(EvictionCandidate { deadline_ms, token, client })
        }
        _ => None,
    };
    timers.into_iter().filter_map(candidate_of).take(CANDIDATES_MAX).collect()
}

/// Lets as many give way as are wanted, each time the longest idle of the client that has most. One
/// without a client counts for itself. Returns how many do.
///
/// - `give_way`: asks a task to do so, and returns whether it does.
fn choose(
    mut candidates: Vec<EvictionCandidate>,
    wanted: u32,
    mut give_way: impl FnMut(Token) -> bool,
) -> u32 {
    candidates.sort_unstable();
    candidates.dedup();
    let mut of_clients: HashMap<_, VecDeque<_>> = HashMap::new();
    for EvictionCandidate { deadline_ms, token, client } in candidates {
        let alone = if client.is_none() { Some(token) } else { None };
        of_clients.entry((client, alone)).or_default().push_back((deadline_ms, token));
    }
    let rank = |queue: VecDeque<(u64, Token)>| Some((queue.len(), Reverse(*queue.front()?), queue));
    let mut ranked: BinaryHeap<_> = of_clients.into_values().filter_map(rank).collect();
    let mut given = 0;
    while given < wanted
        && let Some((_, Reverse((_, token)), mut queue)) = ranked.pop()
    {
        given += u32::from(give_way(token));
        queue.pop_front();
        ranked.extend(rank(queue));
    }
    given
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Candidates by their deadlines, which are their tokens too.
    fn candidates(those: &[(u64, Option<u64>)]) -> Vec<EvictionCandidate> {
        let candidate =
            |&(at, client): &(u64, _)| EvictionCandidate { deadline_ms: at, token: at, client };
        those.iter().map(candidate).collect()
    }

    fn chosen(those: &[(u64, Option<u64>)], wanted: u32) -> Vec<Token> {
        let mut given = Vec::new();
        let count = choose(candidates(those), wanted, |token| {
            given.push(token);
            true
        });
        assert_eq!(count as usize, given.len());
        given
    }

    #[test]
    fn those_with_the_earliest_true_deadline_give_way() {
        // The timer of task 1 is early: its deadline is 35.
        let timers = vec![(10, 1), (20, 2), (30, 3), (40, 4)];
        let mut ask = |id: TaskId, _| match id.token() {
            2 => EvictionAnswer::None,
            token => {
                let deadline_ms = if token == 1 { 35 } else { token * 10 };
                EvictionAnswer::Candidate { deadline_ms, client: Some(7) }
            }
        };
        let mut given = Vec::new();
        let count = choose(find_candidates(timers, &mut ask), 3, |token| {
            given.push(token);
            true
        });
        assert_eq!((count, given), (3, vec![3, 1, 4]));
    }

    #[test]
    fn a_timer_that_is_early_makes_no_newcomer_wait() {
        // All deadlines have moved past the last timer, as after a second request of each.
        let mut ask = |id: TaskId, _| EvictionAnswer::Candidate {
            deadline_ms: 90 - id.token(),
            client: Some(7),
        };
        let found = find_candidates(vec![(10, 1), (11, 2), (12, 3)], &mut ask);
        let mut given = Vec::new();
        let count = choose(found, 1, |token| {
            given.push(token);
            true
        });
        assert_eq!((count, given), (1, vec![3]));
    }

    #[test]
    fn no_more_are_asked_than_are_wanted() {
        let those: Vec<_> = (1..9).map(|at| (at, None)).collect();
        assert_eq!(chosen(&those, 2), [1, 2]);
        let mut asked = 0;
        let mut ask = |_, _| {
            asked += 1;
            EvictionAnswer::Candidate { deadline_ms: 1, client: None }
        };
        find_candidates((0..999).map(|at| (at, at)).collect(), &mut ask);
        assert_eq!(asked, CANDIDATES_MAX);
    }

    #[test]
    fn the_client_with_most_gives_way_until_others_have_as_many() {
        let those = [
            (1, Some(1)),
            (2, Some(2)),
            (3, Some(2)),
            (11, Some(3)),
            (12, Some(3)),
            (13, Some(3)),
            (14, Some(3)),
        ];
        assert_eq!(chosen(&those, 3), [11, 12, 2]);
        assert_eq!(chosen(&those, 9), [11, 12, 2, 13, 1, 3, 14]);
    }

    #[test]
    fn those_without_a_client_count_for_themselves() {
        let those = [(1, None), (2, None), (3, None), (4, Some(9)), (5, Some(9))];
        assert_eq!(chosen(&those, 3), [4, 1, 2]);
    }

    #[test]
    fn one_that_has_become_busy_is_passed_over() {
        let count = choose(candidates(&[(1, Some(1)), (2, Some(1)), (3, Some(1))]), 2, |at| at > 1);
        assert_eq!(count, 2);
        assert_eq!(choose(candidates(&[(1, None), (1, None)]), 2, |_| true), 1, "asked twice");
    }
}
