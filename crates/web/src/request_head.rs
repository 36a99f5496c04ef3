//! A request's head, owned: copied out of the receive buffer into memory that is reused.

mod kept;

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use gustnado_files::Files;
use gustnado_http::head::Head;
use gustnado_http::path::{CanonicalPath, PathError, as_sent};
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;

use crate::body_channel::BodyChannel;
use crate::trailers::RequestTrailers;
pub use kept::KeptHead;

/// The most unused heads that a worker keeps, and the most bytes of each.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 16 << 10;

thread_local! {
    /// Heads to be reused, so that a request costs no allocation.
    static SPARE: RefCell<Vec<Arc<RequestHead>>> = const { RefCell::new(Vec::new()) };
}

/// A head with its bytes, and the parts of its path that the route names.
pub struct RequestHead {
    head: Head,
    bytes: Vec<u8>,
    /// The names in the route's path, in order; none where it has none.
    names: Option<Arc<[Box<str>]>>,
    /// Positions of their values in the canonical path.
    values: Vec<(u32, u32)>,
    /// The last of them is a rest that keeps its empty segments.
    keeps_empty: bool,
    /// The canonical path, if the path was sent in another form.
    path: Option<CanonicalPath<'static>>,
    /// The canonical path and the query that were sent, if another path takes their place.
    sent: Option<Box<(CanonicalPath<'static>, Box<[u8]>)>>,
    /// The channel between the connection and the handler; it is here because this memory is
    /// reused.
    channel: BodyChannel,
}

impl RequestHead {
    /// Replaces the head by another one in the same memory.
    pub fn refill(&mut self, head: &Head, bytes: &[u8]) {
        self.clear();
        self.head = *head;
        self.bytes.extend_from_slice(&bytes[..head.len()]);
    }

    /// Copies a head.
    pub fn take(head: &Head, bytes: &[u8]) -> RequestHeadRef {
        let bytes = &bytes[..head.len()];
        let spare = SPARE.with_borrow_mut(Vec::pop);
        let parts = match spare {
            Some(mut spare) => {
                let parts = Arc::get_mut(&mut spare).expect("a spare head has no other owner");
                parts.head = *head;
                parts.bytes.extend_from_slice(bytes);
                spare
            }
            None => Arc::new(Self {
                head: *head,
                bytes: bytes.to_vec(),
                names: None,
                values: Vec::new(),
                keeps_empty: false,
                path: None,
                sent: None,
                channel: BodyChannel::default(),
            }),
        };
        RequestHeadRef(Some(parts))
    }

    pub fn view(&self) -> RequestView<'_> {
        self.head.on(&self.bytes)
    }

    #[cfg(feature = "tower")]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns how much memory it takes.
    pub fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity() + self.values.capacity() * size_of::<(u32, u32)>()
    }

    /// Keeps the trailer fields of a body that was read.
    pub fn set_trailers(&self, trailers: Option<RequestTrailers>) {
        if let Some(trailers) = trailers {
            self.channel.set_trailers(trailers);
            self.channel.end(Ok(()));
        }
    }

    pub fn channel(&self) -> &BodyChannel {
        &self.channel
    }

    /// Sends what the page needs that a folder is asked for, while its disk is waited for.
    pub fn hint(&self, files: &Files) {
        if let Some(links) = files.hints(self.view()) {
            self.channel.send_interim(Status::EARLY_HINTS, links.clone());
        }
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Notes that its user was verified, or will be before its handler runs.
    pub fn note_verified_user(&mut self) {
        self.head.note_verified_user();
    }

    /// Sets the parts that a route names: `values` are positions in the canonical path.
    pub fn set_params(&mut self, names: Arc<[Box<str>]>, values: impl Iterator<Item = (u32, u32)>) {
        self.names = Some(names);
        self.values.extend(values);
    }

    /// Sets whether the last of these parts keeps its empty segments.
    pub fn set_keeps_empty(&mut self, keeps_empty: bool) {
        self.keeps_empty = keeps_empty;
    }

    /// Sets the canonical path, if the path was sent in another form.
    pub fn set_path(&mut self, path: Option<CanonicalPath<'static>>) {
        self.path = path;
    }

    /// Returns the canonical path.
    ///
    /// # Errors
    /// The path has no canonical form: such a request reaches only error pages.
    pub fn path(&self) -> Result<CanonicalPath<'_>, PathError> {
        match &self.path {
            Some(path) => Ok(path.reborrow()),
            None => CanonicalPath::of(self.view().path()),
        }
    }

    /// Sets the canonical path and the query that were sent, where another path takes their place.
    pub fn set_sent(&mut self, path: CanonicalPath<'static>, query: &[u8]) {
        self.sent = Some(Box::new((path, query.into())));
    }

    /// Calls `read` with the path that was sent, in canonical form, and its query.
    pub fn with_sent_target(&self, read: &mut dyn FnMut(&str, &[u8])) {
        match (&self.sent, self.path()) {
            (Some(sent), _) => read(sent.0.as_str(), &sent.1),
            (None, Ok(path)) => read(path.as_str(), self.view().query().unwrap_or_default()),
            (None, Err(_)) => {}
        }
    }

    /// Returns the named parts, percent-encoded in the normal form.
    pub fn params(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        let names = self.names.as_deref().unwrap_or(&[]);
        let last = self.values.len().saturating_sub(1);
        let value = move |(at, span): (usize, &(u32, u32))| {
            let span = span.0 as usize..span.1 as usize;
            if self.keeps_empty && at == last && self.path.is_some() {
                return Cow::Owned(as_sent(self.view().path(), span, true));
            }
            // Parts are found only in paths that have a canonical form.
            match &self.path {
                Some(path) => Cow::Borrowed(&path.as_str()[span]),
                None => Cow::Borrowed(&as_text(self.view().path())[span]),
            }
        };
        names.iter().map(|name| &**name).zip(self.values.iter().enumerate().map(value))
    }

    pub fn param(&self, name: &str) -> Option<Cow<'_, str>> {
        self.params().find(|param| param.0 == name).map(|param| param.1)
    }

    /// Returns a named part as it was sent, percent-encoded. If the whole path was sent in its
    /// canonical form, the part was too, and nothing in it is empty.
    pub fn param_as_sent(&self, name: &str) -> Option<String> {
        let names = self.names.as_deref()?;
        let at = names.iter().position(|known| **known == *name)?;
        let (start, end) = *self.values.get(at)?;
        let (raw, span) = (self.view().path(), start as usize..end as usize);
        if self.path.is_none() {
            return Some(as_text(raw)[span].to_owned());
        }
        let keeps_empty = self.keeps_empty && at + 1 == self.values.len();
        Some(as_sent(raw, span, keeps_empty))
    }

    #[inline]
    fn clear(&mut self) {
        if self.bytes.capacity() > SPARE_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.values.clear();
        self.names = None;
        self.keeps_empty = false;
        self.path = None;
        self.sent = None;
        self.channel.reset();
    }
}

/// Shared reference to a head. The last one returns the memory to the thread that drops it.
pub struct RequestHeadRef(Option<Arc<RequestHead>>);

impl RequestHeadRef {
    /// Returns the head if this is its only reference.
    pub fn get_mut(&mut self) -> Option<&mut RequestHead> {
        self.0.as_mut().and_then(Arc::get_mut)
    }
}

impl Clone for RequestHeadRef {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Deref for RequestHeadRef {
    type Target = RequestHead;

    fn deref(&self) -> &RequestHead {
        self.0.as_ref().expect("taken only when it is dropped")
    }
}

impl Drop for RequestHeadRef {
    fn drop(&mut self) {
        let Some(mut parts) = self.0.take() else { return };
        if let Some(inside) = Arc::get_mut(&mut parts) {
            inside.clear();
            // On a thread that ends, its spare heads may be gone already.
            _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < SPARE_MAX {
                    spare.push(parts);
                }
            });
        }
    }
}

/// Returns bytes as text that the codec has checked to be ASCII.
pub fn as_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("targets and names are ASCII")
}
