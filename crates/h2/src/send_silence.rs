//! How slowly a client may take a send: as its server says, or the routes whose content is in it.

use std::mem;

use gustnado_tasks::ProgressTimeout;

use crate::Http2Conn;

/// How long the client may take nothing of a send: the least of the streams whose content is in it.
/// Kept only where that is not the server's time; 0: there is no such content.
#[derive(Default)]
pub(super) struct SendSilence {
    /// Of what is sent next.
    next_ms: u32,
    /// Of what is under way.
    sent_ms: u32,
}

impl Http2Conn {
    /// Notes that content is in the next send whose client may be so slow.
    pub(super) fn note_content(&mut self, patience: ProgressTimeout) {
        if patience == self.app.times.write {
            self.timers.has_usual_content = true;
            return;
        }
        let own_ms = u32::try_from(patience.silence_ms).unwrap_or(u32::MAX);
        let silence = self.rare().silence.get_or_insert_default();
        silence.next_ms = if silence.next_ms == 0 { own_ms } else { silence.next_ms.min(own_ms) };
    }

    /// What was to be sent next is sent from now on, in one send or several.
    pub(super) fn begin_content(&mut self) {
        let has_usual = mem::take(&mut self.timers.has_usual_content);
        let Some(silence) = self.rare.as_mut().and_then(|rare| rare.silence.as_mut()) else {
            return;
        };
        let usual_ms = u32::try_from(self.app.times.write.silence_ms).unwrap_or(u32::MAX);
        let own_ms = mem::take(&mut silence.next_ms);
        silence.sent_ms = if has_usual { own_ms.min(usual_ms) } else { own_ms };
    }

    /// All that was being sent has left.
    pub(super) fn end_sent_content(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.silence.take_if(|silence| silence.next_ms == 0);
        }
    }

    /// Returns how slowly the client may take the send that is under way.
    pub(super) fn send_patience(&self) -> ProgressTimeout {
        let usual = self.app.times.write;
        match self.rare.as_ref().and_then(|rare| rare.silence.as_ref()) {
            Some(SendSilence { sent_ms, .. }) if *sent_ms > 0 => {
                ProgressTimeout { silence_ms: u64::from(*sent_ms), ..usual }
            }
            _ => usual,
        }
    }
}
