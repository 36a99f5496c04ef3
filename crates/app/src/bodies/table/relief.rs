//! The same rules where nothing waits for a grant: parts of heads, and sends that their peers do
//! not take. What they hold is held. If that is too much, the worst are cut.

use std::collections::HashMap;

use super::{BodyTable, PATIENCE_MS, SCORE_MIN, SHARES};
use crate::client_key::ClientKey;

/// What has been held for less time is not cut: that of a quick peer is gone by then.
const HELD_MS_MIN: u64 = 5 * PATIENCE_MS;
/// By this time it has turned out whether a peer is quick.
const KNOWN_MS: u64 = 25 * PATIENCE_MS;

/// What one client holds that is not cut yet.
#[derive(Debug, Default)]
struct ClientShare {
    bytes: u64,
    /// Of these, held for so short a time that nothing is known of them.
    unknown: u64,
}

impl BodyTable {
    /// Notes how many bytes are held.
    pub(in crate::bodies) fn hold(&mut self, id: u64, bytes: u64) {
        self.set_granted(id, bytes);
    }

    /// Cuts the worst ones until what is held fits into the budget. Those of clients that hold
    /// more than their share come first.
    ///
    /// - `held`: bytes of this kind, with those that are not in the table.
    pub(in crate::bodies) fn relieve(&mut self, held: u64, budget: u64, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        let mut excess = held.saturating_sub(budget).saturating_sub(self.ending);
        if excess == 0 {
            return;
        }
        let mut worst = Vec::new();
        let mut of_clients = HashMap::<ClientKey, ClientShare>::new();
        for (id, entry) in self.entries.iter().filter(|(_, entry)| !entry.is_ending()) {
            let age_ms = now_ms.saturating_sub(entry.since_ms);
            entry.holder.look(now_ms);
            let score = entry.score(age_ms, now_ms);
            if age_ms >= HELD_MS_MIN && score >= SCORE_MIN {
                worst.push((score, *id));
            }
            if let Some(client) = entry.client {
                let share = of_clients.entry(client).or_default();
                share.bytes += entry.granted;
                share.unknown += if age_ms < KNOWN_MS { entry.granted } else { 0 };
            }
        }
        worst.sort_unstable_by(|a, b| b.cmp(a));
        if self.of_clients.len() > 1 {
            let share_max = budget / SHARES;
            self.cut_worst(&worst, &mut excess, |client, (bytes, is_unknown)| {
                let share = client.and_then(|client| of_clients.get_mut(&client));
                let Some(share) = share.filter(|share| share.bytes > share_max) else {
                    return false;
                };
                share.bytes -= bytes;
                share.unknown -= if is_unknown { bytes } else { 0 };
                true
            });
            // Others wait until more is known of what these clients hold.
            let over = of_clients
                .values()
                .map(|share| share.unknown.min(share.bytes.saturating_sub(share_max)));
            excess = excess.saturating_sub(over.sum());
        }
        self.cut_worst(&worst, &mut excess, |_, _| true);
    }

    /// Cuts until enough will be freed.
    ///
    /// - `worst`: what may be cut, in this order.
    /// - `is_meant`: whether the client is to lose so many bytes, of which nothing is known, or is.
    fn cut_worst(
        &mut self,
        worst: &[(u128, u64)],
        excess: &mut u64,
        mut is_meant: impl FnMut(Option<ClientKey>, (u64, bool)) -> bool,
    ) {
        for (_, id) in worst {
            if *excess == 0 {
                return;
            }
            let Some(entry) = self.entries.get(id).filter(|entry| !entry.is_ending()) else {
                continue;
            };
            let is_unknown = self.now_ms.saturating_sub(entry.since_ms) < KNOWN_MS;
            if is_meant(entry.client, (entry.granted, is_unknown)) {
                *excess = excess.saturating_sub(self.cut(*id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;

    use super::*;
    use crate::bodies::holder::Holder;

    const BUDGET: u64 = 1 << 20;
    const KIB: u64 = 1 << 10;

    #[derive(Default)]
    struct Sends {
        table: BodyTable,
        holders: Vec<(u64, Arc<Holder>)>,
    }

    impl Sends {
        fn add(&mut self, client: u8, held: u64, now_ms: u64) -> u64 {
            let (holder, client) =
                (Arc::new(Holder::default()), ClientKey::V4([192, 0, 2, client]));
            holder.hold(held);
            let waker = Waker::noop().clone();
            let id = self.table.add(Arc::clone(&holder), Some(client), waker, now_ms);
            self.table.hold(id, held);
            self.holders.push((id, holder));
            id
        }

        /// Returns those that are cut where so much more than the budget is held.
        fn relieve(&mut self, excess: u64, now_ms: u64) -> Vec<u64> {
            self.table.relieve(BUDGET + excess, BUDGET, now_ms);
            let cut = self.holders.iter().filter(|(_, holder)| holder.cut().is_some());
            cut.map(|(id, _)| *id).collect()
        }

        fn take(&self, id: u64, bytes: u64) {
            let of_id = self.holders.iter().find(|(one, _)| *one == id);
            of_id.expect("it was added").1.note_taken(bytes);
        }
    }

    #[test]
    fn the_worst_are_cut_until_the_rest_fits() {
        let mut sends = Sends::default();
        let small = sends.add(1, 20 * KIB, 0);
        let large = sends.add(2, 60 * KIB, 0);
        let late = sends.add(3, 60 * KIB, 2_000);
        assert!(sends.relieve(0, 5_000).is_empty());
        assert_eq!(sends.relieve(50 * KIB, 5_000), [large]);
        assert_eq!(sends.relieve(50 * KIB, 5_100), [large], "it is about to free as much");
        assert_eq!(sends.relieve(70 * KIB, 5_200), [large, late]);
        sends.table.remove(large, 0);
        sends.table.remove(late, 0);
        assert_eq!(sends.relieve(1, 9_000), [small, large, late]);
    }

    #[test]
    fn neither_a_newcomer_nor_a_quick_peer_is_cut() {
        let mut sends = Sends::default();
        let (slow, quick) = (sends.add(1, 60 * KIB, 0), sends.add(2, 60 * KIB, 0));
        sends.add(3, 60 * KIB, 2_600);
        sends.take(quick, 50 * KIB);
        sends.take(slow, 100);
        assert_eq!(sends.relieve(BUDGET, 1_500), [slow]);
        // It takes no more, and its progress fades.
        assert_eq!(sends.relieve(BUDGET, 3_000), [slow, quick]);
    }

    #[test]
    fn clients_that_hold_more_than_their_share_come_first() {
        let mut sends = Sends::default();
        let others: Vec<u64> = (2..6).map(|client| sends.add(client, 60 * KIB, 0)).collect();
        let many: Vec<u64> = (0..6).map(|_| sends.add(1, 60 * KIB, 3_000)).collect();
        assert!(sends.relieve(200 * KIB, 3_100).is_empty(), "they may be quick");
        assert_eq!(
            sends.relieve(240 * KIB, 3_100),
            others[3..],
            "that they are slow is not enough"
        );
        sends.table.remove(others[3], 0);
        let cut = [&others[3..], &many[2..]].concat();
        assert_eq!(sends.relieve(200 * KIB, 6_000), cut, "four of them");
        // It is within its share by now.
        assert_eq!(sends.relieve(250 * KIB, 6_100), [&others[2..], &many[2..]].concat());
    }

    #[test]
    fn one_client_alone_has_nothing_to_share() {
        let mut sends = Sends::default();
        let first = sends.add(1, 100 * KIB, 0);
        let all: Vec<u64> = (0..6).map(|at| sends.add(1, 60 * KIB, at)).collect();
        assert_eq!(sends.relieve(1, 6_000), [first]);
        assert_eq!(all.len(), 6);
    }
}
