//! `application/x-www-form-urlencoded`: pairs (WHATWG URL §5).

use super::{FormError, FormLimits, URLENCODED, expect_type};
use crate::body::BodyError;
use crate::request::{Pairs, Request};

/// The pairs of a form, decoded, in the order they were sent.
///
/// `+` is a space, `%` and two digits are a byte, and bytes that are not UTF-8 become U+FFFD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    pairs: Vec<(String, String)>,
}

impl Form {
    fn read(bytes: &[u8], limits: &FormLimits) -> Result<Self, FormError> {
        let mut pairs = Vec::new();
        for (name, value) in Pairs::new(bytes) {
            if pairs.len() == limits.fields_max {
                return Err(FormError::TooManyFields { limit: limits.fields_max });
            }
            pairs.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self { pairs })
    }

    /// Returns the first value of a name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// Returns all values of a name, in order.
    pub fn values<'f>(&'f self, name: &str) -> impl Iterator<Item = &'f str> {
        self.iter().filter(move |pair| pair.0 == name).map(|pair| pair.1)
    }

    /// Returns all pairs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// `application/x-www-form-urlencoded`.
impl Request {
    /// Returns the pairs of a form, in inline and blocking handlers, within the default
    /// [`FormLimits`].
    ///
    /// # Errors
    /// [`FormError`]: 415 if the body has another type, 413 if it is too large.
    pub fn form(&self) -> Result<Form, FormError> {
        expect_type(self, URLENCODED)?;
        let (limits, bytes) = (FormLimits::default(), self.whole_body()?);
        if bytes.len() > limits.value_bytes_max {
            return Err(FormError::ValueTooLarge { limit_bytes: limits.value_bytes_max });
        }
        Form::read(bytes, &limits)
    }

    /// Reads the body of a form, and returns its pairs. For handlers that own their request.
    ///
    /// # Errors
    /// As [`Request::form`], and [`FormError::Body`].
    pub async fn read_form(&mut self, limits: &FormLimits) -> Result<Form, FormError> {
        expect_type(self, URLENCODED)?;
        let limit_bytes = limits.value_bytes_max;
        match self.body_mut().bytes(limit_bytes).await {
            Ok(bytes) => Form::read(&bytes, limits),
            Err(BodyError::TooLarge) => Err(FormError::ValueTooLarge { limit_bytes }),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_decoded_and_in_order() {
        let form = Form::read(b"a=1+2&b=%C3%A4%26&a=&c&=x&%zz=%ff", &FormLimits::default());
        let form = form.expect("it is within the limits");
        let all: Vec<(&str, &str)> = form.iter().collect();
        let decoded =
            [("a", "1 2"), ("b", "\u{e4}&"), ("a", ""), ("c", ""), ("", "x"), ("%zz", "\u{fffd}")];
        assert_eq!(all, decoded);
        assert_eq!(form.values("a").collect::<Vec<_>>(), ["1 2", ""]);
        assert_eq!((form.value("b"), form.value("none")), (Some("\u{e4}&"), None));
    }

    #[test]
    fn pairs_are_counted() {
        let limits = FormLimits { fields_max: 2, ..FormLimits::default() };
        assert_eq!(Form::read(b"a&b&", &limits).map(|form| form.len()).ok(), Some(2));
        let refused = Form::read(b"a&b&c", &limits);
        assert!(matches!(refused, Err(FormError::TooManyFields { limit: 2 })), "{refused:?}");
    }
}
