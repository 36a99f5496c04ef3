//! The request methods (RFC 9110 §9, RFC 5789).

/// A request's method: one of nine that have a name of their own here, or any other token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Method {
    /// RFC 9110 §9.3.1
    Get,
    /// RFC 9110 §9.3.2
    Head,
    /// RFC 9110 §9.3.3
    Post,
    /// RFC 9110 §9.3.4
    Put,
    /// RFC 9110 §9.3.5
    Delete,
    /// RFC 9110 §9.3.6
    Connect,
    /// RFC 9110 §9.3.7
    Options,
    /// RFC 9110 §9.3.8
    Trace,
    /// RFC 5789 §2
    Patch,
    /// Any other token of 1 to 64 bytes: `PROPFIND`, `QUERY`, `PURGE`. Which one it is stands in
    /// the request: [`crate::request::RequestView::method_token`].
    Other,
}

/// A token longer than this is no method that exists: the longest registered one has 17 bytes. It
/// is refused before it ends, with 501.
pub const METHOD_BYTES_MAX: usize = 64;

impl Method {
    /// Every method that has a name, in the order of the RFC.
    pub const ALL: [Self; 9] = [
        Self::Get,
        Self::Head,
        Self::Post,
        Self::Put,
        Self::Delete,
        Self::Connect,
        Self::Options,
        Self::Trace,
        Self::Patch,
    ];

    /// The number of methods, [`Method::Other`] included.
    pub const COUNT: usize = Self::ALL.len() + 1;

    /// Returns the one of the nine that a token names, exactly as written: methods are
    /// case-sensitive (RFC 9110 §9.1). `None` for any other.
    pub fn from_token(token: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|method| method.as_str().is_some_and(|name| name.as_bytes() == token))
    }

    /// Returns the token, as it stands in a request line. `None` for [`Method::Other`], whose token
    /// only its request has.
    pub const fn as_str(self) -> Option<&'static str> {
        Some(match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
            Self::Patch => "PATCH",
            Self::Other => return None,
        })
    }

    /// Returns whether a request with it requests no change of state (RFC 9110 §9.2.1).
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// Returns whether a request with it may be sent a second time, because twice does what once
    /// does (RFC 9110 §9.2.2).
    pub const fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Self::Put | Self::Delete)
    }
}

#[cfg(test)]
mod tests {
    use super::Method;

    #[test]
    fn a_token_names_its_method_only_in_the_right_case() {
        for method in Method::ALL {
            let name = method.as_str().expect("one of the nine");
            assert_eq!(Method::from_token(name.as_bytes()), Some(method));
            let lower = name.to_ascii_lowercase();
            assert_eq!(Method::from_token(lower.as_bytes()), None);
        }
        assert_eq!(Method::from_token(b""), None);
        assert_eq!(Method::from_token(b"GETS"), None);
    }
}
