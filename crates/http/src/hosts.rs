//! What belongs to hosts: by name, or by all names below one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Values of hosts. Names are in lower case, without a port and without the root's dot.
#[derive(Debug)]
pub struct HostMap<T, S = RandomState> {
    exact: HashMap<String, T, S>,
    /// `.example.org` for `*.example.org`, the longest first.
    suffixes: Vec<(String, T)>,
}

impl<T, S: Default> Default for HostMap<T, S> {
    fn default() -> Self {
        Self { exact: HashMap::default(), suffixes: Vec::new() }
    }
}

impl<T, S: BuildHasher> HostMap<T, S> {
    /// Sets the value of a host. Returns whether it had one, which is replaced.
    ///
    /// - `host`: `example.org`, or `*.example.org` for all below it.
    pub fn set(&mut self, host: &str, value: T) -> bool {
        let Some(suffix) = host.strip_prefix('*') else {
            return self.exact.insert(host.to_owned(), value).is_some();
        };
        let before = self.suffixes.len();
        self.suffixes.retain(|(known, _)| known != suffix);
        let is_known = self.suffixes.len() < before;
        self.suffixes.push((suffix.to_owned(), value));
        self.suffixes.sort_by_key(|(suffix, _)| Reverse(suffix.len()));
        is_known
    }

    /// Returns the value of a host: its own, or that of the longest name that it is below.
    pub fn get(&self, host: &str) -> Option<&T> {
        let by_suffix = || self.suffixes.iter().find(|(suffix, _)| host.ends_with(&**suffix));
        self.exact.get(host).or_else(|| by_suffix().map(|(_, value)| value))
    }

    /// Returns the name by which a host has its value: its own, or `*.example.org`.
    pub fn name_of(&self, host: &str) -> Option<String> {
        if self.exact.contains_key(host) {
            return Some(host.to_owned());
        }
        let found = self.suffixes.iter().find(|(suffix, _)| host.ends_with(&**suffix));
        found.map(|(suffix, _)| format!("*{suffix}"))
    }

    /// Returns whether no host has a value.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.suffixes.is_empty()
    }

    /// Returns all values.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.exact.values().chain(self.suffixes.iter().map(|(_, value)| value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_before_what_it_is_below_and_the_longest_of_that_counts() {
        let mut map: HostMap<u8> = HostMap::default();
        assert!(map.is_empty());
        for (host, value) in [("*.a", 1), ("*.b.a", 2), ("x.b.a", 3)] {
            assert!(!map.set(host, value), "{host}");
        }
        for (host, found) in
            [("y.a", Some(&1)), ("y.b.a", Some(&2)), ("x.b.a", Some(&3)), ("a", None)]
        {
            assert_eq!(map.get(host), found, "{host}");
        }
        let name = |host| map.name_of(host);
        assert_eq!((name("y.a"), name("x.b.a")), (Some("*.a".into()), Some("x.b.a".into())));
        assert_eq!(name("a"), None);
        assert!(map.set("*.a", 4) && map.set("x.b.a", 5));
        assert_eq!((map.get("y.a"), map.get("x.b.a")), (Some(&4), Some(&5)));
        assert_eq!(map.values().count(), 3);
    }
}
