//! When a certificate is renewed, and when an attempt that has failed is made again. The time is an
//! argument, in seconds since 1970.

use serde::{Deserialize, Serialize};

use crate::certificate::HeldCertificate;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Waits after attempts that the authority has refused: it counts them, and five an hour for a name
/// are usual.
const REFUSED_WAITS: [i64; 7] = [MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 8 * HOUR, DAY];
/// Waits after attempts that have not reached it.
const UNREACHED_WAITS: [i64; 7] =
    [MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 40 * MINUTE, HOUR];
/// How often the authority is asked for its advice, at most and at least.
const ADVICE_WAITS: (i64, i64) = (HOUR, DAY);

/// What is kept between attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AcmeState {
    /// The certificate that the times are for.
    pub(crate) serial: String,
    /// When it is renewed.
    pub(crate) renew_at_s: i64,
    /// The window that the authority advises for that (RFC 9773).
    pub(crate) advised_s: Option<(i64, i64)>,
    /// When its advice is asked for again.
    pub(crate) ask_advice_at_s: i64,
    /// Attempts that have failed, in a row.
    pub(crate) failures: u32,
    /// No attempt is made before.
    pub(crate) retry_at_s: i64,
    /// What the last one has failed with, and when.
    pub(crate) last_error: Option<String>,
    pub(crate) last_error_at_s: i64,
    /// The address that the account has.
    pub(crate) email: Option<String>,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DueAction {
    /// An attempt to obtain a certificate.
    Attempt,
    /// The authority's advice about renewal.
    Advice,
    /// Nothing, until then.
    At(i64),
}

impl AcmeState {
    /// Returns what is due.
    ///
    /// - `names`: those that the certificate is to have.
    pub(crate) fn due(
        &self,
        held: Option<&HeldCertificate>,
        names: &[String],
        now_s: i64,
    ) -> DueAction {
        let fitting = held.filter(|held| !held.is_placeholder && held.has(names));
        let attempt_at = match fitting {
            None => self.retry_at_s,
            Some(held) if held.serial == self.serial => self.renew_at_s.max(self.retry_at_s),
            // Another server has obtained it, which notes when it renews it.
            Some(held) => two_thirds(held).max(self.retry_at_s),
        };
        if attempt_at <= now_s {
            return DueAction::Attempt;
        }
        if fitting.is_some() && self.ask_advice_at_s <= now_s {
            return DueAction::Advice;
        }
        let advice_at = fitting.map_or(i64::MAX, |_| self.ask_advice_at_s);
        DueAction::At(attempt_at.min(advice_at))
    }

    /// Notes a certificate that was obtained.
    ///
    /// - `chance`: spreads the load of the authority; any number.
    pub(crate) fn note_obtained(&mut self, held: &HeldCertificate, now_s: i64, chance: u64) {
        let life = held.not_after_s - held.not_before_s;
        *self = Self {
            serial: held.serial.clone(),
            // At most a thirtieth of its life sooner than all others.
            renew_at_s: two_thirds(held) - within(life / 30, chance),
            ask_advice_at_s: now_s + MINUTE,
            email: self.email.take(),
            ..Self::default()
        };
    }

    /// Notes an attempt that begins: one whose end cannot be noted counts as one that has failed.
    pub(crate) fn note_begun(&mut self, now_s: i64, chance: u64) {
        self.wait(UNREACHED_WAITS, now_s, chance);
    }

    /// Notes an attempt that has failed.
    ///
    /// - `is_refused`: the authority had a say in it.
    /// - `not_before_s`: the authority wants no other one before; it cannot ask for a week.
    pub(crate) fn note_failed(
        &mut self,
        error: String,
        is_refused: bool,
        not_before_s: Option<i64>,
        now_s: i64,
        chance: u64,
    ) {
        let waits = if is_refused { REFUSED_WAITS } else { UNREACHED_WAITS };
        self.wait(waits, now_s, chance);
        let wanted = not_before_s.unwrap_or(0).min(now_s + 7 * DAY);
        self.retry_at_s = self.retry_at_s.max(wanted);
        (self.last_error, self.last_error_at_s) = (Some(error), now_s);
    }

    /// Sets when the next attempt is made after one more that has not succeeded.
    fn wait(&mut self, waits: [i64; 7], now_s: i64, chance: u64) {
        let failures = usize::try_from(self.failures).unwrap_or(usize::MAX);
        let wait = waits[failures.min(waits.len() - 1)];
        self.retry_at_s = now_s + wait + within(wait / 5, chance);
        self.failures = self.failures.saturating_add(1);
    }

    /// Notes the authority's advice: some moment of its window is chosen (RFC 9773 §4.2).
    ///
    /// - `window`: first and last second; `None` where it gives none.
    /// - `wait_s`: when it can be asked again.
    pub(crate) fn note_advice(
        &mut self,
        window: Option<(i64, i64)>,
        wait_s: i64,
        now_s: i64,
        chance: u64,
    ) {
        self.ask_advice_at_s = now_s + wait_s.clamp(ADVICE_WAITS.0, ADVICE_WAITS.1);
        if window.is_none() || window == self.advised_s {
            return;
        }
        self.advised_s = window;
        if let Some((from, to)) = window {
            self.renew_at_s = from + within((to - from).max(0), chance);
        }
    }
}

/// When two thirds of a certificate's life are over.
fn two_thirds(held: &HeldCertificate) -> i64 {
    held.not_before_s + (held.not_after_s - held.not_before_s) / 3 * 2
}

fn within(length: i64, chance: u64) -> i64 {
    let length = u64::try_from(length).unwrap_or(0).max(1);
    i64::try_from(chance % length).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn held(serial: &str) -> HeldCertificate {
        HeldCertificate {
            serial: serial.to_owned(),
            names: vec!["a.test".to_owned()],
            not_before_s: NOW,
            not_after_s: NOW + 90 * DAY,
            is_placeholder: false,
            id: None,
        }
    }

    fn names() -> Vec<String> {
        vec!["a.test".to_owned()]
    }

    #[test]
    fn a_certificate_is_renewed_when_two_thirds_of_its_life_are_over() {
        let (held, mut state) = (held("1"), AcmeState::default());
        assert_eq!(state.due(None, &names(), NOW), DueAction::Attempt);
        for chance in [0, 1_234_567_891_011, u64::MAX] {
            state.note_obtained(&held, NOW, chance);
            state.ask_advice_at_s = i64::MAX;
            let DueAction::At(at) = state.due(Some(&held), &names(), NOW) else {
                panic!("not yet")
            };
            assert!((NOW + 57 * DAY..=NOW + 60 * DAY).contains(&at), "{at}");
            assert_eq!(state.due(Some(&held), &names(), at), DueAction::Attempt);
        }
    }

    #[test]
    fn other_names_or_a_placeholder_want_a_certificate_at_once() {
        let mut state = AcmeState::default();
        state.note_obtained(&held("1"), NOW, 7);
        let more = vec!["a.test".to_owned(), "b.test".to_owned()];
        assert_eq!(state.due(Some(&held("1")), &more, NOW), DueAction::Attempt);
        let placeholder = HeldCertificate { is_placeholder: true, ..held("1") };
        assert_eq!(state.due(Some(&placeholder), &names(), NOW), DueAction::Attempt);
    }

    #[test]
    fn the_authoritys_advice_counts_once_it_changes() {
        let (held, mut state) = (held("1"), AcmeState::default());
        state.note_obtained(&held, NOW, 7);
        assert_eq!(state.due(Some(&held), &names(), NOW + MINUTE), DueAction::Advice);
        state.note_advice(Some((NOW + DAY, NOW + 2 * DAY)), 6 * HOUR, NOW, 1_000);
        let first = state.renew_at_s;
        assert!((NOW + DAY..NOW + 2 * DAY).contains(&first));
        assert_eq!(state.ask_advice_at_s, NOW + 6 * HOUR);
        state.note_advice(Some((NOW + DAY, NOW + 2 * DAY)), 0, NOW, 5_000);
        assert_eq!(state.renew_at_s, first, "the same window is the same moment");
        assert_eq!(state.ask_advice_at_s, NOW + HOUR);
        // A certificate that is revoked is to be replaced now.
        state.note_advice(Some((NOW - DAY, NOW - HOUR)), 0, NOW, 5_000);
        assert_eq!(state.due(Some(&held), &names(), NOW), DueAction::Attempt);
    }

    #[test]
    fn an_authority_that_is_down_for_a_day_is_asked_some_thirty_times() {
        let (mut state, mut now, mut attempts) = (AcmeState::default(), NOW, 0);
        while now < NOW + DAY {
            match state.due(None, &names(), now) {
                DueAction::Attempt => {
                    attempts += 1;
                    state.note_failed("no answer".to_owned(), false, None, now, attempts * 7_919);
                }
                DueAction::At(at) => now = at,
                DueAction::Advice => panic!("there is no certificate"),
            }
        }
        assert!((20..=35).contains(&attempts), "{attempts}");
        assert!(state.retry_at_s - now <= HOUR + HOUR / 5, "it is asked soon after it is back");
    }

    #[test]
    fn refusals_stay_within_the_usual_limits() {
        let (mut state, mut times) = (AcmeState::default(), Vec::new());
        let mut now = NOW;
        for chance in 0..40 {
            times.push(now);
            state.note_failed("no".to_owned(), true, None, now, chance * 7_919);
            now = state.retry_at_s;
        }
        // Let's Encrypt: five failed authorisations an hour.
        for (at, first) in times.iter().enumerate() {
            let within_hour = times[at..].iter().filter(|time| **time < first + HOUR).count();
            assert!(within_hour <= 5, "{within_hour} from attempt {at} on");
        }
        assert!(times[39] - times[38] <= DAY + DAY / 5);
    }

    #[test]
    fn the_authority_may_ask_for_patience_but_not_for_ever() {
        let mut state = AcmeState::default();
        state.note_failed("limit".to_owned(), true, Some(NOW + 2 * DAY), NOW, 0);
        assert_eq!(state.retry_at_s, NOW + 2 * DAY);
        state.note_failed("limit".to_owned(), true, Some(i64::MAX), NOW, 0);
        assert_eq!(state.retry_at_s, NOW + 7 * DAY);
    }
}
