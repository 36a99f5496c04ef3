//! The fields that both sides know from the start (RFC 7541, appendix A).

use crate::fields::HeaderId;

/// How many there are; indices begin with 1.
pub(super) const COUNT: usize = 61;

/// Indices of pseudo fields of requests. `POST` and `https` follow theirs.
pub(super) const METHOD_GET: u8 = 2;
pub(super) const PATH: u8 = 4;
pub(super) const SCHEME_HTTP: u8 = 6;

/// Returns the field of an index from 1 to [`COUNT`].
#[inline]
pub(super) fn get(index: usize) -> Option<(&'static [u8], &'static [u8])> {
    FIELDS.get(index.wrapping_sub(1)).map(|(name, value)| (name.as_bytes(), value.as_bytes()))
}

/// Returns the first index of a name, if it has one.
pub(super) fn name_index(id: HeaderId) -> Option<usize> {
    let index = NAME_INDEX[id as usize];
    (index != 0).then_some(usize::from(index))
}

/// Returns the index of `:status` with this value, or with another one.
#[inline]
pub(super) fn status_index(code: u16) -> Result<usize, usize> {
    match code {
        200 => Ok(8),
        204 => Ok(9),
        206 => Ok(10),
        304 => Ok(11),
        400 => Ok(12),
        404 => Ok(13),
        500 => Ok(14),
        _ => Err(8),
    }
}

/// By the id of a name: its first index, or 0.
static NAME_INDEX: [u8; HeaderId::ALL.len()] = name_indices();

#[expect(clippy::cast_possible_truncation, reason = "there are 61")]
const fn name_indices() -> [u8; HeaderId::ALL.len()] {
    let mut indices = [0; HeaderId::ALL.len()];
    let mut at = 0;
    while at < indices.len() {
        let name = HeaderId::ALL[at].name().as_bytes();
        let mut index = COUNT;
        while index > 0 {
            if is_same(name, FIELDS[index - 1].0.as_bytes()) {
                indices[at] = index as u8;
            }
            index -= 1;
        }
        at += 1;
    }
    indices
}

const fn is_same(name: &[u8], lower: &[u8]) -> bool {
    if name.len() != lower.len() {
        return false;
    }
    let mut at = 0;
    while at < name.len() {
        if name[at].to_ascii_lowercase() != lower[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[rustfmt::skip]
static FIELDS: [(&str, &str); COUNT] = [
    (":authority", ""),
    (":method", "GET"), (":method", "POST"),
    (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"),
    (":status", "200"), (":status", "204"), (":status", "206"), (":status", "304"),
    (":status", "400"), (":status", "404"), (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""),
    ("content-length", ""), ("content-location", ""), ("content-range", ""), ("content-type", ""),
    ("cookie", ""), ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""),
    ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""),
    ("proxy-authenticate", ""), ("proxy-authorization", ""),
    ("range", ""), ("referer", ""), ("refresh", ""), ("retry-after", ""),
    ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
];
