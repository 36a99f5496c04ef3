//! From the fields of a block to a response head, or to trailers (RFC 9113 §8.1, §8.3.2).

use crate::h2::hpack::ENTRY_BYTES;
use crate::h2::request_head::check_field;
use crate::head::HEAD_BYTES_MAX;
use crate::request::write_record;
use crate::response::ResponseHead;
use crate::syntax::decimal;

/// A head, or trailers, in the making.
pub(super) struct ResponseBuilder<'a> {
    /// The records of its fields.
    bytes: &'a mut Vec<u8>,
    bytes_max: usize,
    fields_left: usize,
    status: Option<u16>,
    length: Option<u64>,
    is_trailers: bool,
    is_behind_pseudo: bool,
    /// Why it cannot be taken: the first reason.
    fault: Option<&'static str>,
}

impl<'a> ResponseBuilder<'a> {
    /// - `bytes`: memory, which is cleared.
    /// - `head_bytes_max`, `fields_max`: its limits; each field costs what RFC 9113 §6.5.2 counts.
    pub(super) fn new(
        bytes: &'a mut Vec<u8>,
        (head_bytes_max, fields_max): (usize, usize),
        is_trailers: bool,
    ) -> Self {
        bytes.clear();
        Self {
            bytes,
            bytes_max: head_bytes_max.min(HEAD_BYTES_MAX),
            fields_left: fields_max,
            status: None,
            length: None,
            is_trailers,
            is_behind_pseudo: is_trailers,
            fault: None,
        }
    }

    /// Takes a field. Behind the first fault, nothing is kept.
    #[inline]
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_none() {
            self.fault = self.take(name, value).err();
        }
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        let cost = name.len() + value.len() + ENTRY_BYTES;
        let left = self.bytes_max.checked_sub(cost);
        self.bytes_max = left.ok_or("the head is longer than the limit")?;
        if let [b':', ..] = name {
            return self.pseudo(name, value);
        }
        self.is_behind_pseudo = true;
        let left = self.fields_left.checked_sub(1);
        self.fields_left = left.ok_or("the head has more fields than the limit")?;
        check_field(name, value).map_err(|_| "a field has a wrong name or value")?;
        match name {
            b"content-length" if !self.is_trailers => {
                let length = decimal(value).ok_or("Content-Length is no number")?;
                if self.length.replace(length).is_some_and(|before| before != length) {
                    return Err("Content-Length comes twice");
                }
            }
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => return Err("a field is about an HTTP/1 connection"),
            _ => {}
        }
        write_record(name, value, self.bytes);
        Ok(())
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if self.is_behind_pseudo || name != b":status" || self.status.is_some() {
            return Err("a pseudo field is unknown, comes twice, or stands behind another field");
        }
        let [a @ b'1'..=b'9', b, c] = value else { return Err("the status is no number") };
        if !b.is_ascii_digit() || !c.is_ascii_digit() {
            return Err("the status is no number");
        }
        let digit = |byte: &u8| u16::from(byte - b'0');
        self.status = Some(100 * digit(a) + 10 * digit(b) + digit(c));
        Ok(())
    }

    /// Ends the head.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn finish(self) -> Result<ResponseHead, &'static str> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        match self.status {
            None => Err("the status is missing"),
            // HTTP/2 has no such change of protocols (RFC 9113 §8.6).
            Some(101) => Err("the status is 101"),
            Some(status) => Ok(ResponseHead::of_http2(status, self.length, self.bytes)),
        }
    }

    /// Ends trailers.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn finish_trailers(self) -> Result<(), &'static str> {
        self.fault.map_or(Ok(()), Err)
    }
}
