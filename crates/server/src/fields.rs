//! Header fields that are said once, for many answers.

use gustnado_http::answer::{FieldError, check_field};

use crate::chain::Link;

/// Fields by name, in order. No two of them have the same name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Says one more, or another value of one that was said.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        match self.0.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some(known) => *known = (name.to_owned(), value.to_owned()),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// These, where `inner` does not say otherwise, and then those.
    pub(crate) fn with(&self, inner: &Self) -> Self {
        let mut all = self.clone();
        inner.iter().for_each(|(name, value)| all.set(name, value));
        all
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of them can be sent.
    ///
    /// # Errors
    /// The name of the first that cannot, and why.
    pub(crate) fn check(&self) -> Result<(), (String, FieldError)> {
        self.iter().try_for_each(|(name, value)| {
            check_field(name, value.as_bytes()).map_err(|error| (name.to_owned(), error))
        })
    }

    /// Ready field lines. To be called only if they [can be sent](Self::check).
    pub(crate) fn lines(&self) -> Vec<u8> {
        self.iter().flat_map(|(name, value)| format!("{name}: {value}\r\n").into_bytes()).collect()
    }

    /// What adds them to every answer that does not say otherwise.
    pub(crate) fn link(&self) -> Option<Link> {
        let fields = self.0.clone();
        (!fields.is_empty()).then(|| {
            Link::after(move |_, response| {
                for (name, value) in &fields {
                    if response.header_value(name).is_none() {
                        let outcome = response.try_header(name, value);
                        debug_assert!(outcome.is_ok(), "{name}: {outcome:?}");
                    }
                }
            })
        })
    }
}

/// Whether ready field lines hold a field.
pub(crate) fn says(lines: &[u8], name: &str) -> bool {
    lines.split(|byte| *byte == b'\n').any(|line| {
        let start = line.get(..name.len()).unwrap_or(b"");
        start.eq_ignore_ascii_case(name.as_bytes()) && line.get(name.len()) == Some(&b':')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in all {
            fields.set(name, value);
        }
        fields
    }

    #[test]
    fn what_is_said_inside_counts_more() {
        let outer = fields(&[("A", "1"), ("B", "2")]);
        let all = outer.with(&fields(&[("b", "3"), ("C", "4")]));
        assert_eq!(all, fields(&[("A", "1"), ("b", "3"), ("C", "4")]));
        assert_eq!(all.lines(), b"A: 1\r\nb: 3\r\nC: 4\r\n");
    }

    #[test]
    fn a_field_is_found_by_its_whole_name_in_any_case() {
        let lines = b"Server: x\r\nX-Long: y\r\n";
        assert!(says(lines, "server") && says(lines, "X-LONG"));
        assert!(!says(lines, "X") && !says(lines, "y") && !says(b"", "X"));
    }
}
