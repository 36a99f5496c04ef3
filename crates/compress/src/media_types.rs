//! Which media types are worth compressing.

/// The media types that are compressed unless others are set: text, and formats made of text or of
/// numbers in a row.
pub const COMPRESSIBLE: &str = "text/*,application/json,application/*+json,application/javascript,\
    application/xml,application/*+xml,application/manifest+json,application/wasm,\
    application/vnd.ms-fontobject,application/x-ndjson,application/yaml,application/toml,\
    application/sql,application/rtf,image/svg+xml,image/bmp,image/x-icon,image/vnd.microsoft.icon,\
    font/ttf,font/otf,model/gltf+json";

/// Types of bytes that hardly become fewer, by their beginning.
const COMPRESSED: [&[u8]; 14] = [
    b"image/",
    b"video/",
    b"audio/",
    b"font/woff",
    b"application/font-woff",
    b"application/zip",
    b"application/gzip",
    b"application/zstd",
    b"application/x-7z",
    b"application/x-bzip",
    b"application/x-gzip",
    b"application/x-rar",
    b"application/x-xz",
    b"application/epub+zip",
];

/// Returns whether `pattern` is a media type such as `text/css`, or one with a star for what may
/// stand there: `text/*`, `application/*+json`, `*/*`.
pub fn is_media_type(pattern: &str) -> bool {
    let is_name = |part: &str| {
        let letters = part.replace('*', "");
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !part.is_empty() && part.len() - letters.len() <= 1 && letters.bytes().all(is_token)
    };
    pattern.split_once('/').is_some_and(|(kind, rest)| is_name(kind) && is_name(rest))
}

/// Returns whether a content type is one of several, its parameters apart. Case does not matter.
///
/// - `patterns`: [media types](is_media_type).
pub fn matches_any<'p>(patterns: impl IntoIterator<Item = &'p str>, content_type: &[u8]) -> bool {
    let end = content_type.iter().position(|byte| *byte == b';').unwrap_or(content_type.len());
    let essence = content_type[..end].trim_ascii();
    patterns.into_iter().any(|pattern| matches(pattern.as_bytes(), essence))
}

/// Compares the two halves apart, so that a star does not reach across the slash.
fn matches(pattern: &[u8], essence: &[u8]) -> bool {
    let halves = |text: &[u8]| text.iter().position(|byte| *byte == b'/').map(|at| (at, at + 1));
    let (Some((end, start)), Some((other_end, other_start))) = (halves(pattern), halves(essence))
    else {
        return false;
    };
    is_like(&pattern[..end], &essence[..other_end])
        && is_like(&pattern[start..], &essence[other_start..])
}

fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else {
        return pattern.eq_ignore_ascii_case(text);
    };
    let (before, after) = (&pattern[..star], &pattern[star + 1..]);
    text.len() >= before.len() + after.len()
        && text[..before.len()].eq_ignore_ascii_case(before)
        && text[text.len() - after.len()..].eq_ignore_ascii_case(after)
}

/// Returns whether files of a type are compressed by their own format, so that nobody compresses
/// them once more: pictures, films, archives, fonts of the web.
pub fn is_compressed_already(essence: &str) -> bool {
    let essence = essence.as_bytes();
    let is_kind = |kind: &&[u8]| {
        essence.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind))
    };
    COMPRESSED.iter().any(|kind| is_kind(kind)) && !matches_any(COMPRESSIBLE.split(','), essence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_compressible(content_type: &str) -> bool {
        matches_any(COMPRESSIBLE.split(','), content_type.as_bytes())
    }

    #[test]
    fn the_table_has_what_the_web_is_made_of() {
        for kind in [
            "text/html; charset=utf-8",
            "TEXT/CSS",
            "application/json",
            "application/ld+json",
            "application/problem+json; charset=utf-8",
            "application/wasm",
            "image/svg+xml",
            "application/atom+xml",
            "text/event-stream",
            "font/ttf",
        ] {
            assert!(is_compressible(kind), "{kind}");
            assert!(!is_compressed_already(kind), "{kind}");
        }
        for kind in ["image/png", "video/mp4", "font/woff2", "application/zip", "audio/ogg"] {
            assert!(!is_compressible(kind) && is_compressed_already(kind), "{kind}");
        }
        for kind in ["application/octet-stream", "application/pdf", "", "text", "/"] {
            assert!(!is_compressible(kind) && !is_compressed_already(kind), "{kind}");
        }
    }

    #[test]
    fn every_pattern_of_the_table_is_one() {
        assert!(COMPRESSIBLE.split(',').all(is_media_type));
        for pattern in ["text/*", "*/*", "application/*+json", "a/b"] {
            assert!(is_media_type(pattern), "{pattern}");
        }
        for pattern in ["text", "text/", "/css", "text/**", "te xt/css", "a/b/c", "a/b;c=d", ""] {
            assert!(!is_media_type(pattern), "{pattern}");
        }
    }

    #[test]
    fn a_star_stays_on_its_side_of_the_slash() {
        assert!(matches_any(["*/*"], b"a/b"));
        assert!(matches_any(["application/*+json"], b"application/a+json"));
        assert!(!matches_any(["application/*+json"], b"application/json"));
        assert!(!matches_any(["text/*"], b"texts/plain"));
        assert!(matches_any(["text/*"], b"text/a+b ; charset=x"));
    }
}
