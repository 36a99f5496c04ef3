//! The header fields that have an id, and the lookup of a name in any case.

/// Declares each header field once: id, canonical spelling, source.
macro_rules! header_ids {
    ($($id:ident $name:literal $source:literal)+) => {
        /// A header field by its id: what is compared in place of its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum HeaderId {
            $(
                #[doc = concat!("`", $name, "`: ", $source)]
                $id,
            )+
        }

        impl HeaderId {
            /// Every id, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$id),+];

            /// The canonical spelling of the name.
            #[inline]
            pub const fn name(self) -> &'static str {
                NAMES[self as usize]
            }
        }

        /// The canonical spellings, by id.
        static NAMES: [&str; HeaderId::ALL.len()] = [$($name),+];
    };
}

// The first seven are those whose place a request head keeps: see `INDEXED`.
header_ids! {
    Host "Host" "RFC 9110 §7.2"
    IfMatch "If-Match" "RFC 9110 §13.1.1"
    IfNoneMatch "If-None-Match" "RFC 9110 §13.1.2"
    IfModifiedSince "If-Modified-Since" "RFC 9110 §13.1.3"
    IfUnmodifiedSince "If-Unmodified-Since" "RFC 9110 §13.1.4"
    IfRange "If-Range" "RFC 9110 §13.1.5"
    Range "Range" "RFC 9110 §14.2"
    Accept "Accept" "RFC 9110 §12.5.1"
    AcceptCharset "Accept-Charset" "RFC 9110 §12.5.2"
    AcceptEncoding "Accept-Encoding" "RFC 9110 §12.5.3"
    AcceptLanguage "Accept-Language" "RFC 9110 §12.5.4"
    AcceptRanges "Accept-Ranges" "RFC 9110 §14.3"
    AccessControlAllowCredentials "Access-Control-Allow-Credentials" "Fetch §3.3.3"
    AccessControlAllowHeaders "Access-Control-Allow-Headers" "Fetch §3.3.3"
    AccessControlAllowMethods "Access-Control-Allow-Methods" "Fetch §3.3.3"
    AccessControlAllowOrigin "Access-Control-Allow-Origin" "Fetch §3.3.3"
    AccessControlExposeHeaders "Access-Control-Expose-Headers" "Fetch §3.3.3"
    AccessControlMaxAge "Access-Control-Max-Age" "Fetch §3.3.3"
    AccessControlRequestHeaders "Access-Control-Request-Headers" "Fetch §3.3.2"
    AccessControlRequestMethod "Access-Control-Request-Method" "Fetch §3.3.2"
    Age "Age" "RFC 9111 §5.1"
    Allow "Allow" "RFC 9110 §10.2.1"
    AltSvc "Alt-Svc" "RFC 7838 §3"
    Authorization "Authorization" "RFC 9110 §11.6.2"
    CacheControl "Cache-Control" "RFC 9111 §5.2"
    Connection "Connection" "RFC 9110 §7.6.1"
    ContentDisposition "Content-Disposition" "RFC 6266 §4, RFC 7578 §4.2"
    ContentEncoding "Content-Encoding" "RFC 9110 §8.4"
    ContentLanguage "Content-Language" "RFC 9110 §8.5"
    ContentLength "Content-Length" "RFC 9110 §8.6"
    ContentLocation "Content-Location" "RFC 9110 §8.7"
    ContentRange "Content-Range" "RFC 9110 §14.4"
    ContentSecurityPolicy "Content-Security-Policy" "CSP Level 3 §3.1"
    ContentType "Content-Type" "RFC 9110 §8.3"
    Cookie "Cookie" "RFC 6265 §4.2"
    Date "Date" "RFC 9110 §6.6.1"
    ETag "ETag" "RFC 9110 §8.8.3"
    Expect "Expect" "RFC 9110 §10.1.1"
    Expires "Expires" "RFC 9111 §5.3"
    Forwarded "Forwarded" "RFC 7239 §4"
    KeepAlive "Keep-Alive" "RFC 2068 §19.7.1.1"
    LastEventId "Last-Event-ID" "HTML §9.2.4"
    LastModified "Last-Modified" "RFC 9110 §8.8.2"
    Link "Link" "RFC 8288 §3"
    Location "Location" "RFC 9110 §10.2.2"
    MaxForwards "Max-Forwards" "RFC 9110 §7.6.2"
    Origin "Origin" "RFC 6454 §7"
    PermissionsPolicy "Permissions-Policy" "Permissions Policy §6.1"
    Pragma "Pragma" "RFC 9111 §5.4"
    Priority "Priority" "RFC 9218 §5"
    ProxyAuthenticate "Proxy-Authenticate" "RFC 9110 §11.7.1"
    ProxyAuthorization "Proxy-Authorization" "RFC 9110 §11.7.2"
    ProxyConnection "Proxy-Connection" "RFC 9112 §C.2.2"
    Referer "Referer" "RFC 9110 §10.1.3"
    ReferrerPolicy "Referrer-Policy" "Referrer Policy §4.1"
    RetryAfter "Retry-After" "RFC 9110 §10.2.3"
    SecWebSocketAccept "Sec-WebSocket-Accept" "RFC 6455 §11.3.3"
    SecWebSocketExtensions "Sec-WebSocket-Extensions" "RFC 6455 §11.3.2"
    SecWebSocketKey "Sec-WebSocket-Key" "RFC 6455 §11.3.1"
    SecWebSocketProtocol "Sec-WebSocket-Protocol" "RFC 6455 §11.3.4"
    SecWebSocketVersion "Sec-WebSocket-Version" "RFC 6455 §11.3.5"
    Server "Server" "RFC 9110 §10.2.4"
    ServerTiming "Server-Timing" "Server Timing §3"
    SetCookie "Set-Cookie" "RFC 6265 §4.1"
    StrictTransportSecurity "Strict-Transport-Security" "RFC 6797 §6.1"
    Te "TE" "RFC 9110 §10.1.4"
    TraceParent "traceparent" "Trace Context §3.2"
    TraceState "tracestate" "Trace Context §3.3"
    Trailer "Trailer" "RFC 9110 §6.6.2"
    TransferEncoding "Transfer-Encoding" "RFC 9112 §6.1"
    Upgrade "Upgrade" "RFC 9110 §7.8"
    UserAgent "User-Agent" "RFC 9110 §10.1.5"
    Vary "Vary" "RFC 9110 §12.5.5"
    Via "Via" "RFC 9110 §7.6.3"
    WwwAuthenticate "WWW-Authenticate" "RFC 9110 §11.6.1"
    XContentTypeOptions "X-Content-Type-Options" "Fetch §3.6"
    XForwardedFor "X-Forwarded-For" "not standardized; see RFC 7239 §7.4"
    XForwardedHost "X-Forwarded-Host" "not standardized; see RFC 7239 §7.4"
    XForwardedProto "X-Forwarded-Proto" "not standardized; see RFC 7239 §7.4"
    XFrameOptions "X-Frame-Options" "RFC 7034 §2"
    XRequestId "X-Request-ID" "not standardized"
}

/// The ids below this one index the places that a request head keeps: small numbers, so that a
/// head stays small.
pub(crate) const INDEXED: usize = HeaderId::Range as usize + 1;

impl HeaderId {
    /// The id of a name in any case, if it has one.
    #[inline]
    pub fn of(name: &str) -> Option<Self> {
        find(name).map(|(id, _)| id)
    }
}

/// The id of a name in any case, and whether the name is spelled canonically.
pub(super) fn find(name: &str) -> Option<(HeaderId, bool)> {
    let mut slot = slot_of(name.as_bytes())?;
    loop {
        let id = SLOTS[slot]?;
        let canonical = id.name();
        // (Most names are: telling that takes a fifth of what the other comparison does.)
        if canonical == name {
            return Some((id, true));
        }
        if canonical.eq_ignore_ascii_case(name) {
            return Some((id, false));
        }
        slot = (slot + 1) % SLOTS.len();
    }
}

/// The ids by a hash of their names: open addressing, filled at compile time. A third is in use, so
/// that most names without an id meet an empty slot at once.
static SLOTS: [Option<HeaderId>; 256] = slots();

const fn slots() -> [Option<HeaderId>; 256] {
    let mut slots = [None; 256];
    let mut at = 0;
    while at < HeaderId::ALL.len() {
        let id = HeaderId::ALL[at];
        let Some(mut slot) = slot_of(NAMES[at].as_bytes()) else {
            panic!("a name is empty");
        };
        while slots[slot].is_some() {
            slot = (slot + 1) % slots.len();
        }
        slots[slot] = Some(id);
        at += 1;
    }
    slots
}

/// Where the search for a name begins. Of the name it takes the length and three letters in lower
/// case; none for an empty name.
#[inline]
const fn slot_of(name: &[u8]) -> Option<usize> {
    let [first, .., last] = name else {
        return None; // no name of one byte has an id, either
    };
    let middle = name[name.len() / 2];
    let [len, ..] = name.len().to_le_bytes();
    let key = u32::from_le_bytes([*first | 0x20, middle | 0x20, *last | 0x20, len]);
    Some((key.wrapping_mul(MULTIPLIER) >> 24) as usize)
}

/// Spreads the names of the table well: found by trial, and checked by a test.
const MULTIPLIER: u32 = 0xc5fa_756b;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case_and_nothing_else_is() {
        for (at, id) in HeaderId::ALL.iter().copied().enumerate() {
            assert_eq!(id as usize, at);
            let name = id.name();
            for spelled in [name.to_owned(), name.to_lowercase(), name.to_uppercase()] {
                assert_eq!(HeaderId::of(&spelled), Some(id), "{spelled}");
            }
            for other in [&name[1..], &name[..name.len() - 1], &format!("{name}x")] {
                assert_ne!(HeaderId::of(other), Some(id), "{other}");
            }
            // (A byte that differs from a letter in the case bit is no letter.)
            let odd = name.replace('-', "\r");
            assert!(odd == name || HeaderId::of(&odd).is_none(), "{odd:?}");
        }
        for name in ["", "a", "X-Other", "Contént-Type", "content_type"] {
            assert_eq!(HeaderId::of(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_is_found_at_the_second_try_at_the_latest() {
        for id in HeaderId::ALL {
            let start = slot_of(id.name().as_bytes()).expect("it is not empty");
            let tries = [start, (start + 1) % SLOTS.len()];
            assert!(tries.iter().any(|slot| SLOTS[*slot] == Some(*id)), "{id:?}");
        }
    }
}
