//! A request in the least memory.

use crate::body::Body;
use crate::request::{Request, RequestPeer};
use crate::request_head::KeptHead;

/// A request in the least memory, for a program that may ask about it at any time, and seldom does:
/// that of a WebSocket. It has no body.
#[doc(hidden)]
pub struct KeptRequest(Box<(KeptHead, RequestPeer)>);

impl KeptRequest {
    /// Keeps a request.
    ///
    /// # Errors
    /// The request itself, where something was added to it.
    pub fn new(request: Request) -> Result<Self, Request> {
        if request.extensions.is_some() {
            return Err(request);
        }
        let head = KeptHead::of(&request.parts);
        Ok(Self(Box::new((head, request.peer))))
    }

    /// Returns the request as it was.
    pub fn restore(&self) -> Request {
        let (head, peer) = &*self.0;
        Request::new(head.restore(), Body::empty(), peer.clone())
    }
}
