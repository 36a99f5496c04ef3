//! Parses accepted statuses, such as `200,302` or `200-399,404` or `2xx`.

use super::LoadPlan;

/// Statuses of responses; interim ones are none.
const FIRST: u16 = 200;
const LAST: u16 = 599;

impl LoadPlan {
    /// Parses one entry of a list of statuses: `404`, `200-399`, or `3xx` for a whole class.
    /// Returns an inclusive range; `None` if it is none within 200 to 599.
    pub fn parse_statuses(text: &str) -> Option<(u16, u16)> {
        let number = |text: &str| text.trim().parse::<u16>().ok();
        let class = text.trim().strip_suffix("xx").and_then(number);
        let (from, to) = match (class, text.split_once('-')) {
            (Some(class), _) => (class.checked_mul(100)?, class.checked_mul(100)? + 99),
            (None, Some((from, to))) => (number(from)?, number(to)?),
            (None, None) => (number(text)?, number(text)?),
        };
        (from >= FIRST && to <= LAST && from <= to).then_some((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::LoadPlan;

    #[test]
    fn an_entry_is_a_status_a_range_or_a_class() {
        for (text, expected) in [
            ("404", Some((404, 404))),
            (" 200-399", Some((200, 399))),
            ("5xx", Some((500, 599))),
            ("1xx", None),
            ("6xx", None),
            ("700xx", None),
            ("199", None),
            ("399-200", None),
            ("200-", None),
            ("", None),
        ] {
            assert_eq!(LoadPlan::parse_statuses(text), expected, "{text:?}");
        }
    }
}
