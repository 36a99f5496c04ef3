//! Boxes that are made several at a time, so that those which last lie side by side.
//!
//! A handshake holds some ten allocations until it ends, many of them larger than a page. What a
//! connection keeps for hours is allocated just then, among them: after a burst of handshakes each
//! page that they have left would hold one such thing, and none could be given back.

use std::mem::MaybeUninit;

/// How many are made at a time: some two pages of what an idle connection keeps.
const BATCH: usize = 64;

/// Room for values that last, made ahead.
#[derive(Debug)]
pub(crate) struct Batch<T> {
    rooms: Vec<Box<MaybeUninit<T>>>,
}

impl<T> Batch<T> {
    pub(crate) const fn new() -> Self {
        Self { rooms: Vec::new() }
    }

    /// Puts the value into the next room.
    pub(crate) fn boxed(&mut self, value: T) -> Box<T> {
        if self.rooms.is_empty() {
            self.rooms.extend((0..BATCH).map(|_| Box::new_uninit()));
        }
        match self.rooms.pop() {
            Some(room) => Box::write(room, value),
            None => Box::new(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn values_keep_their_room_and_are_dropped_once() {
        let mut batch = Batch::new();
        let value = Rc::new(());
        let boxed: Vec<_> = (0..=BATCH).map(|index| batch.boxed((index, value.clone()))).collect();
        assert!(boxed.iter().enumerate().all(|(index, boxed)| boxed.0 == index));
        assert_eq!((Rc::strong_count(&value), batch.rooms.len()), (BATCH + 2, BATCH - 1));
        drop((boxed, batch));
        assert_eq!(Rc::strong_count(&value), 1);
    }
}
