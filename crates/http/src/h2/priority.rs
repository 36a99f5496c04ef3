//! How urgent a response is (RFC 9218).

use crate::syntax::list;

/// The priority of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub urgency: u8,
    /// The client can use parts of it: such ones share what there is.
    pub is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, is_incremental: false }
    }
}

impl Priority {
    /// Reads a `priority` field, or the value of `PRIORITY_UPDATE` (RFC 9218 §4). What is missing
    /// or unknown means the default.
    pub fn of(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in list(value) {
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.is_incremental = true,
                b"i=?0" => priority.is_incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::Priority;

    #[test]
    fn members_that_are_known_count() {
        let of = |value: &str| {
            let Priority { urgency, is_incremental } = Priority::of(value.as_bytes());
            (urgency, is_incremental)
        };
        for (value, wanted) in [
            ("", (3, false)),
            ("u=0", (0, false)),
            ("u=7, i", (7, true)),
            ("i,u=1", (1, true)),
            ("i=?0, u=5", (5, false)),
            ("u=8, i=1, x=\"u=2\"", (3, false)),
            ("u=-1", (3, false)),
        ] {
            assert_eq!(of(value), wanted, "{value}");
        }
    }
}
