//! Header fields of many responses.

use gustnado_http::fields::{FieldError, Fields, check_field};
use gustnado_http::response_writer::write_fields;

/// Headers by name, in order. No two of them have the same name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Adds a header, or replaces the value of one that is there.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.0.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some(known) => *known = (name.to_owned(), value.to_owned()),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// Returns these headers overridden and extended by `inner`.
    pub fn with(&self, inner: &Self) -> Self {
        let mut all = self.clone();
        inner.iter().for_each(|(name, value)| all.set(name, value));
        all
    }

    /// Returns each name with its value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether all of them can be sent.
    ///
    /// # Errors
    /// The name of the first that cannot, and why.
    pub fn check(&self) -> Result<(), (String, FieldError)> {
        self.iter().try_for_each(|(name, value)| {
            check_field(name, value.as_bytes()).map_err(|error| (name.to_owned(), error))
        })
    }

    /// Returns them as fields of a message. To be called only if they [can be sent](Self::check).
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in self.iter() {
            fields.add_trusted(name, value.as_bytes());
        }
        fields
    }

    /// Returns field lines of HTTP/1. To be called only if they [can be sent](Self::check).
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
