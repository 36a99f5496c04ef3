//! The rules by which bodies share their budget. Time is an argument.
//!
//! A body may grow up to what it was granted. Grants fit into the budget, so a body that was
//! granted its whole length can come to its end. The last eighth of the budget is for the first
//! bytes of new bodies. What does not fit waits: its connection is not read. A body that comes
//! slowly loses the part of its grant that it has not used, and if that is not enough, the worst
//! ones are cut: by the bytes that they hold, times their time, by their recent progress. A body
//! that can put what it holds to the disk does that in place of waiting and of being cut.

mod relief;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use foldhash::fast::RandomState;

use super::holder::{Cut, Holder};
use crate::client_key::ClientKey;

/// The first grant of each body.
pub(super) const FIRST_BYTES: u64 = 16 << 10;
/// A body that has waited this long has worse ones cut.
const PATIENCE_MS: u64 = 100;
/// After this wait, if no body has ended meanwhile, some body is cut though none is bad: all of
/// them wait for each other.
const STALLED_MS: u64 = 2_000;
/// A body that has waited this long is cut itself.
const WAIT_MS_MAX: u64 = 10_000;
/// How often a waiting body asks again.
const RETRY_MS: u64 = 10;
/// All bodies are looked through at most once in this time.
const SCAN_MS: u64 = 5;
/// Waiting bodies that one release looks at.
const WOKEN_MAX: usize = 64;
/// A body with a lower score is not cut for others: a quick one would have ended in that time.
const SCORE_MIN: u128 = 2_000;
/// One client may have this part of the budget while there are others.
const SHARES: u64 = 8;

/// The outcome of a request for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Granted {
    Yes,
    /// Not yet: ask again at this time, or when woken.
    Wait(u64),
    /// No: it can put what it holds to the disk.
    No,
}

/// All bodies that hold memory.
#[derive(Debug, Default)]
pub(super) struct BodyTable {
    entries: HashMap<u64, BodyEntry, RandomState>,
    last_id: u64,
    granted: u64,
    of_clients: HashMap<ClientKey, OfClient, RandomState>,
    waiting: VecDeque<u64>,
    /// Of these, how many wait for their first grant.
    first_waiting: u64,
    /// What bodies hold that were cut and have not ended yet, or are to put it to the disk.
    ending: u64,
    /// When slow bodies were last looked for, and when bad ones.
    scanned_ms: u64,
    cut_ms: u64,
    /// When a body last ended that had more than its first grant.
    ended_ms: u64,
    now_ms: u64,
}

#[derive(Debug, Default)]
struct OfClient {
    bodies: usize,
    granted: u64,
}

#[derive(Debug)]
struct BodyEntry {
    holder: Arc<Holder>,
    client: Option<ClientKey>,
    waker: Waker,
    since_ms: u64,
    granted: u64,
    wait: Option<GrantWait>,
    /// How long it has waited so far.
    waited_ms: u64,
    state: BodyPhase,
}

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyPhase {
    Growing,
    /// It was told to put what it holds to the disk.
    Spilling,
    /// It has done so: the reserve is for others.
    Spilled,
    /// It was received to its end: its handler holds it.
    Whole,
    Cut,
}

#[derive(Clone, Copy, Debug)]
struct GrantWait {
    since_ms: u64,
    wanted: u64,
}

impl BodyEntry {
    /// Returns the time until which it counts: a wait is not its client's fault.
    fn seen_ms(&self, now_ms: u64) -> u64 {
        self.wait.map_or(now_ms, |wait| wait.since_ms.min(now_ms))
    }

    fn active_ms(&self, now_ms: u64) -> u64 {
        self.seen_ms(now_ms).saturating_sub(self.since_ms).saturating_sub(self.waited_ms)
    }

    /// Returns how bad it is: bytes held, times time, by progress.
    fn score(&self, time_ms: u64, now_ms: u64) -> u128 {
        let recent = self.holder.recent(self.seen_ms(now_ms));
        u128::from(self.holder.held()) * u128::from(time_ms) / (u128::from(recent) + 1)
    }

    fn active_score(&self, now_ms: u64) -> u128 {
        self.score(self.active_ms(now_ms), now_ms)
    }

    /// Returns the same with the time in which it waited: for a new body, it matters that the
    /// memory is held, not whose fault that is. 0 if it is not held for long.
    fn held_score(&self, now_ms: u64) -> u128 {
        let age_ms = now_ms.saturating_sub(self.since_ms);
        if age_ms < PATIENCE_MS { 0 } else { self.score(age_ms, now_ms).max(1) }
    }

    /// Returns whether what it was granted will be free soon.
    fn is_ending(&self) -> bool {
        matches!(self.state, BodyPhase::Spilling | BodyPhase::Cut)
    }

    fn is_whole(&self) -> bool {
        self.state == BodyPhase::Whole
    }

    fn is_slow(&self, now_ms: u64) -> bool {
        self.holder.is_slow(self.active_ms(now_ms), self.seen_ms(now_ms))
    }
}

impl BodyTable {
    /// Adds a body that has nothing granted yet. Returns its number.
    pub(super) fn add(
        &mut self,
        holder: Arc<Holder>,
        client: Option<ClientKey>,
        waker: Waker,
        now_ms: u64,
    ) -> u64 {
        self.last_id += 1;
        let entry = BodyEntry {
            holder,
            client,
            waker,
            since_ms: now_ms,
            granted: 0,
            wait: None,
            waited_ms: 0,
            state: BodyPhase::Growing,
        };
        self.entries.insert(self.last_id, entry);
        if let Some(client) = client {
            self.of_clients.entry(client).or_default().bodies += 1;
        }
        self.last_id
    }

    /// Removes a body that has ended, and grants others what it had.
    pub(super) fn remove(&mut self, id: u64, budget: u64) {
        self.end_wait(id);
        let Some(entry) = self.entries.remove(&id) else { return };
        self.granted -= entry.granted;
        if entry.granted > FIRST_BYTES {
            self.ended_ms = self.now_ms;
        }
        if entry.is_ending() {
            self.ending -= entry.granted;
        }
        if let Some(client) = entry.client
            && let Some(of_client) = self.of_clients.get_mut(&client)
        {
            of_client.granted -= entry.granted;
            of_client.bodies -= 1;
            if of_client.bodies == 0 {
                self.of_clients.remove(&client);
            }
        }
        self.grant_waiting(budget);
    }

    /// Notes that a body is whole: it keeps what it holds, and cannot be cut any more.
    pub(super) fn complete(&mut self, id: u64, budget: u64) {
        self.end_spill(id);
        if let Some(entry) = self.entries.get_mut(&id).filter(|entry| !entry.is_ending()) {
            entry.state = BodyPhase::Whole;
        }
        self.release(id, budget);
    }

    /// Takes back what a body was granted beyond what it holds, which it has put to the disk.
    pub(super) fn release(&mut self, id: u64, budget: u64) {
        self.end_wait(id);
        self.end_spill(id);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if entry.state == BodyPhase::Growing {
            entry.state = BodyPhase::Spilled;
        }
        let (granted, held) = (entry.granted, entry.holder.held());
        if granted > held.max(FIRST_BYTES) {
            self.ended_ms = self.now_ms;
        }
        let kept = if entry.is_whole() { held } else { held.min(granted) };
        self.set_granted(id, kept);
        self.grant_waiting(budget);
    }

    /// Takes back the order to put a body to the disk.
    fn end_spill(&mut self, id: u64) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if entry.state == BodyPhase::Spilling {
            entry.state = BodyPhase::Spilled;
            entry.holder.order_spill(false);
            self.ending -= entry.granted;
        }
    }

    /// Asks for so many bytes more than are held.
    pub(super) fn ask(&mut self, id: u64, wanted: u64, budget: u64, now_ms: u64) -> Granted {
        self.now_ms = self.now_ms.max(now_ms);
        let Some(entry) = self.entries.get_mut(&id) else { return Granted::Yes };
        let is_new = entry.wait.is_none();
        let wait = GrantWait { since_ms: entry.wait.map_or(now_ms, |wait| wait.since_ms), wanted };
        entry.wait = Some(wait);
        let (is_first, waited_ms) = (entry.granted == 0, now_ms.saturating_sub(wait.since_ms));
        if is_new {
            self.first_waiting += u64::from(is_first);
        }
        if self.grant(id, budget) {
            return Granted::Yes;
        }
        let can_spill = self.entries.get(&id).is_some_and(|entry| entry.holder.can_spill());
        if is_new && !can_spill {
            self.join_waiting(id, wanted);
        }
        if now_ms >= self.scanned_ms + SCAN_MS {
            self.scanned_ms = now_ms;
            self.revoke(now_ms);
            if self.grant(id, budget) {
                return Granted::Yes;
            }
        }
        if can_spill {
            self.end_wait(id);
            return Granted::No;
        }
        // Apart from the above: those that still have patience must not take the turns of others.
        if (is_first || waited_ms >= PATIENCE_MS) && now_ms >= self.cut_ms + SCAN_MS {
            self.cut_ms = now_ms;
            if waited_ms >= WAIT_MS_MAX {
                self.cut(id);
            } else {
                let stalled_ms = now_ms.saturating_sub(wait.since_ms.max(self.ended_ms));
                self.cut_for(id, stalled_ms >= STALLED_MS, budget);
            }
        }
        Granted::Wait(now_ms + RETRY_MS.max(if is_first { 0 } else { PATIENCE_MS / 2 }))
    }

    fn join_waiting(&mut self, id: u64, wanted: u64) {
        // Those that were granted more without a release are still in it, and those that have gone.
        if self.waiting.len() > 2 * self.entries.len() {
            let entries = &self.entries;
            self.waiting.retain(|id| entries.get(id).is_some_and(|entry| entry.wait.is_some()));
        }
        if wanted < FIRST_BYTES {
            // It ends with this grant: short bodies do not wait behind long ones.
            self.waiting.push_front(id);
        } else {
            self.waiting.push_back(id);
        }
    }

    /// Grants a waiting body what it wants, if that fits.
    fn grant(&mut self, id: u64, budget: u64) -> bool {
        let Some(entry) = self.entries.get(&id) else { return false };
        let Some(GrantWait { wanted, .. }) = entry.wait else { return true };
        let granted = entry.holder.held().saturating_add(wanted);
        let more = granted.saturating_sub(entry.granted);
        let is_first = entry.granted == 0 && entry.state != BodyPhase::Spilled;
        let reserve = if is_first { 0 } else { budget / 8 };
        let fits = self.granted.saturating_add(more) <= budget - reserve;
        if !fits || entry.state == BodyPhase::Cut || self.is_over_share(entry.client, more, budget)
        {
            return false;
        }
        self.end_wait(id);
        self.set_granted(id, granted);
        true
    }

    /// Returns whether a client would have more than its share. Where there is only one, there is
    /// nothing to share.
    fn is_over_share(&self, client: Option<ClientKey>, more: u64, budget: u64) -> bool {
        let Some(client) = client else { return false };
        let granted = self.of_clients.get(&client).map_or(0, |of_client| of_client.granted);
        self.of_clients.len() > 1 && granted.saturating_add(more) > budget / SHARES
    }

    fn set_granted(&mut self, id: u64, granted: u64) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        self.granted = self.granted - entry.granted + granted;
        if entry.is_ending() {
            self.ending = self.ending - entry.granted + granted;
        }
        if let Some(of_client) = entry.client.and_then(|client| self.of_clients.get_mut(&client)) {
            of_client.granted = of_client.granted - entry.granted + granted;
        }
        entry.granted = granted;
        entry.holder.allow(granted);
    }

    fn end_wait(&mut self, id: u64) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Some(wait) = entry.wait.take() else { return };
        if entry.granted == 0 {
            self.first_waiting -= 1;
        }
        let waited_ms = self.now_ms.saturating_sub(wait.since_ms);
        entry.waited_ms += waited_ms;
        entry.holder.skip(waited_ms);
    }

    /// Grants waiting bodies what fits now, in the order in which they came, and wakes them.
    fn grant_waiting(&mut self, budget: u64) {
        for _ in 0..self.waiting.len().min(WOKEN_MAX) {
            let Some(id) = self.waiting.pop_front() else { return };
            let Some(BodyEntry { wait: Some(_), .. }) = self.entries.get(&id) else { continue };
            if !self.grant(id, budget) {
                self.waiting.push_back(id);
            } else if let Some(entry) = self.entries.get(&id) {
                entry.waker.wake_by_ref();
            }
        }
    }

    /// Takes from slow bodies what they were granted and have not used.
    fn revoke(&mut self, now_ms: u64) {
        let is_unused = |entry: &BodyEntry| {
            !entry.is_whole() && entry.wait.is_none() && entry.granted > entry.holder.held()
        };
        let slow =
            self.entries.iter().filter(|(_, entry)| is_unused(entry) && entry.is_slow(now_ms));
        let slow: Vec<(u64, u64)> = slow
            .map(|(id, entry)| (*id, entry.holder.held().max(FIRST_BYTES.min(entry.granted))))
            .collect();
        for (id, granted) in slow {
            self.set_granted(id, granted);
        }
    }

    /// Cuts the worst bodies for one that waits.
    ///
    /// - `is_stalled`: if there is no bad one, the one that holds most is cut.
    fn cut_for(&mut self, id: u64, is_stalled: bool, budget: u64) {
        let Some(asking) = self.entries.get(&id) else { return };
        let (now_ms, wanted) = (self.now_ms, asking.wait.map_or(0, |wait| wait.wanted));
        let of_client = asking.client.filter(|_| self.is_over_share(asking.client, wanted, budget));
        let is_first = asking.granted == 0;
        // All that wait for their first bytes are served by one look.
        let needed =
            if is_first { self.first_waiting * FIRST_BYTES } else { wanted.min(FIRST_BYTES) };
        let needed = needed.saturating_sub(self.ending);
        if needed == 0 {
            return;
        }
        let score_min = asking.active_score(now_ms).saturating_mul(2).max(SCORE_MIN);
        let score_min = if is_first { 1 } else { score_min };
        let score = |entry: &BodyEntry| {
            if is_first { entry.held_score(now_ms) } else { entry.active_score(now_ms) }
        };
        let can_end = |entry: &BodyEntry| {
            let is_meant = of_client.is_none() || entry.client == of_client;
            is_meant && entry.granted > 0 && !entry.is_whole() && !entry.is_ending()
        };
        let able = || self.entries.iter().filter(|(_, entry)| can_end(entry));
        let mut worst: Vec<(u128, u64)> = able()
            .map(|(id, entry)| (score(entry), *id))
            .filter(|(score, _)| *score >= score_min)
            .collect();
        worst.sort_unstable();
        if worst.is_empty() && is_stalled && self.ending == 0 {
            let most = able().max_by_key(|(id, entry)| (entry.holder.held(), **id));
            worst.extend(most.map(|(id, _)| (0, *id)));
        }
        let mut freed = 0;
        while freed < needed
            && let Some((_, id)) = worst.pop()
        {
            freed += self.cut(id);
        }
    }

    /// Cuts a body, or has it put to the disk. Returns how much that frees once its connection has
    /// seen it.
    fn cut(&mut self, id: u64) -> u64 {
        let now_ms = self.now_ms;
        let entry = self.entries.get_mut(&id).filter(|entry| !entry.is_ending());
        let Some(entry) = entry else { return 0 };
        if entry.holder.can_spill() {
            entry.state = BodyPhase::Spilling;
            entry.holder.order_spill(true);
            self.ending += entry.granted;
            entry.waker.wake_by_ref();
            return entry.granted;
        }
        let slow = entry.holder.is_slow(entry.active_ms(now_ms), entry.seen_ms(now_ms));
        entry.holder.set_cut(if slow { Cut::Slow } else { Cut::Full });
        entry.state = BodyPhase::Cut;
        self.ending += entry.granted;
        entry.waker.wake_by_ref();
        entry.granted
    }
}

#[cfg(test)]
mod tests;
