//! Caches of Python objects for field names and addresses: each is made once.

use std::collections::HashMap;

use pyo3::prelude::*;

use crate::guarded::Guarded;

/// A bounded map from names as received to Python objects.
pub(crate) struct NameCache<T> {
    known: Guarded<HashMap<Box<[u8]>, Py<T>>>,
    /// Maximum size; clients can invent any number of names.
    max: usize,
}

impl<T> NameCache<T> {
    pub(crate) fn new(max: usize) -> Self {
        Self { known: Guarded::default(), max }
    }

    /// Returns the object of a name, made now if needed.
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

/// A cache of one value with its key.
pub(crate) struct LastValue<K, T>(Guarded<Option<(K, Py<T>)>>);

impl<K, T> Default for LastValue<K, T> {
    fn default() -> Self {
        Self(Guarded::default())
    }
}

impl<K: PartialEq, T> LastValue<K, T> {
    /// Returns the value of `key`, made now if the key has changed.
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
