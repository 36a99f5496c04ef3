//! Responses of handlers compressed while they are sent (RFC 9110 §8.4).
//!
//! A middleware outside all others sees the response that a handler has made, whatever it is
//! written in. What lives here: whether it is compressed, what its fields say then, and short
//! content, which the worker compresses at once. `whole` has a job of the pool compress longer
//! content, and `stream` does the rest in steps.

mod stream;
mod whole;

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use gustnado_compress::{BodyEncoder, COMPRESSIBLE, CompressionCounts, Level, WholeEncoder};
use gustnado_config::{Compress, RouteSettings};
use gustnado_http::content_coding::{AcceptedCodings, CodingSet, ContentCoding, forbids_change};
use gustnado_http::fields::{Fields, HeaderId};
use gustnado_http::media_type::matches_any;
use gustnado_http::method::Method;
use gustnado_http::response_writer::field_values;
use gustnado_http::status::Status;
use gustnado_tasks::{BlockingPool, Charge, MemoryKind};

use crate::encoders::{IdleEncoders, KeptEncoder};
use crate::middleware::Middleware;
use crate::request::Request;
use crate::response::{Content, Response, Streamed};
use stream::Compressing;
use whole::{CompressingWhole, CompressionMeans, WHOLE_BYTES_MAX};

/// Fields that are true of the bytes as they are (RFC 9530 §2 and §3, and what came before it).
const DIGESTS: [&str; 4] = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"];

thread_local! {
    /// The worker's encoders of short content, by coding: one body is finished before the next.
    static ENCODERS: RefCell<[Option<KeptEncoder>; ContentCoding::COUNT]> =
        const { RefCell::new([const { None }; ContentCoding::COUNT]) };
}

/// What a route's responses are compressed by.
struct ResponseCompression {
    codings: CodingSet,
    /// Media types, with stars.
    types: Vec<String>,
    bytes_min: u64,
    level: Level,
    /// Responses that set cookies are compressed, too.
    with_cookies: bool,
    pool: BlockingPool,
    counts: Arc<CompressionCounts>,
    encoders: IdleEncoders,
}

/// Returns middleware that compresses responses, if the settings ask for it.
///
/// - `common`: field lines of every response of the server.
pub(crate) fn middleware(
    settings: &RouteSettings,
    (pool, encoders): (&BlockingPool, &IdleEncoders),
    counts: &Arc<CompressionCounts>,
    common: &[u8],
) -> Option<Middleware> {
    if forbids_change(field_values(common, HeaderId::CacheControl.name())) {
        return None;
    }
    let made: &[ContentCoding] = match settings.compress {
        Compress::Off => return None,
        Compress::On => &[ContentCoding::Gzip, ContentCoding::Zstd],
        Compress::Gzip => &[ContentCoding::Gzip],
        Compress::Zstd => &[ContentCoding::Zstd],
    };
    let types = match &*settings.compress_types {
        [] => COMPRESSIBLE.split(',').map(str::to_owned).collect(),
        own => own.to_vec(),
    };
    let level = Level { gzip: settings.compress_gzip_level, zstd: settings.compress_zstd_level };
    let compression = ResponseCompression {
        codings: made.iter().copied().chain([ContentCoding::Identity]).collect(),
        types,
        bytes_min: settings.compress_bytes_min,
        level,
        with_cookies: settings.compress_cookies,
        pool: pool.clone(),
        counts: Arc::clone(counts),
        encoders: encoders.clone(),
    };
    Some(Middleware::after(move |request, response| compression.apply(request, response)))
}

impl ResponseCompression {
    fn apply(&self, request: &Request, response: &mut Response) {
        if response.status == Status::NOT_MODIFIED {
            // It speaks of a response that has the field (RFC 9110 §15.4.5).
            let fields = response.fields.to_mut();
            put_vary(fields);
            if names_weakly(request, fields) {
                weaken_tag(fields);
            }
        }
        if !self.may_compress(response) {
            return;
        }
        put_vary(response.fields.to_mut());
        let accepted = HeaderId::AcceptEncoding.name();
        let accepted = AcceptedCodings::of(request.header_values(accepted));
        // A client that refuses the bytes as they are gets them all the same if nothing else is
        // possible (RFC 9110 §12.4.1): the handler has done its work.
        let coding = accepted.choose(self.codings).unwrap_or(ContentCoding::Identity);
        if coding == ContentCoding::Identity {
            return;
        }
        let content = if request.method() == Method::Head {
            // As long as that of a GET would be, which nobody knows before it is made.
            Some(Content::Unsent(None))
        } else {
            let is_there = matches!(response.content, Content::Bytes(_) | Content::Stream(_));
            let compressed = self.compressed(coding, &mut response.content);
            if is_there && compressed.is_none() {
                self.counts.add_refused();
            }
            compressed
        };
        if let Some(content) = content {
            let worker = gustnado_tasks::worker().unwrap_or_default();
            self.counts.add_response(coding, worker);
            response.content = content;
            mark(response.fields.to_mut(), coding);
        }
    }

    /// Returns whether a response is one that is compressed for those who accept it.
    fn may_compress(&self, response: &Response) -> bool {
        let fields = &response.fields;
        let is_long = match &response.content {
            Content::Bytes(bytes) => bytes.len() as u64 >= self.bytes_min,
            Content::Stream(streamed) => {
                streamed.length.is_none_or(|length| length >= self.bytes_min)
            }
            Content::Unsent(length) => length.is_none_or(|length| length >= self.bytes_min),
            // A folder chooses among the representations of its files itself.
            Content::File(_) | Content::Segments { .. } | Content::Path(_) | Content::Nothing => {
                false
            }
        };
        let has_type = || {
            let content_type = response.header_value(HeaderId::ContentType.name());
            let types = self.types.iter().map(String::as_str);
            content_type.is_some_and(|content_type| matches_any(types, content_type))
        };
        let is_as_it_should_be = || {
            fields.contains(HeaderId::ContentEncoding)
                || fields.contains(HeaderId::ContentRange)
                || DIGESTS.iter().any(|name| fields.contains(*name))
                || fields.contains(HeaderId::SetCookie) && !self.with_cookies
                || forbids_change(fields.get_all(HeaderId::CacheControl))
        };
        is_long
            && response.status.may_have_body()
            && response.status != Status::PARTIAL_CONTENT
            && response.extras.as_ref().is_none_or(|extras| extras.upgrade.is_none())
            && has_type()
            && !is_as_it_should_be()
    }

    /// Returns the content compressed; `None` if it stays as it is, as no memory is free.
    fn compressed(&self, coding: ContentCoding, content: &mut Content) -> Option<Content> {
        if let Content::Bytes(bytes) = content
            && bytes.len() <= whole_step_bytes_max(coding, self.level)
        {
            let compressed = encode_here((coding, self.level), bytes)?;
            self.counts.add_compression(bytes.len() as u64, compressed.len() as u64);
            return Some(Content::Bytes(compressed));
        }
        if !matches!(content, Content::Bytes(_) | Content::Stream(_)) {
            return None;
        }
        let mut charge = Charge::new(MemoryKind::Sends);
        let step = step_bytes_max(coding, self.level);
        if let Content::Bytes(bytes) = content
            && bytes.len() <= WHOLE_BYTES_MAX
        {
            let held = WholeEncoder::bytes_for(coding, self.level, bytes.len());
            if !charge.has_room_for(held) {
                return None;
            }
            let means = CompressionMeans {
                pool: self.pool.clone(),
                encoders: self.encoders.clone(),
                counts: Arc::clone(&self.counts),
            };
            let bytes = std::mem::take(bytes);
            let piece = CompressingWhole::new(bytes, (coding, self.level), step, means);
            return Some(Content::Stream(Streamed::mapped(piece, None, Result::ok)));
        }
        let held = BodyEncoder::stream_bytes(coding, self.level);
        if !charge.has_room_for(held) {
            return None;
        }
        let encoder = BodyEncoder::of_stream(coding, self.level).ok()?;
        charge.set(held);
        let encoder = (encoder, charge);
        let source = std::mem::replace(content, Content::Nothing);
        let rest = (self.pool.clone(), Arc::clone(&self.counts));
        let pieces = Compressing::new(source, encoder, step, rest);
        Some(Content::Stream(Streamed::mapped(pieces, None, Result::ok)))
    }
}

/// Returns how many bytes at hand are compressed in less than 100 microseconds: styles, which take
/// three times as long as JSON.
fn whole_step_bytes_max(coding: ContentCoding, level: Level) -> usize {
    match (coding, level.gzip) {
        (ContentCoding::Gzip, 0..=1) => 24 << 10,
        (ContentCoding::Gzip, 2..=3) => 12 << 10,
        (ContentCoding::Gzip, 4..=5) => 8 << 10,
        (ContentCoding::Gzip, 6) => 6 << 10,
        (ContentCoding::Gzip, 7) => 3 << 10,
        (ContentCoding::Gzip, _) => 1 << 10,
        _ => step_bytes_max(coding, level),
    }
}

/// Returns how many bytes of a stream are compressed in less than 100 microseconds.
fn step_bytes_max(coding: ContentCoding, level: Level) -> usize {
    match coding {
        ContentCoding::Gzip => match level.gzip {
            0..=3 => 8 << 10,
            4..=6 => 4 << 10,
            _ => 2 << 10,
        },
        _ => match level.zstd {
            0..=3 => 16 << 10,
            4..=6 => 4 << 10,
            7..=9 => 2 << 10,
            _ => 0,
        },
    }
}

/// Compresses short content on this worker; `None` if no memory is free.
fn encode_here((coding, level): (ContentCoding, Level), bytes: &[u8]) -> Option<Bytes> {
    ENCODERS.with_borrow_mut(|encoders| {
        let place = &mut encoders[coding as usize];
        if place.as_ref().is_none_or(|known| known.level != level) {
            *place = KeptEncoder::new((coding, level), Charge::new(MemoryKind::Sends));
        }
        let own = place.as_mut()?;
        let out = own.encode(bytes);
        if out.is_none() || own.takes_too_much() {
            *place = None;
        }
        out
    })
}

/// Tells caches that other clients get other bytes (RFC 9110 §12.5.5).
fn put_vary(fields: &mut Fields) {
    let accepted = HeaderId::AcceptEncoding.name().as_bytes();
    let is_named = fields.iter().any(|(name, value)| {
        let mut members = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        name.id() == Some(HeaderId::Vary)
            && members.any(|member| member == b"*" || member.eq_ignore_ascii_case(accepted))
    });
    if !is_named {
        fields.add_trusted(HeaderId::Vary, accepted);
    }
}

/// Changes what the fields say of content that is compressed now.
fn mark(fields: &mut Fields, coding: ContentCoding) {
    fields.add_trusted(HeaderId::ContentEncoding, coding.name().as_bytes());
    // There are no ranges of it, as it is made anew for every response.
    fields.remove(HeaderId::AcceptRanges);
    // Two representations must not have the same strong tag (RFC 9110 §8.8.1).
    weaken_tag(fields);
}

/// Makes a strong entity tag a weak one.
fn weaken_tag(fields: &mut Fields) {
    let tag = fields.get(HeaderId::ETag).filter(|tag| tag.starts_with(b"\"")).map(<[u8]>::to_vec);
    if let Some(tag) = tag {
        fields.remove(HeaderId::ETag);
        fields.add_trusted(HeaderId::ETag, &[b"W/", &*tag].concat());
    }
}

/// Returns whether a request names the entity tag of its response in the weak form alone: it is
/// about a response that was compressed, and a cache has to find that by the tag (RFC 9111 §4.3.4).
fn names_weakly(request: &Request, fields: &Fields) -> bool {
    let Some(tag) = fields.get(HeaderId::ETag) else { return false };
    let has = |is_it: &dyn Fn(&[u8]) -> bool| {
        let lists = request.header_values(HeaderId::IfNoneMatch.name());
        let mut members = lists.flat_map(|list| list.split(|byte| *byte == b','));
        members.any(|member| is_it(member.trim_ascii()))
    };
    has(&|member| member.strip_prefix(b"W/") == Some(tag)) && !has(&|member| member == tag)
}
