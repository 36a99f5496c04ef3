//! When certificates end, as pages about the server tell it.

/// When the certificate of a site ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateEnd {
    /// The site's first host name.
    pub host: String,
    /// In seconds since 1970.
    pub not_after_s: i64,
}
