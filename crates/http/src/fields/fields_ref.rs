//! The fields of one response, or those that many share.

use std::ops::Deref;
use std::sync::Arc;

use super::Fields;

/// The fields of a response: its own, or shared with all responses that are made of the same file,
/// which costs no copy unless one of them is changed.
#[derive(Clone, Debug)]
pub enum FieldsRef {
    /// Fields that others use, too.
    Shared(Arc<Fields>),
    /// Fields of this response alone.
    Own(Fields),
}

impl FieldsRef {
    /// An empty list.
    #[inline]
    pub const fn new() -> Self {
        Self::Own(Fields::new())
    }

    /// The list to be changed; shared ones are copied first.
    #[inline]
    pub fn to_mut(&mut self) -> &mut Fields {
        if let Self::Shared(fields) = self {
            *self = Self::Own(Fields::clone(fields));
        }
        match self {
            Self::Own(fields) => fields,
            Self::Shared(_) => unreachable!("copied above"),
        }
    }

    /// Whether these are the shared fields `all`, unchanged.
    pub fn is(&self, all: &Arc<Fields>) -> bool {
        matches!(self, Self::Shared(fields) if Arc::ptr_eq(fields, all))
    }
}

impl Default for FieldsRef {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for FieldsRef {
    type Target = Fields;

    #[inline]
    fn deref(&self) -> &Fields {
        match self {
            Self::Shared(fields) => fields,
            Self::Own(fields) => fields,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_fields_are_copied_when_one_holder_changes_them() {
        let all = Arc::new(Fields::new());
        let (mut one, other) =
            (FieldsRef::Shared(Arc::clone(&all)), FieldsRef::Shared(Arc::clone(&all)));
        one.to_mut().add("A", "b").expect("a good field");
        assert!(!one.is(&all) && other.is(&all));
        assert_eq!((one.len(), other.len()), (1, 0));
    }
}
