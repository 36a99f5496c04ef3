//! What few connections have, and those only while they are busy: one pointer of an idle one.

use std::sync::Arc;

use gustnado_tasks::{Charge, Endpoint, now};

use crate::Http2Conn;
use crate::exchange::Leaving;
use crate::input::PartialInput;
use crate::outbox::Mailroom;
use crate::pace::ConnPace;
use crate::send_silence::SendSilence;

/// The rare parts of a connection.
#[derive(Default)]
pub(super) struct Rare {
    /// Where tasks leave word, once there was one.
    pub(super) mailroom: Option<Arc<Mailroom>>,
    /// The addresses of both ends, once a tunnel was opened.
    pub(super) addresses: Option<Arc<(Endpoint, Endpoint)>>,
    /// The memory of what has come of a frame or a head, if it is charged.
    pub(super) partial: Option<PartialInput>,
    /// The memory of pieces that wait for their turn, if it is charged.
    pub(super) pieces: Option<Charge>,
    /// What is kept where something is paced.
    pub(super) pace: Option<Box<ConnPace>>,
    /// Exchanges whose last bytes are in the next send, and in the one that is under way.
    pub(super) leaving: Option<Leaving>,
    /// How slowly the client may take a send, where routes say so.
    pub(super) silence: Option<SendSilence>,
    /// No more is read before handlers have had a turn, or this time has come; 0: none waits.
    pub(super) turn_until_ms: u64,
}

impl Http2Conn {
    /// Returns the rare parts, to add one.
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Returns where tasks leave word.
    pub(super) fn open_mailroom(&mut self) -> Arc<Mailroom> {
        Arc::clone(self.rare().mailroom.get_or_insert_with(Arc::<Mailroom>::default))
    }

    /// Returns the addresses of both ends, if the kernel knows them: all tunnels share them.
    pub(super) fn addresses(&mut self) -> Option<Arc<(Endpoint, Endpoint)>> {
        let known = self.rare.as_ref().and_then(|rare| rare.addresses.clone());
        if known.is_some() {
            return known;
        }
        let addresses = Arc::new(self.socket.peer().ok().zip(self.socket.local().ok())?);
        self.rare().addresses = Some(Arc::clone(&addresses));
        Some(addresses)
    }

    /// Returns where tasks leave word, once there was one.
    #[inline]
    pub(super) fn mailroom(&self) -> Option<&Mailroom> {
        self.rare.as_ref()?.mailroom.as_deref()
    }

    /// Returns whether handlers were to have a turn before more is read, when that was last asked.
    #[inline]
    pub(super) fn gives_turn(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.turn_until_ms > 0)
    }

    /// Returns whether handlers are to have a turn before more is read.
    #[inline]
    pub(super) fn still_gives_turn(&mut self) -> bool {
        self.gives_turn() && self.awaits_turns()
    }

    #[cold]
    fn awaits_turns(&mut self) -> bool {
        let Some(rare) = &mut self.rare else { return false };
        let mut streams = self.core.streams().iter();
        let awaits =
            now().mono_ms < rare.turn_until_ms && streams.any(|stream| stream.state.is_unbegun());
        if !awaits {
            rare.turn_until_ms = 0;
            self.retry_all_bodies();
        }
        awaits
    }

    /// Returns whether memory is charged for a part of a frame or a head.
    pub(super) fn has_partial(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.partial.is_some())
    }

    /// Returns the exchanges that are leaving, if some are.
    pub(super) fn leaving(&mut self) -> Option<&mut Leaving> {
        self.rare.as_mut()?.leaving.as_mut()
    }

    /// Gives back what no part is left in.
    pub(super) fn drop_rare(&mut self) {
        self.rare.take_if(|rare| {
            let Rare { mailroom, partial, pieces, pace, leaving, silence, .. } = &**rare;
            let is_charged = partial.is_some() || pieces.is_some() || rare.turn_until_ms > 0;
            let is_sent = leaving.is_some() || silence.is_some();
            !is_charged && !is_sent && mailroom.is_none() && pace.is_none()
        });
    }
}
