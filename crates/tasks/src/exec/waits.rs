//! The wait of a task, what for and since when, in the one word that its slot has for it.
//!
//! Code that returns `Poll::Pending` notes it in the worker's context
//! ([`crate::exec::executor::context`]):
//! one store. After the poll the word goes into the slot with the time of the turn: one more. It is
//! not read until a dump is asked for.

use std::fmt;

/// The event that a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u8)]
pub enum WaitsOn {
    /// Something that does not say: a future from elsewhere, or room for connections.
    #[default]
    Other,
    /// A socket.
    Socket,
    /// Time to pass, and nothing else.
    Timer,
    /// Bytes to come from a socket.
    SocketRead,
    /// Bytes to go into a socket.
    SocketWrite,
    /// A value from a mailbox.
    MailboxReceive,
    /// Room in a mailbox.
    MailboxSend,
    /// Another task's end.
    Join,
    /// The end of any task of a group.
    Group,
    /// A call on the blocking pool.
    Blocking,
}

impl WaitsOn {
    /// Every member with its name, in the order of their numbers.
    const ALL: [(Self, &'static str); 10] = [
        (Self::Other, "other"),
        (Self::Socket, "socket"),
        (Self::Timer, "timer"),
        (Self::SocketRead, "socket read"),
        (Self::SocketWrite, "socket write"),
        (Self::MailboxReceive, "mailbox receive"),
        (Self::MailboxSend, "mailbox send"),
        (Self::Join, "join"),
        (Self::Group, "group"),
        (Self::Blocking, "blocking call"),
    ];
}

impl fmt::Display for WaitsOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::ALL[*self as usize].1)
    }
}

/// `since << 4 | on`: the moment in steps of 16 ms, zero for none. It comes round after 49 days,
/// and a wait that is longer seems shorter. One word, because each idle connection has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waits(u32);

const STEP_SHIFT: u32 = 4;
const MOMENT_BITS: u32 = 28;
const MOMENT: u32 = (1 << MOMENT_BITS) - 1;
/// A minute.
const SKEW: u32 = 60_000 >> STEP_SHIFT;
const ON: u32 = 15;
const SINCE_SHIFT: u32 = 4;

impl Waits {
    /// Nothing said yet.
    pub(crate) const UNSAID: Self = Self(0);

    /// A moment of the workers' clock as the beginning of a wait.
    pub(crate) fn since(now_ms: u64) -> Self {
        Self(moment(now_ms) << SINCE_SHIFT)
    }

    /// With what the task waits for: the last thing said counts. But a socket of which no more is
    /// said gives way to anything, for it is spoken of before it is known whether there is a wait;
    /// and so does a timer, which is told besides.
    pub(crate) fn on(self, on: WaitsOn) -> Self {
        if on as u32 <= WaitsOn::Timer as u32 && self.0 & ON > on as u32 {
            return self;
        }
        Self(self.0 & !ON | on as u32)
    }

    /// Returns the wait that was noted in a poll, with its beginning.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn of_word(word: u32) -> Self {
        Self(word)
    }

    pub(crate) fn word(self) -> u32 {
        self.0
    }

    pub(crate) fn what(self) -> WaitsOn {
        let at = usize::try_from(self.0 & ON).unwrap_or_default();
        WaitsOn::ALL.get(at).map(|(on, _)| *on).unwrap_or_default()
    }

    /// Milliseconds from the beginning of the wait to `now_ms`, to within 16.
    pub(crate) fn waited_ms(self, now_ms: u64) -> Option<u64> {
        let since = self.0 >> SINCE_SHIFT & MOMENT;
        let steps = moment(now_ms).wrapping_sub(since) & MOMENT;
        // It may have begun by the clock of another worker, which was read a little later.
        let ahead = steps > MOMENT - SKEW;
        (since != 0).then_some(if ahead { 0 } else { u64::from(steps) << STEP_SHIFT })
    }
}

fn moment(ms: u64) -> u32 {
    // Zero is for none: one of 2^28 moments is a step late.
    let step = u32::try_from(ms >> STEP_SHIFT & u64::from(MOMENT)).expect("28 bits are kept");
    step.max(1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_numbers() {
        for (number, (on, _)) in WaitsOn::ALL.into_iter().enumerate() {
            assert_eq!(on as usize, number);
            assert_eq!(Waits::UNSAID.on(on).what(), on);
        }
    }

    #[test]
    fn a_wait_is_told_to_within_a_step() {
        for since_ms in [100, 5_000, 1 << 31, (u64::from(MOMENT) << STEP_SHIFT) + 12_345] {
            let waits = Waits::UNSAID.on(WaitsOn::Join).and(Waits::since(since_ms));
            for later_ms in [0, 15, 16, 1_000, 8_000] {
                let waited_ms = waits.waited_ms(since_ms + later_ms).expect("it waits");
                assert!(waited_ms.abs_diff(later_ms) <= 16, "{waited_ms} and not {later_ms}");
            }
            assert_eq!(waits.what(), WaitsOn::Join);
        }
    }

    #[test]
    fn what_was_not_said_is_not_told() {
        assert_eq!(Waits::UNSAID.waited_ms(1_000), None);
        assert_eq!(Waits::UNSAID.what(), WaitsOn::Other);
    }

    #[test]
    fn what_says_more_counts() {
        let waits = Waits::UNSAID.on(WaitsOn::MailboxReceive).on(WaitsOn::Timer);
        assert_eq!(waits.what(), WaitsOn::MailboxReceive);
        let waits = Waits::UNSAID.on(WaitsOn::Timer).on(WaitsOn::Join);
        assert_eq!(waits.what(), WaitsOn::Join);
        assert_eq!(waits.on(WaitsOn::Socket).on(WaitsOn::SocketRead).what(), WaitsOn::SocketRead);
        let waits = Waits::UNSAID.on(WaitsOn::Socket).on(WaitsOn::Timer).on(WaitsOn::Socket);
        assert_eq!(waits.what(), WaitsOn::Timer);
    }
}
