//! HTTP dates (RFC 9110 §5.6.7). Time is an argument: seconds since 1970-01-01 00:00:00 UTC.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use httpdate::HttpDate;

/// Bytes of every IMF-fixdate.
pub const DATE_BYTES: usize = 29;

/// 9999-12-31 23:59:59, the last second that a four-digit year can say.
const UNIX_SECS_MAX: u64 = 253_402_300_799;

/// Writes a time the one way a sender may: `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// A time past the year 9999 is written as the last second of that year.
pub fn imf_fixdate(unix_secs: u64) -> [u8; DATE_BYTES] {
    let time = UNIX_EPOCH + Duration::from_secs(unix_secs.min(UNIX_SECS_MAX));
    let mut date = [b' '; DATE_BYTES];
    write!(&mut date[..], "{}", HttpDate::from(time)).expect("an IMF-fixdate has 29 bytes");
    date
}

/// Reads any of the three forms a recipient must take: IMF-fixdate, RFC 850 and asctime.
///
/// None if it is none of them, or lies before 1970: the caller then ignores the field, as RFC 9110
/// §13.1.3 wants.
pub fn parse_date(value: &[u8]) -> Option<u64> {
    let time = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::{imf_fixdate, parse_date};

    #[test]
    fn the_three_forms_of_one_moment_read_the_same() {
        for form in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse_date(form.as_bytes()), Some(784_111_777), "{form}");
        }
    }

    #[test]
    fn what_is_written_reads_back_to_the_second() {
        for secs in [0, 1, 784_111_777, 1_700_000_000, 4_102_444_800, 253_402_300_799] {
            assert_eq!(parse_date(&imf_fixdate(secs)), Some(secs));
        }
        assert_eq!(&imf_fixdate(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(&imf_fixdate(u64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn anything_else_is_no_date() {
        for bad in
            ["", "yesterday", "Sun, 06 Nov 1994 08:49:37 PST", "Sun, 66 Nov 1994 08:49:37 GMT"]
        {
            assert_eq!(parse_date(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse_date(b"\xff\xfe"), None);
    }
}
