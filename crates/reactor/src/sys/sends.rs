//! Sends under way, kept for as long as the kernel reads their bytes.

use super::{Key, Message};
use crate::buf::SendBuf;

/// Most sends at a time: a place has 24 bits in `user_data`.
const PLACES_MAX: usize = 1 << 24;

/// A send under way, and whose it is.
pub(super) struct SendUnderWay {
    pub(super) key: Key,
    pub(super) out: Box<SendBuf>,
    /// The list of its parts, if they lie in several places.
    pub(super) message: Option<Box<Message>>,
}

/// The sends under way. Few sockets send at a time, so they are kept by places of their own: by the
/// sockets' they would take 8 bytes of each idle connection.
#[derive(Default)]
pub(super) struct Sends {
    places: Vec<Option<SendUnderWay>>,
    free: Vec<u32>,
}

impl Sends {
    /// Keeps a send until [`Sends::take`]. Returns its place, and the send there.
    pub(super) fn keep(&mut self, send: SendUnderWay) -> (u32, &SendUnderWay) {
        let place = self.free.pop().unwrap_or_else(|| {
            assert!(self.places.len() < PLACES_MAX, "there are fewer sockets than places");
            self.places.push(None);
            u32::try_from(self.places.len() - 1).expect("it has 24 bits")
        });
        let slot = &mut self.places[place as usize];
        // What lies there is read by the kernel: to replace it would free it under the kernel.
        assert!(slot.is_none(), "a free place is empty");
        (place, slot.insert(send))
    }

    /// Returns what is being sent from a place.
    pub(super) fn get(&self, place: u32) -> Option<&SendBuf> {
        self.places.get(place as usize)?.as_ref().map(|send| &*send.out)
    }

    /// Takes a send out that is complete.
    pub(super) fn take(&mut self, place: u32) -> SendUnderWay {
        let send = self.places[place as usize].take();
        self.free.push(place);
        send.expect("a send was submitted with its bytes kept here")
    }

    /// Returns whether nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }
}
