//! Header fields that are said once, for many answers.

use gustnado_http::fields::{FieldError, Fields, check_field};
use gustnado_http::response_writer::write_fields;

/// Headers by name, in order. No two of them have the same name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Says one more, or another value of one that was said.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.0.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some(known) => *known = (name.to_owned(), value.to_owned()),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// These, where `inner` does not say otherwise, and then those.
    pub fn with(&self, inner: &Self) -> Self {
        let mut all = self.clone();
        inner.iter().for_each(|(name, value)| all.set(name, value));
        all
    }

    /// Each name with its value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of them can be sent.
    ///
    /// # Errors
    /// The name of the first that cannot, and why.
    pub fn check(&self) -> Result<(), (String, FieldError)> {
        self.iter().try_for_each(|(name, value)| {
            check_field(name, value.as_bytes()).map_err(|error| (name.to_owned(), error))
        })
    }

    /// The same as fields of a message. To be called only if they [can be sent](Self::check).
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in self.iter() {
            fields.add_trusted(name, value.as_bytes());
        }
        fields
    }

    /// Field lines of HTTP/1. To be called only if they [can be sent](Self::check).
    pub fn lines(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        write_fields(&mut lines, &self.fields());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&str, &str)]) -> Headers {
        let mut fields = Headers::default();
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
}
