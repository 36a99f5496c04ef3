//! The body of a request on its way out: whole, or from a stream; counted, or in chunks.

use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_http::chunk::{LAST_CHUNK, write_chunk};

use super::error::ClientError;

/// Bytes handed to the socket at once, framing not counted.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// How often a stream is asked in a row before others have their turn. It may give nothing for
/// ever.
const ASKS_MAX: usize = 64;

/// A stream of bytes whose errors are all of one type.
pub(super) trait ByteSource {
    fn poll_bytes(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>>;
}

impl<S, E> ByteSource for S
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error + Send + Sync + 'static,
{
    fn poll_bytes(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        self.poll_next(cx).map(|item| item.map(|bytes| bytes.map_err(io::Error::other)))
    }
}

/// The content of a request.
pub(super) enum RequestContent {
    /// None at all.
    Nothing,
    /// These bytes, perhaps none.
    Whole(Bytes),
    /// What a stream gives, so many bytes if that is known.
    Stream { source: Pin<Box<dyn ByteSource + Send>>, length: Option<u64> },
}

impl RequestContent {
    /// Returns a second copy, where that is possible: a stream runs once.
    pub(super) fn again(&self) -> Option<Self> {
        match self {
            Self::Nothing => Some(Self::Nothing),
            Self::Whole(bytes) => Some(Self::Whole(bytes.clone())),
            Self::Stream { .. } => None,
        }
    }
}

/// Progress of a body that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadState {
    /// It waits for the server's word.
    Held,
    Going,
    /// All of it was written.
    Done,
    /// It will never be whole: the server did not want it, or is gone.
    GivenUp,
}

/// A body on its way out.
pub(super) struct BodyUpload {
    source: Option<Pin<Box<dyn ByteSource + Send>>>,
    /// Bytes that the source gave and that were not written yet.
    rest: Bytes,
    /// Bytes that were announced; `None` where the body goes in chunks.
    announced: Option<u64>,
    /// Bytes that were written.
    given: u64,
    state: UploadState,
    /// The source was asked last, and had nothing yet.
    starving: bool,
    /// Bytes of unknown length are framed as chunks.
    is_framed: bool,
}

impl BodyUpload {
    /// - `held`: nothing is sent before [`BodyUpload::release`].
    pub(super) fn new(content: RequestContent, held: bool) -> Self {
        let state = if held { UploadState::Held } else { UploadState::Going };
        let (source, rest, announced) = match content {
            RequestContent::Nothing => (None, Bytes::new(), Some(0)),
            RequestContent::Whole(bytes) => {
                let announced = bytes.len() as u64;
                (None, bytes, Some(announced))
            }
            RequestContent::Stream { source, length } => (Some(source), Bytes::new(), length),
        };
        let starving = false;
        let mut upload =
            Self { source, rest, announced, given: 0, state, starving, is_framed: true };
        upload.finish_if_complete();
        upload
    }

    /// Leaves framing to the frames of HTTP/2.
    pub(super) fn unframed(mut self) -> Self {
        self.is_framed = false;
        self
    }

    /// Frames bytes of unknown length as chunks, as at first.
    pub(super) fn framed(mut self) -> Self {
        self.is_framed = true;
        self
    }

    pub(super) fn is_held(&self) -> bool {
        self.state == UploadState::Held
    }

    pub(super) fn is_going(&self) -> bool {
        self.state == UploadState::Going
    }

    /// Returns whether all of it was written.
    pub(super) fn is_done(&self) -> bool {
        self.state == UploadState::Done
    }

    /// Returns whether nothing can be sent because the caller's stream has nothing yet.
    pub(super) fn is_starving(&self) -> bool {
        self.starving
    }

    /// The server wants it, or said nothing for long enough.
    pub(super) fn release(&mut self) {
        if self.state == UploadState::Held {
            self.state = UploadState::Going;
        }
    }

    /// Drops what was not written yet.
    pub(super) fn give_up(&mut self) {
        if self.state != UploadState::Done {
            self.state = UploadState::GivenUp;
            self.source = None;
            self.rest = Bytes::new();
            self.starving = false;
        }
    }

    /// Writes the next piece to the end of `out`, framing included. Ready once something was
    /// written, or the end reached.
    ///
    /// # Errors
    /// [`ClientError::Source`], [`ClientError::SourceLength`]: the request cannot be completed.
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<(), ClientError>> {
        let (mut room, mut asked) = (PIECE_BYTES_MAX, 0);
        self.starving = false;
        while self.state == UploadState::Going && room > 0 {
            if !self.rest.is_empty() {
                let piece = self.rest.split_to(self.rest.len().min(room));
                room -= piece.len();
                self.write(&piece, out)?;
                continue;
            }
            let Some(source) = &mut self.source else {
                self.finish(out)?;
                break;
            };
            let given = if asked < ASKS_MAX {
                source.as_mut().poll_bytes(cx)
            } else {
                cx.waker().wake_by_ref();
                Poll::Pending
            };
            asked += 1;
            match given {
                Poll::Ready(Some(Ok(bytes))) => self.rest = bytes,
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Err(ClientError::Source(error)));
                }
                Poll::Ready(None) => self.source = None,
                Poll::Pending if room < PIECE_BYTES_MAX => break,
                Poll::Pending => {
                    self.starving = true;
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn write(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), ClientError> {
        self.given += piece.len() as u64;
        match self.announced {
            None if self.is_framed => write_chunk(out, piece),
            Some(announced) if self.given > announced => {
                return Err(ClientError::SourceLength { announced, given: self.given });
            }
            _ => out.extend_from_slice(piece),
        }
        self.finish_if_complete();
        Ok(())
    }

    /// The announced bytes are there: no need to wait for the stream's own end. What it would give
    /// past them is not asked for.
    fn finish_if_complete(&mut self) {
        if self.rest.is_empty() && self.announced == Some(self.given) {
            self.state = UploadState::Done;
            drop(mem::take(&mut self.source));
        }
    }

    /// Returns the stream has ended.
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ClientError> {
        match self.announced {
            None if self.is_framed => out.extend_from_slice(LAST_CHUNK),
            Some(announced) if announced != self.given => {
                return Err(ClientError::SourceLength { announced, given: self.given });
            }
            _ => {}
        }
        self.state = UploadState::Done;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::Waker;

    use super::*;

    /// Gives these, and then its end; or nothing for ever.
    struct Given(Option<VecDeque<&'static str>>);

    impl Stream for Given {
        type Item = io::Result<Bytes>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Ready(match &mut self.0 {
                Some(pieces) => pieces.pop_front().map(|piece| Ok(Bytes::from(piece))),
                None => Some(Ok(Bytes::new())),
            })
        }
    }

    fn given(length: Option<u64>, pieces: &[&'static str]) -> BodyUpload {
        let source = Box::pin(Given(Some(pieces.iter().copied().collect())));
        BodyUpload::new(RequestContent::Stream { source, length }, false)
    }

    fn fill(upload: &mut BodyUpload) -> Poll<Result<Vec<u8>, ClientError>> {
        let mut out = Vec::new();
        let filled = upload.poll_fill(&mut Context::from_waker(Waker::noop()), &mut out);
        filled.map_ok(|()| out)
    }

    fn filled(upload: &mut BodyUpload) -> Vec<u8> {
        match fill(upload) {
            Poll::Ready(Ok(out)) => out,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_stream_goes_in_chunks_or_as_it_is() {
        let mut upload = given(None, &["one", "", "twotwo"]);
        assert_eq!(filled(&mut upload), b"3\r\none\r\n6\r\ntwotwo\r\n0\r\n\r\n");
        assert!(upload.is_done());
        let mut upload = given(Some(9), &["one", "", "twotwo", "not asked for"]);
        assert_eq!(filled(&mut upload), b"onetwotwo");
        assert!(upload.is_done() && filled(&mut upload).is_empty());
        let mut upload = given(None, &["one", "", "twotwo"]).unframed();
        assert_eq!(filled(&mut upload), b"onetwotwo");
        assert!(upload.is_done());
        let mut upload = given(None, &[]);
        assert_eq!(filled(&mut upload), LAST_CHUNK);
        assert!(given(Some(0), &["not asked for"]).is_done());
    }

    #[test]
    fn a_length_that_is_not_kept_is_an_error() {
        for (length, given_bytes) in [(10, 9), (8, 9), (2, 3)] {
            let error = fill(&mut given(Some(length), &["one", "twotwo"]));
            assert!(
                matches!(error, Poll::Ready(Err(ClientError::SourceLength { announced, given }))
                    if announced == length && given == given_bytes),
                "{error:?}"
            );
        }
    }

    #[test]
    fn no_turn_is_longer_than_its_share() {
        let whole = Bytes::from(vec![7; 3 * PIECE_BYTES_MAX + 1]);
        let mut upload = BodyUpload::new(RequestContent::Whole(whole.clone()), false);
        let mut sent = Vec::new();
        for _ in 0..4 {
            assert!(!upload.is_done());
            let piece = filled(&mut upload);
            assert!(piece.len() <= PIECE_BYTES_MAX);
            sent.extend_from_slice(&piece);
        }
        assert!(upload.is_done() && sent == whole);
        let source = Box::pin(Given(None));
        let mut upload = BodyUpload::new(RequestContent::Stream { source, length: None }, false);
        assert!(fill(&mut upload).is_pending() && upload.is_starving());
    }

    #[test]
    fn a_body_that_is_held_stays_until_it_is_released_or_given_up() {
        for wanted in [true, false] {
            let mut upload = BodyUpload::new(RequestContent::Whole(Bytes::from("body")), true);
            assert!(upload.is_held() && filled(&mut upload).is_empty());
            if wanted {
                upload.release();
                assert_eq!(filled(&mut upload), b"body");
            } else {
                upload.give_up();
                assert!(filled(&mut upload).is_empty());
            }
            assert_eq!(upload.is_done(), wanted);
        }
        assert!(BodyUpload::new(RequestContent::Nothing, true).is_done());
    }
}
