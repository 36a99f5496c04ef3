//! From the fields of a block to a request head (RFC 9113 §8.2, §8.3).
//!
//! The head is the one that HTTP/1 has: places in bytes. The bytes are the values of the pseudo
//! fields, then one record for each field, as [`crate::request::FieldLines`] reads them.

use crate::fields::HeaderId;
use crate::head::{HEAD_BYTES_MAX, Head, Span};
use crate::limits::Limits;
use crate::method::{METHOD_BYTES_MAX, Method};
use crate::request::{RECORD_BYTES, write_record};
use crate::status::Status;
use crate::syntax::{PATH, TOKEN, VALUE, decimal, is, skip, skip_query};
use crate::target::{self, AuthorityPort, TargetForm};

use super::hpack::ENTRY_BYTES;

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadFault {
    /// It breaks the rules of the protocol: its stream ends with an error (RFC 9113 §8.1.1).
    Malformed(&'static str),
    /// It gets this response, because it is past this limit, if that is why.
    Refused(Status, Option<(HeadLimit, usize)>),
}

/// A limit of heads that a request is past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadLimit {
    /// Of its bytes.
    Bytes,
    /// Of the bytes of its target.
    Target,
    /// Of its fields.
    Fields,
}

use HeadFault::{Malformed, Refused};

/// A head in the making.
pub(super) struct HeadBuilder<'a> {
    bytes: &'a mut Vec<u8>,
    /// The values of the pseudo fields, where the places below are; behind them, those of all
    /// cookie fields, joined.
    spare: &'a mut Vec<u8>,
    limits: &'a Limits,
    head: Head,
    method: Option<Span>,
    path: Option<Span>,
    authority: Option<Span>,
    protocol: Option<Span>,
    has_scheme: bool,
    /// A field that is no pseudo field has come, or the end.
    is_behind_pseudo: bool,
    /// Bytes and lines so far, as they are limited.
    cost: usize,
    count: usize,
    fault: Option<HeadFault>,
}

impl<'a> HeadBuilder<'a> {
    /// - `bytes`, `spare`: memory, which is cleared.
    pub(super) fn new(bytes: &'a mut Vec<u8>, spare: &'a mut Vec<u8>, limits: &'a Limits) -> Self {
        bytes.clear();
        spare.clear();
        Self {
            bytes,
            spare,
            limits,
            head: Head::of_http2(),
            method: None,
            path: None,
            authority: None,
            protocol: None,
            has_scheme: false,
            is_behind_pseudo: false,
            cost: 0,
            count: 0,
            fault: None,
        }
    }

    /// Takes a field. Behind the first fault, nothing is kept.
    #[inline]
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        self.cost += name.len() + value.len() + ENTRY_BYTES;
        let taken = match name {
            _ if self.cost > self.limits.head_bytes_max.min(HEAD_BYTES_MAX) => {
                let past = (HeadLimit::Bytes, self.cost);
                Err(Refused(Status::REQUEST_HEADER_FIELDS_TOO_LARGE, Some(past)))
            }
            [b':', ..] => self.pseudo(name, value),
            _ => self.regular(name, value),
        };
        self.fault = taken.err();
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
        if self.is_behind_pseudo {
            return Err(Malformed("a pseudo field stands behind another field"));
        }
        if name == b":scheme" {
            let is_scheme = value.first().is_some_and(u8::is_ascii_alphabetic)
                && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
            if self.has_scheme || !is_scheme {
                return Err(Malformed("the scheme is none, or comes twice"));
            }
            self.has_scheme = true;
            return Ok(());
        }
        let start = self.spare.len();
        let span = Span::new(start, start + value.len());
        let place = match name {
            b":method" if value.len() > METHOD_BYTES_MAX => {
                return Err(Refused(Status::NOT_IMPLEMENTED, None));
            }
            b":method" if !value.is_empty() && skip(value, TOKEN).is_empty() => &mut self.method,
            b":path" if value.len() > self.limits.target_bytes_max => {
                let past = (HeadLimit::Target, value.len());
                return Err(Refused(Status::URI_TOO_LONG, Some(past)));
            }
            b":path" if !value.is_empty() => &mut self.path,
            b":authority" => &mut self.authority,
            b":protocol" if !value.is_empty() && skip(value, TOKEN).is_empty() => {
                &mut self.protocol
            }
            _ => return Err(Malformed("a pseudo field is unknown, or has a wrong value")),
        };
        if place.replace(span).is_some() {
            return Err(Malformed("a pseudo field comes twice"));
        }
        self.spare.extend_from_slice(value);
        Ok(())
    }

    fn regular(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
        if !self.is_behind_pseudo {
            self.end_pseudo()?;
        }
        self.count += 1;
        if self.count > self.limits.fields_max && name != b"cookie" {
            let past = (HeadLimit::Fields, self.count);
            return Err(Refused(Status::REQUEST_HEADER_FIELDS_TOO_LARGE, Some(past)));
        }
        check_field(name, value)?;
        let record_end = self.bytes.len() + RECORD_BYTES + name.len() + value.len();
        let span = Span::new(record_end - value.len(), record_end);
        match name {
            b"cookie" => {
                if !self.spare.is_empty() {
                    self.count -= 1;
                    self.spare.extend_from_slice(b"; ");
                }
                self.spare.extend_from_slice(value);
                return Ok(());
            }
            b"host" => return self.host(value),
            b"content-length" => {
                let length = decimal(value).ok_or(Malformed("Content-Length is no number"))?;
                if !self.head.set_length(length) {
                    return Err(Malformed("Content-Length comes twice"));
                }
            }
            b"expect" => {
                if !value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(Refused(Status::EXPECTATION_FAILED, None));
                }
                self.head.set_continue();
            }
            b"te" if value != b"trailers" => {
                return Err(Malformed("TE names other than trailers"));
            }
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => return Err(Malformed("a field is about an HTTP/1 connection")),
            b"range" => self.head.keep(HeaderId::Range, span),
            b"if-match" => self.head.keep(HeaderId::IfMatch, span),
            b"if-range" => self.head.keep(HeaderId::IfRange, span),
            b"if-none-match" => self.head.keep(HeaderId::IfNoneMatch, span),
            b"if-modified-since" => self.head.keep(HeaderId::IfModifiedSince, span),
            b"if-unmodified-since" => self.head.keep(HeaderId::IfUnmodifiedSince, span),
            _ => {}
        }
        write_record(name, value, self.bytes);
        Ok(())
    }

    /// Takes a Host field, which says nothing that `:authority` does not say (RFC 9113 §8.3.1).
    fn host(&mut self, value: &[u8]) -> Result<(), HeadFault> {
        match self.head.indexed(HeaderId::Host) {
            Some(known) if known.of(self.bytes).eq_ignore_ascii_case(value) => Ok(()),
            Some(_) => Err(Malformed("Host and :authority differ")),
            None => {
                target::authority(value).ok_or(Malformed("the authority is none"))?;
                write_record(b"host", value, self.bytes);
                let end = self.bytes.len();
                self.head.keep(HeaderId::Host, Span::new(end - value.len(), end));
                Ok(())
            }
        }
    }

    /// Writes `:authority` as the Host that every reader of a request looks for.
    fn write_host(&mut self, authority: Span) -> Result<(), HeadFault> {
        let value = authority.of(self.spare);
        target::authority(value).ok_or(Malformed("the authority is none"))?;
        write_record(b"host", value, self.bytes);
        let end = self.bytes.len();
        self.head.keep(HeaderId::Host, Span::new(end - value.len(), end));
        Ok(())
    }

    /// Checks the pseudo fields, which are all there now, and begins the records.
    fn end_pseudo(&mut self) -> Result<(), HeadFault> {
        self.is_behind_pseudo = true;
        let token = self.method.ok_or(Malformed("the method is missing"))?.of(self.spare);
        let method = Method::from_token(token).unwrap_or(Method::Other);
        // In front of the target, where a method without a name of its own is looked for, and the
        // protocol of a CONNECT. (So no place begins at 0, which would mean that there is none.)
        self.bytes.push(b'\n');
        let (form, target) = match (method, self.protocol) {
            (Method::Connect, None) => self.connect_target()?,
            (Method::Connect, Some(protocol)) => {
                self.bytes.extend_from_slice(protocol.of(self.spare));
                self.head.set_protocol();
                self.path_target(method)?
            }
            (_, Some(_)) => return Err(Malformed("only CONNECT has a protocol")),
            (_, None) => {
                self.bytes.extend_from_slice(token);
                self.path_target(method)?
            }
        };
        let start = self.bytes.len();
        let path = match form {
            TargetForm::Authority => &[],
            _ => target.of(self.spare),
        };
        let path_len = path.len() - skip(path, PATH).len();
        let target = target.of(self.spare);
        self.bytes.extend_from_slice(target);
        self.head.set_line(method, form);
        self.head.set_target(Span::new(start, self.bytes.len()), path_len);
        self.head.begin_records(self.bytes.len());
        if let Some(authority) = self.authority {
            self.write_host(authority)?;
        }
        // Cookies go there now: the method is in the head.
        self.spare.clear();
        self.method = None;
        Ok(())
    }

    /// The target of a CONNECT is an authority with its port (RFC 9113 §8.5).
    fn connect_target(&self) -> Result<(TargetForm, Span), HeadFault> {
        if self.has_scheme || self.path.is_some() {
            return Err(Malformed("CONNECT has neither a scheme nor a path"));
        }
        let authority = self.authority.ok_or(Malformed("CONNECT has no authority"))?;
        match target::authority(authority.of(self.spare)) {
            Some(AuthorityPort::Given) => Ok((TargetForm::Authority, authority)),
            _ => Err(Malformed("the authority of CONNECT is none, or has no port")),
        }
    }

    fn path_target(&self, method: Method) -> Result<(TargetForm, Span), HeadFault> {
        if !self.has_scheme {
            return Err(Malformed("the scheme is missing"));
        }
        let span = self.path.ok_or(Malformed("the path is missing"))?;
        let path = span.of(self.spare);
        let form = match path {
            b"*" if method == Method::Options => TargetForm::Asterisk,
            [b'/', ..] => TargetForm::Origin,
            _ => return Err(Malformed("the path is none")),
        };
        if !skip_query(skip(path, PATH)).is_empty() {
            return Err(Refused(Status::BAD_REQUEST, None));
        }
        Ok((form, span))
    }

    /// Returns whether the method is HEAD, as far as it is known of a head that is refused.
    #[cold]
    pub(super) fn is_head(&self) -> bool {
        match self.method {
            Some(token) => token.of(self.spare) == b"HEAD",
            None => self.head.method() == Method::Head,
        }
    }

    /// Leaves the line of a head that is refused in the bytes, as far as it has come: a log shows
    /// it.
    #[cold]
    pub(super) fn write_line(&mut self) {
        let line = match (self.method, self.path) {
            (Some(method), Some(path)) => {
                [method.of(self.spare), b" ", path.of(self.spare)].concat()
            }
            (None, _) if self.is_behind_pseudo => {
                // A head has two bytes behind its fields, of which it may have none yet.
                self.bytes.extend_from_slice(b"\r\n");
                let view = self.head.on(self.bytes);
                [view.method_token(), b" ", view.target()].concat()
            }
            _ => Vec::new(),
        };
        self.bytes.clear();
        if !line.is_empty() {
            self.bytes.extend_from_slice(&line);
            self.bytes.extend_from_slice(b" HTTP/2.0\n");
        }
    }

    /// Ends the head. It has its fields in the bytes.
    ///
    /// - `has_body`: the stream goes on.
    pub(super) fn finish(&mut self, has_body: bool) -> Result<Head, HeadFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if !self.is_behind_pseudo {
            self.end_pseudo()?;
        }
        if !self.spare.is_empty() {
            write_record(b"cookie", self.spare, self.bytes);
        }
        if self.head.indexed(HeaderId::Host).is_none() {
            return Err(Malformed("the authority is missing"));
        }
        // What follows a CONNECT is no body, but a tunnel's (RFC 9113 §8.5, RFC 8441 §5).
        let has_body = has_body && self.head.method() != Method::Connect;
        if !self.head.end_records(self.bytes, has_body) {
            return Err(Malformed("Content-Length announces a body, and the stream has none"));
        }
        Ok(self.head)
    }
}

/// Checks a field's name and value (RFC 9113 §8.2.1).
#[inline]
pub(super) fn check_field(name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
    let is_name = |byte: &u8| is(*byte, TOKEN) && !byte.is_ascii_uppercase();
    if name.is_empty() || !name.iter().all(is_name) {
        return Err(Malformed("a field name is none, or has capitals"));
    }
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if !skip(value, VALUE).is_empty() || is_space(value.first()) || is_space(value.last()) {
        return Err(Malformed("a field value has a control byte, or space around it"));
    }
    Ok(())
}
