//! Trailers of a request that have come in part: they wait in memory, as a part of a head does.

use gustnado_app::app::App;
use gustnado_config::UNCHARGED_BYTES;
use gustnado_http::body::BodyDecoder;
use gustnado_observe::stats::{Added, Fault};
use gustnado_tasks::{Charge, MemoryKind};

/// The memory of trailer lines that have come so far, if it is charged.
#[derive(Debug, Default)]
pub(super) struct TrailerMemory(Option<Charge>);

impl TrailerMemory {
    /// Charges the lines that a decoder keeps. Returns whether there is memory for them.
    #[inline]
    pub(super) fn has_room(&mut self, decoder: &BodyDecoder, app: &App) -> bool {
        let bytes = decoder.trailer_lines().len();
        bytes <= UNCHARGED_BYTES || self.charge(bytes, app)
    }

    #[cold]
    fn charge(&mut self, bytes: usize, app: &App) -> bool {
        self.0.get_or_insert_with(|| Charge::new(MemoryKind::Heads)).set(bytes);
        let is_short = app.is_short_of(MemoryKind::Heads);
        if is_short {
            app.count(&Added { fault: Some(Fault::HeadCut), ..Added::default() });
        }
        !is_short
    }
}
