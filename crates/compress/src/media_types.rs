//! Which media types are worth compressing.

use gustnado_http::media_type::matches_any;

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

/// Returns whether files of a type are compressed by their own format, so that nobody compresses
/// them once more: pictures, films, archives, fonts of the web.
pub fn is_compressed_already(essence: &str) -> bool {
    let essence = essence.as_bytes();
    let is_kind = |kind: &&[u8]| {
        essence.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind))
    };
    COMPRESSED.iter().any(is_kind) && !matches_any(COMPRESSIBLE.split(','), essence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_http::media_type::is_pattern;

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
        assert!(COMPRESSIBLE.split(',').all(is_pattern));
    }
}
