//! The clock. Certificates begin and end by it, on this machine and on those of clients.

use super::clock_facts::ClockSync;
use super::facts::Facts;
use super::finding::Finding;

/// How much older than a file the clock may be: a file may be of another time zone.
const TOLERANCE_S: i64 = 86_400;
pub(super) fn synchronized(facts: &Facts) -> Finding {
    let subject = "clock";
    match facts.clock.sync {
        ClockSync::Synchronized => {
            let meaning = "certificates begin and end when they should";
            Finding::good(subject, "synchronized".to_owned(), meaning)
        }
        ClockSync::KeptBy(service) => {
            let meaning = "it runs, and keeps the clock; it knows itself how far off that is";
            Finding::good(subject, service.to_owned(), meaning)
        }
        ClockSync::NotSynchronized => {
            let meaning = "systemd-timesyncd runs, and has reached no server";
            Finding::change(subject, "not synchronized".to_owned(), meaning)
                .by("timedatectl timesync-status  # the server that it asks")
                .by("sudo systemctl restart systemd-timesyncd")
                .or_else("it drifts, and certificates begin and end at the wrong time")
        }
        ClockSync::Unknown => Finding::unknown(subject, "the state of a time service in /run"),
    }
}

pub(super) fn plausible(facts: &Facts) -> Finding {
    let (subject, clock) = ("time", &facts.clock);
    let value = utc(clock.now_s);
    match clock.file_s {
        None => Finding::unknown(subject, "the age of every file to compare it with"),
        Some(file_s) if clock.now_s + TOLERANCE_S < file_s => {
            let meaning =
                format!("before {}, when a file of this machine was written", utc(file_s));
            let change = if facts.in_container { "# on the host: " } else { "" };
            Finding::change(subject, value, &meaning)
                .by(format!("{change}sudo date -u -s '2026-01-31 12:00'  # the time of now"))
                .or_else("certificates are not valid yet: no server with TLS starts")
        }
        Some(_) => Finding::good(subject, value, "no file to compare it with is younger"),
    }
}

/// Returns a time as text: `2026-11-25T17:46:02Z`.
fn utc(unix_s: i64) -> String {
    let (days, second) = (unix_s.div_euclid(86_400), unix_s.rem_euclid(86_400));
    // Years begin in March here, so that the day of a leap year is their last; 719,468 days lie
    // between the first of them and 1970.
    let day = days + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + carry;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (784_111_777, "1994-11-06T08:49:37Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(unix_s), date);
        }
    }
}
