//! Whether a client speaks HTTP/2.

/// How a client uses HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http2Use {
    /// Never.
    Never,
    /// With servers that choose it by ALPN (RFC 9113 §3.2), which needs https. Others are asked by
    /// HTTP/1.1.
    #[default]
    ByAlpn,
    /// Always: https servers have to choose it, and http ones are known to speak it (prior
    /// knowledge, RFC 9113 §3.3).
    Always,
}

/// The name of HTTP/2 in ALPN.
#[cfg(feature = "tls")]
pub(super) const H2: &[u8] = b"h2";
