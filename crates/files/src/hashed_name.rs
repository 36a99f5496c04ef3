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

/// Returns whether a name holds a hash that has a digit and a letter: `main.9f2c1b7a.js`,
/// `index-BhK3xz1c.css`; none of `my-document.pdf`, `report.20240131.pdf`, `release2024.zip`.
pub(super) fn has_hash(name: &[u8]) -> bool {
    pieces(name).any(|piece| piece.split(|byte| !byte.is_ascii_alphanumeric()).any(is_hash))
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
            let is_whole = |part: &[u8]| is_hash(part).then_some(0..part.len());
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

/// Returns the parts between the dots, without the extension.
fn pieces(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    stem(name).split(|byte| *byte == b'.')
}

/// Returns a name without its extension.
fn stem(name: &[u8]) -> &[u8] {
    memchr::memrchr(b'.', name).map_or(name, |dot| &name[..dot])
}

/// Returns whether a text of letters and digits is a hash by the strict rule.
fn is_hash(text: &[u8]) -> bool {
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
        fn a_hash_lies_within_any_name(name in proptest::collection::vec(0_u8.., 0..40)) {
            let hash = hash_in(&name).unwrap_or(0..0);
            proptest::prop_assert!(hash.start <= hash.end && hash.end <= name.len());
        }
    }
}
