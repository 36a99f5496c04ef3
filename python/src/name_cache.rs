//! Caches of Python objects for field names and addresses: each is made once.

use std::collections::HashMap;

use pyo3::prelude::*;

use crate::guarded::Guarded;

/// Names as they were sent, and what was made of them.
pub(crate) struct NameCache<T> {
    known: Guarded<HashMap<Box<[u8]>, Py<T>>>,
    /// So many are remembered; clients can make up any number.
    max: usize,
}

impl<T> NameCache<T> {
    pub(crate) fn new(max: usize) -> Self {
        Self { known: Guarded::default(), max }
    }

    /// What was made of a name, or is made now.
    pub(crate) fn of<'py>(
        &self,
        py: Python<'py>,
        sent: &[u8],
        make: impl FnOnce() -> PyResult<Bound<'py, T>>,
    ) -> PyResult<Bound<'py, T>> {
        if let Some(known) = self.known.borrow_mut().get(sent) {
            return Ok(known.bind(py).clone());
        }
        let name = make()?;
        let mut known = self.known.borrow_mut();
        if known.len() < self.max {
            known.insert(sent.into(), name.clone().unbind());
        }
        Ok(name)
    }
}

/// What was made last, of what.
pub(crate) struct LastValue<K, T>(Guarded<Option<(K, Py<T>)>>);

impl<K, T> Default for LastValue<K, T> {
    fn default() -> Self {
        Self(Guarded::default())
    }
}

impl<K: PartialEq, T> LastValue<K, T> {
    /// What was made of `key`, if that came last, or is made now.
    pub(crate) fn of<'py>(
        &self,
        py: Python<'py>,
        key: K,
        make: impl FnOnce() -> PyResult<Bound<'py, T>>,
    ) -> PyResult<Bound<'py, T>> {
        if let Some((last, value)) = &*self.0.borrow_mut()
            && *last == key
        {
            return Ok(value.bind(py).clone());
        }
        let new = make()?;
        let before = self.0.replace(Some((key, new.clone().unbind())));
        drop(before);
        Ok(new)
    }
}
