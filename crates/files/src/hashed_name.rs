//! Whether a file's name holds a hash of its content, as build tools make it.
//!
//! A wrong yes is costly where it lets browsers keep a file for a year: there the rule is strict.
//! Where it only decides whether a file of a former release is still found for a while, a wrong no
//! is what breaks pages, and the rule is loose.

use std::ops::Range;

/// The length of the hashes that Vite, Rollup and esbuild make; other tools make longer ones.
const HASH_CHARS: usize = 8;

/// The shortest hash in hexadecimal digits.
const HEX_CHARS_MIN: usize = 4;

/// How many characters of a hash differ at least.
const DISTINCT_MIN: usize = 5;
/// How many letters may stand together before or behind the digits of a hash.
const LETTERS_MAX: usize = 3;
/// The letters that a word has from which on a run of them may be one: in the names of scripts and
/// styles, which build tools write, and in those of what people name themselves.
const WORD_CHARS_MIN: [usize; 2] = [4, 3];
/// The extensions of the former.
const OF_TOOLS: [&[u8]; 6] = [b"js", b"mjs", b"cjs", b"css", b"wasm", b"map"];

/// Returns whether a name holds a hash that has a digit and a letter: `main.9f2c1b7a.js`,
/// `index-BhK3xz1c.css`; none of `my-document.pdf`, `report.20240131.pdf`, `release2024.zip`,
/// `hero-1920x1080.jpg`.
pub(super) fn has_hash(name: &[u8]) -> bool {
    let stem = stem(name);
    let extension = name.get(stem.len() + 1..).unwrap_or_default();
    let is_of_tool = OF_TOOLS.iter().any(|tool| extension.eq_ignore_ascii_case(tool));
    let mut pieces = stem.split(|byte| *byte == b'.').enumerate();
    pieces.any(|(at, piece)| {
        // `main.9f2c.js`, but none of `3d2d.js` and `vitamin-b12d3.jpg`.
        let is_short_one = at > 0 && is_short_hash(piece);
        let mut parts = piece.split(|byte| !byte.is_ascii_alphanumeric());
        is_short_one || parts.any(|part| is_hash(part, is_of_tool))
    })
}

/// Returns whether a name may hold a hash, one without a digit or with `-` and `_` among its
/// letters too: `index-BhKxzQcP.js`, `index-D_x-3aBc.js`, `main.48120957.js`.
pub(super) fn may_have_hash(name: &[u8]) -> bool {
    hash_in(name).is_some()
}

/// Returns where in a name the last part is that may be a hash, by the same rule.
pub(super) fn hash_in(name: &[u8]) -> Option<Range<usize>> {
    last_part(
        stem(name),
        |byte| byte != b'.',
        |piece| {
            if ends_in_hash(piece) {
                return Some(piece.len() - HASH_CHARS..piece.len());
            }
            let is_whole = |part: &[u8]| may_be_hash(part).then_some(0..part.len());
            last_part(piece, |byte| byte.is_ascii_alphanumeric(), is_whole)
        },
    )
}

/// Returns where something is in the last part of a text that has it.
///
/// - `is_inside`: whether a byte is in a part, not between two.
fn last_part(
    text: &[u8],
    is_inside: impl Fn(u8) -> bool,
    find: impl Fn(&[u8]) -> Option<Range<usize>>,
) -> Option<Range<usize>> {
    let mut end = text.len();
    for part in text.rsplit(|byte| !is_inside(*byte)) {
        let start = end - part.len();
        if let Some(found) = find(part) {
            return Some(start + found.start..start + found.end);
        }
        end = start.saturating_sub(1);
    }
    None
}

/// Returns a name without its extension.
fn stem(name: &[u8]) -> &[u8] {
    memchr::memrchr(b'.', name).map_or(name, |dot| &name[..dot])
}

/// Returns whether a text of letters and digits is a hash by the strict rule.
///
/// People write words and numbers: `iPhone15Pro`, `1080p60fps`, `cafe2024`. A hash changes from one
/// kind of character to another all the time. Of eight characters of base64, as Vite has them, 44 %
/// are a hash in the name of a script, 29 % in that of a picture; another 26 % have no digit.
fn is_hash(text: &[u8], is_of_tool: bool) -> bool {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = text.len() - digits;
    if text.len() < HASH_CHARS || digits == 0 || letters == 0 || runs(text).any(is_time) {
        return false;
    }
    let count = runs(text).count();
    if is_hex(text) {
        return distinct(text) >= DISTINCT_MIN && (count > 2 || letters <= LETTERS_MAX);
    }
    let is_word = |run| may_be_word(run, WORD_CHARS_MIN[usize::from(!is_of_tool)]);
    digits < letters && (is_of_tool || count * 2 >= text.len()) && !runs(text).any(is_word)
}

/// Returns whether a text is a short hash in hexadecimal digits by the strict rule.
fn is_short_hash(text: &[u8]) -> bool {
    let of_kind =
        |is_kind: fn(&u8) -> bool| -> Vec<u8> { text.iter().copied().filter(is_kind).collect() };
    // None of `1e10`, `3d2d` and `e2e4`.
    let varies = |kind: Vec<u8>| distinct(&kind) > 1;
    (HEX_CHARS_MIN..HASH_CHARS).contains(&text.len())
        && is_hex(text)
        && runs(text).count() > 2
        && !runs(text).any(is_time)
        && varies(of_kind(u8::is_ascii_digit))
        && varies(of_kind(u8::is_ascii_alphabetic))
}

/// Returns whether a text of letters and digits may be a hash by the loose rule.
fn may_be_hash(text: &[u8]) -> bool {
    let has_both = text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic);
    let is_hex = is_hex(text);
    match text.len() {
        _ if !has_both => false,
        HASH_CHARS.. => is_hex || !is_word_and_number(text),
        // `9f2c`, but none of `2024a` and `ed25519`.
        HEX_CHARS_MIN.. => is_hex && changes(text) > 1,
        _ => false,
    }
}

/// Returns the longest parts of a text that are digits, small letters, or capitals with the small
/// letters behind them.
fn runs(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.chunk_by(|one, next| {
        let is_kept = |is_kind: fn(&u8) -> bool| is_kind(one) && is_kind(next);
        is_kept(u8::is_ascii_digit)
            || is_kept(u8::is_ascii_uppercase)
            || one.is_ascii_alphabetic() && next.is_ascii_lowercase()
    })
}

/// Returns how many characters of a text differ.
fn distinct(text: &[u8]) -> usize {
    let is_first = |(at, byte): &(usize, &u8)| !text[..*at].contains(byte);
    text.iter().enumerate().filter(is_first).count()
}

/// Returns whether letters may be a word: it is long enough and has a vowel.
fn may_be_word(run: &[u8], chars_min: usize) -> bool {
    run.len() >= chars_min && run.iter().any(|byte| b"aeiouAEIOU".contains(byte))
}

/// Returns whether digits are a year, a day, or a day with the time.
fn is_time(run: &[u8]) -> bool {
    match (run.len(), run.first_chunk()) {
        (4, _) => run.starts_with(b"19") || run.starts_with(b"20"),
        (8 | 12 | 14, Some(day)) => is_date(*day),
        _ => false,
    }
}

fn is_hex(text: &[u8]) -> bool {
    let has_case = |is_case: fn(&u8) -> bool| text.iter().any(is_case);
    text.iter().all(u8::is_ascii_hexdigit)
        && !(has_case(u8::is_ascii_uppercase) && has_case(u8::is_ascii_lowercase))
}

/// Returns how often a digit follows a letter or a letter a digit.
fn changes(text: &[u8]) -> usize {
    text.windows(2).filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit()).count()
}

/// Returns whether a text is a word with a number before or behind it: `release2024`, `Chapter12`.
fn is_word_and_number(text: &[u8]) -> bool {
    let letters: Vec<u8> = text.iter().copied().filter(u8::is_ascii_alphabetic).collect();
    changes(text) == 1 && is_word(&letters)
}

/// Returns whether letters are all small, all capital, or small behind one capital.
fn is_word(letters: &[u8]) -> bool {
    let (_, rest) = letters.split_at(letters.len().min(1));
    rest.iter().all(u8::is_ascii_lowercase) || letters.iter().all(u8::is_ascii_uppercase)
}

/// Returns whether the last eight characters may be a hash by the loose rule.
fn ends_in_hash(piece: &[u8]) -> bool {
    let Some((head, tail)) = piece.split_last_chunk::<HASH_CHARS>() else { return false };
    let is_alone = head.last().is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let is_in_alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    if !is_alone || !tail.iter().all(is_in_alphabet) {
        return false;
    }
    let letters: Vec<u8> = tail.iter().copied().filter(u8::is_ascii_alphabetic).collect();
    let is_capital = letters.len() == HASH_CHARS && letters.iter().all(u8::is_ascii_uppercase);
    match (letters.len(), tail.iter().any(u8::is_ascii_digit)) {
        (0, _) => !is_date(*tail),
        (_, true) => !is_word_and_number(tail),
        (_, false) => is_capital || !is_word(&letters),
    }
}

/// Returns whether eight digits are a day of this century or the last.
fn is_date(digits: [u8; HASH_CHARS]) -> bool {
    let number = |range: std::ops::Range<usize>| {
        let digits = digits[range].iter();
        digits.fold(0, |number: u32, digit| number * 10 + u32::from(digit.wrapping_sub(b'0')))
    };
    let (year, month, day) = (number(0..4), number(4..6), number(6..8));
    (1900..2100).contains(&year) && (1..13).contains(&month) && (1..32).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_build_tools_hold_a_hash_and_others_do_not() {
        for (name, strict, loose) in [
            // webpack, Create React App, Next.js, Parcel, Gatsby
            ("main.9f2c1b7a.js", true, true),
            ("main.9f2c1b7a.chunk.css.map", true, true),
            ("app-3b1a2c4d5e6f7081.js", true, true),
            ("2f5e8a90d1c34b67.woff2", true, true),
            ("main.9f2c.js", true, true),
            ("main.48120957.js", false, true),
            // Vite, Rollup, SvelteKit
            ("index-BhK3xz1c.js", true, true),
            ("BhK3xz1c.js", true, true),
            ("index-BhKxzQcP.js", false, true),
            ("index-D_x-3aBc.js", false, true),
            ("start.CkW0F1_a.js", false, true),
            // esbuild, Angular
            ("app-X7QKZ3MB.js", true, true),
            ("app-XQKZMBTR.js", false, true),
            ("main-abc12345.js", true, true),
            // Bun, Django, Rails
            ("chunk-8nx5yhwb.js", true, true),
            ("index-Kab4xdfg.js", true, true),
            ("photo-Kab4xdfg.jpg", false, true),
            ("base.55e7cbb9ba48.css", true, true),
            ("app-908e25f4bf641868d8683022a5b62f54.js", true, true),
            // What people call their files.
            ("my-document.pdf", false, false),
            ("logo-vertical.svg", false, false),
            ("report.20240131.pdf", false, false),
            ("report-2024-01-31.pdf", false, false),
            ("release2024.zip", false, false),
            ("Chapter12.html", false, false),
            ("january2024.pdf", false, false),
            ("jquery-3.7.1.min.js", false, false),
            ("inter-v13-latin.woff2", false, false),
            ("film.1080p.mp4", false, false),
            ("film.h264.mp4", false, false),
            ("keys.ed25519", false, false),
            ("draft.2024a.txt", false, false),
            ("logo.svg", false, false),
            ("logo", false, false),
            ("", false, false),
            (".9f2c1b7a", false, false),
            ("9f2c1b7a", true, true),
            ("archive.9f2c1b7a", false, false),
        ] {
            let found = (has_hash(name.as_bytes()), may_have_hash(name.as_bytes()));
            assert_eq!(found, (strict, loose), "{name}");
        }
    }

    #[test]
    fn sizes_times_and_words_between_numbers_are_no_hash_but_may_be_a_former_releases() {
        for (name, strict, loose) in [
            ("hero-1920x1080.jpg", false, true),
            ("og-1200x630.png", false, true),
            ("hero-1024x768.webp", false, true),
            ("icon-1024x1024.png", false, true),
            ("report-20240131T101500Z.pdf", false, true),
            ("report-20240131a.pdf", false, true),
            ("trailer-1080p60fps.mp4", false, true),
            ("trailer-720p60hdr10.mp4", false, true),
            ("s01e02x1080p.mp4", false, true),
            ("page1of10.html", false, true),
            ("mp3to320kbps.txt", false, true),
            ("k8sv1beta1.yaml", false, true),
            ("iPhone15.png", false, true),
            ("iPhone15Pro.png", false, true),
            ("iOS17Pro.png", false, true),
            ("heroImage2.png", false, true),
            ("YouTube4Kids.svg", false, true),
            ("HeroBanner1920x1080.jpg", false, true),
            ("cafe2024.jpg", false, true),
            ("decade1990.jpg", false, true),
            ("swatch-ff8800ff.png", false, true),
            ("swatch-1a2b3c.png", false, true),
            ("vitamin-b12d3.jpg", false, true),
            ("3d2d.js", false, true),
            ("base64url.js", false, true),
            ("utf8decoder.js", false, true),
            ("es2015modules.js", false, true),
            ("web3modal.min.js", false, true),
            ("i18nextBackend.js", false, true),
            ("app.3d2d.js", false, true),
            ("b2b2c.pdf", false, true),
            ("chess.e2e4.svg", false, true),
            ("plan.2024a1b.pdf", false, true),
            ("lib.v1.2.3b4.js", false, false),
            ("codec-h264.mp4", false, false),
            ("song.mp3", false, false),
            ("utf8.txt", false, false),
            ("plan-2024w05.pdf", false, false),
            ("film-4k60.mp4", false, false),
            ("linux-x86_64.zip", false, false),
            ("sums.sha256", false, false),
            ("text-iso8859.txt", false, false),
            ("text-iso88591.txt", false, false),
        ] {
            let found = (has_hash(name.as_bytes()), may_have_hash(name.as_bytes()));
            assert_eq!(found, (strict, loose), "{name}");
        }
    }

    #[test]
    fn the_last_hash_of_a_name_is_found() {
        for (name, expected) in [
            ("main.9f2c1b7a.js", "main.|9f2c1b7a|.js"),
            ("main.9f2c1b7a.chunk.css.map", "main.|9f2c1b7a|.chunk.css.map"),
            ("app-3b1a2c4d5e6f7081.js", "app-|3b1a2c4d5e6f7081|.js"),
            ("4bd1b696-3b1a2c4d5e6f7081.js", "4bd1b696-|3b1a2c4d5e6f7081|.js"),
            ("23.9f2c.js", "23.|9f2c|.js"),
            ("index-D_x-3aBc.js", "index-|D_x-3aBc|.js"),
            ("index-BhKxzQcP.js", "index-|BhKxzQcP|.js"),
            ("9f2c1b7a-main.js", "|9f2c1b7a|-main.js"),
            ("BhK3xz1c.js", "|BhK3xz1c|.js"),
            ("9f2c1b7a", "|9f2c1b7a|"),
        ] {
            let hash = hash_in(name.as_bytes()).unwrap_or_else(|| panic!("{name} has a hash"));
            let found =
                [&name[..hash.start], &name[hash.start..hash.end], &name[hash.end..]].join("|");
            assert_eq!(found, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_a_hash_may_be_one(name in "[A-Za-z0-9._-]{0,24}") {
            proptest::prop_assert!(!has_hash(name.as_bytes()) || may_have_hash(name.as_bytes()));
        }

        #[test]
        fn a_hash_lies_within_any_name(name in proptest::collection::vec(0_u8.., 0..40)) {
            let hash = hash_in(&name).unwrap_or(0..0);
            proptest::prop_assert!(hash.start <= hash.end && hash.end <= name.len());
        }
    }
}
