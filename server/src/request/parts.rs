//! A request's head, owned: copied out of the buffer it arrived in, into memory that is used again.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use gustnado_http::head::Head;
use gustnado_http::request::Request as View;

use crate::body::Exchange;

/// How many unused heads a worker keeps, and how many bytes each may have grown to.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 16 << 10;

thread_local! {
    /// Heads that were used and are to be used again: a request costs no allocation.
    static SPARE: RefCell<Vec<Arc<Parts>>> = const { RefCell::new(Vec::new()) };
}

/// A head with its bytes, and what its route made of its path.
pub(crate) struct Parts {
    head: Head,
    bytes: Vec<u8>,
    /// The names in the route's path, in order; none where it has none.
    names: Option<Arc<[Box<str>]>>,
    /// Where their values are, in the path as it was routed.
    values: Vec<(u32, u32)>,
    /// The path as it was routed, where that is not how it was sent.
    routed: Option<String>,
    /// What the connection and the request's handler tell each other. (It is here because this
    /// memory is used again.)
    exchange: Exchange,
}

impl Parts {
    /// Takes another head's place in the same memory.
    pub(super) fn refill(&mut self, head: &Head, bytes: &[u8]) {
        self.clear();
        self.head = *head;
        self.bytes.extend_from_slice(&bytes[..head.len()]);
    }

    /// Copies a head.
    pub(crate) fn take(head: &Head, bytes: &[u8]) -> Recycled {
        let bytes = &bytes[..head.len()];
        let spare = SPARE.with_borrow_mut(Vec::pop);
        let parts = match spare {
            Some(mut spare) => {
                let parts = Arc::get_mut(&mut spare).expect("what is spare is nobody else's");
                parts.head = *head;
                parts.bytes.extend_from_slice(bytes);
                spare
            }
            None => Arc::new(Self {
                head: *head,
                bytes: bytes.to_vec(),
                names: None,
                values: Vec::new(),
                routed: None,
                exchange: Exchange::default(),
            }),
        };
        Recycled(Some(parts))
    }

    pub(crate) fn view(&self) -> View<'_> {
        self.head.on(&self.bytes)
    }

    #[cfg(feature = "tower")]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Notes what a route found: `values` are parts of the path as it was routed.
    pub(crate) fn set_params(
        &mut self,
        names: Arc<[Box<str>]>,
        values: impl Iterator<Item = (u32, u32)>,
    ) {
        self.names = Some(names);
        self.values.extend(values);
    }

    /// Notes the path as it was routed, where that is not how it was sent.
    pub(crate) fn set_routed(&mut self, routed: Option<String>) {
        self.routed = routed;
    }

    fn routed_path(&self) -> &str {
        match &self.routed {
            Some(routed) => routed,
            None => super::as_text(self.view().path()),
        }
    }

    pub(super) fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = self.names.as_deref().unwrap_or(&[]);
        let path = self.routed_path();
        let values = self.values.iter().map(|(start, end)| &path[*start as usize..*end as usize]);
        names.iter().map(|name| &**name).zip(values)
    }

    pub(super) fn param(&self, name: &str) -> Option<&str> {
        self.params().find(|param| param.0 == name).map(|param| param.1)
    }

    #[inline]
    fn clear(&mut self) {
        if self.bytes.capacity() > SPARE_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.values.clear();
        self.names = None;
        self.routed = None;
        self.exchange.reset();
    }
}

/// A hold on a head. The last one gives its memory back to the thread it is dropped on.
pub(crate) struct Recycled(Option<Arc<Parts>>);

impl Recycled {
    /// The head, while nobody else holds it.
    pub(crate) fn get_mut(&mut self) -> Option<&mut Parts> {
        self.0.as_mut().and_then(Arc::get_mut)
    }
}

impl Clone for Recycled {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Deref for Recycled {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        self.0.as_ref().expect("taken only when it is dropped")
    }
}

impl Drop for Recycled {
    fn drop(&mut self) {
        let Some(mut parts) = self.0.take() else { return };
        if let Some(inside) = Arc::get_mut(&mut parts) {
            inside.clear();
            // (On a thread that ends, its spare heads may be gone already.)
            _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < SPARE_MAX {
                    spare.push(parts);
                }
            });
        }
    }
}
