//! Responds to an ordinary request: writes, logs and finishes it.

use pyo3::exceptions::PyOSError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::super::TwistedConnection;
use super::super::timeout::TwistedTimeout;
use super::super::words::HeadWords;
use super::{Ordinary, is_function, raw_of};

/// Statuses without content, which `Request.write` handles differently.
fn has_content(code: i64) -> bool {
    (200..600).contains(&code) && !matches!(code, 204 | 205 | 304)
}

impl Ordinary {
    /// Replaces the rest of `server.Request.render`: `write` and `finish`. Returns false if
    /// anything is unusual.
    pub(super) fn finish(
        &self,
        connection: &TwistedConnection,
        channel: &Bound<'_, PyAny>,
        names: &HeadWords,
        request: &Bound<'_, PyAny>,
        body: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let py = request.py();
        let Ok(body) = body.cast_exact::<PyBytes>() else { return Ok(false) };
        if !self.is_untouched(names, request)? {
            return Ok(false);
        }
        let length = body.as_bytes().len();
        let Some(head) = make_head(names, request, length)? else { return Ok(false) };
        request.setattr(intern!(py, "startedWriting"), 1)?;
        connection.append(py, &[&head, body.as_bytes()])?;
        request.setattr(intern!(py, "sentLength"), body.as_bytes().len())?;
        if let Err(error) = self.end(channel, names, request) {
            self.fail(request, error)?;
        }
        Ok(true)
    }

    /// Returns whether `write` and `finish` would do nothing unusual.
    fn is_untouched(&self, names: &HeadWords, request: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, api) = (request.py(), self.api.get());
        let is = |name| request.getattr(name)?.is_truthy();
        let is_none = |name| Ok::<_, PyErr>(request.getattr(name)?.is_none());
        let method = request.getattr(intern!(py, "method"))?;
        Ok(names.is_usual_method(&method)
            && !is(intern!(py, "startedWriting"))?
            && !is(intern!(py, "finished"))?
            && !is(intern!(py, "_disconnected"))?
            && !is(intern!(py, "cookies"))?
            && !is(intern!(py, "queued"))?
            && is_none(intern!(py, "_encoder"))?
            && is_none(intern!(py, "lastModified"))?
            && is_none(intern!(py, "etag"))?
            && is_none(intern!(py, "producer"))?
            && is_function(request, &request.getattr(intern!(py, "write"))?, &api.request_write)?
            && is_function(request, &request.getattr(intern!(py, "finish"))?, &api.request_finish)?)
    }

    /// Replaces the rest of `http.Request.finish`, and `HTTPChannel.requestDone`.
    fn end(
        &self,
        channel: &Bound<'_, PyAny>,
        names: &HeadWords,
        request: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = request.py();
        self.log(channel, names, request)?;
        request.setattr(intern!(py, "finished"), 1)?;
        channel.getattr(intern!(py, "requests"))?.del_item(0)?;
        if !self.reads.bind(py).contains(&self.fd)? {
            let server = channel.getattr(intern!(py, "_networkProducer"))?;
            server.call_method0(intern!(py, "resumeProducing"))?;
        }
        if channel.getattr(intern!(py, "persistent"))?.is_truthy()? {
            channel.setattr(intern!(py, "_handlingRequest"), false)?;
            self.wait_again(channel)?;
            channel.setattr(intern!(py, "line_mode"), 1)?;
            let waiting = channel.getattr(intern!(py, "_dataBuffer"))?;
            if waiting.is_truthy()? {
                // A resource has run the reactor, and more bytes have arrived meanwhile.
                let waiting =
                    PyBytes::new(py, b"").call_method1(intern!(py, "join"), (waiting,))?;
                channel.setattr(intern!(py, "_dataBuffer"), PyList::empty(py))?;
                channel.call_method1(intern!(py, "setLineMode"), (waiting,))?;
            }
        } else {
            channel.call_method0(intern!(py, "loseConnection"))?;
        }
        request.delattr(intern!(py, "channel"))?;
        let content = request.getattr(intern!(py, "content"))?;
        if !content.is_none() {
            match content.call_method0(intern!(py, "close")) {
                Err(error) if !error.is_instance_of::<PyOSError>(py) => return Err(error),
                _ => request.delattr(intern!(py, "content"))?,
            }
        }
        let told = request.getattr(intern!(py, "notifications"))?;
        if told.is_truthy()? {
            for deferred in told.try_iter()? {
                deferred?.call_method1(intern!(py, "callback"), (py.None(),))?;
            }
            request.setattr(intern!(py, "notifications"), PyList::empty(py))?;
        }
        Ok(())
    }

    /// Restarts the idle time-out.
    pub(super) fn touch(&self, channel: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = channel.py();
        let call = channel.getattr(intern!(py, "_TimeoutMixin__timeoutCall"))?;
        let idle = channel.getattr(intern!(py, "timeOut"))?;
        match &self.timeout {
            Some(timeout) if call.is(timeout) && !idle.is_none() => {
                TwistedTimeout::start(timeout.bind(py), idle.extract()?)
            }
            _ => channel.call_method0(intern!(py, "resetTimeout")).map(drop),
        }
    }

    /// Resets the idle time-out.
    fn wait_again(&self, channel: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = channel.py();
        let saved = channel.getattr(intern!(py, "_savedTimeOut"))?;
        if !saved.is_truthy()? {
            return Ok(());
        }
        let call = channel.getattr(intern!(py, "_TimeoutMixin__timeoutCall"))?;
        match &self.timeout {
            Some(timeout) if call.is_none() && timeout.get().has_begun() => {
                channel.setattr(intern!(py, "timeOut"), &saved)?;
                TwistedTimeout::start(timeout.bind(py), saved.extract()?)?;
                channel.setattr(intern!(py, "_TimeoutMixin__timeoutCall"), timeout)
            }
            _ => channel.call_method1(intern!(py, "setTimeout"), (saved,)).map(drop),
        }
    }
}

fn has_one(fields: &Bound<'_, PyDict>, name: &Py<PyBytes>) -> PyResult<bool> {
    fields.get_item(name)?.map_or(Ok(false), |values| values.is_truthy())
}

/// Returns whether it can be written as a field value as it is.
fn is_line(value: &Bound<'_, PyAny>) -> bool {
    value
        .cast::<PyBytes>()
        .is_ok_and(|value| !value.as_bytes().contains(&b'\n') && !value.as_bytes().contains(&b'\r'))
}

/// Encodes the head of a response with content of that many bytes, with fields in the order of
/// Twisted's functions. `None` if they should write it themselves.
fn make_head(
    names: &HeadWords,
    request: &Bound<'_, PyAny>,
    length: usize,
) -> PyResult<Option<Vec<u8>>> {
    let (py, spelled) = (request.py(), &names.spelled);
    let code: i64 = request.getattr(intern!(py, "code"))?.extract()?;
    let reason = request.getattr(intern!(py, "code_message"))?;
    let version = request.getattr(intern!(py, "clientproto"))?;
    let (Ok(reason), Ok(version)) =
        (reason.cast_exact::<PyBytes>(), version.cast_exact::<PyBytes>())
    else {
        return Ok(None);
    };
    let fields = raw_of(request, intern!(py, "responseHeaders"))?;
    let kind = request.getattr(intern!(py, "defaultContentType"))?;
    let needs_kind = length > 0 && !kind.is_none() && !has_one(&fields, &spelled.content_type)?;
    if !has_content(code) || (needs_kind && !is_line(&kind)) {
        return Ok(None);
    }
    let mut digits = itoa::Buffer::new();
    let digits = PyBytes::new(py, digits.format(length).as_bytes());
    fields.set_item(&spelled.content_length, PyList::new(py, [digits])?)?;
    if needs_kind {
        fields.set_item(&spelled.content_type, PyList::new(py, [kind])?)?;
    }
    let mut head = Vec::with_capacity(256);
    head.extend_from_slice(version.as_bytes());
    head.push(b' ');
    head.extend_from_slice(itoa::Buffer::new().format(code).as_bytes());
    head.push(b' ');
    head.extend_from_slice(reason.as_bytes());
    head.extend_from_slice(b"\r\n");
    let is_plain = add_fields(&mut head, &fields);
    head.extend_from_slice(b"\r\n");
    Ok(is_plain.then_some(head))
}

/// Adds all lines of fields. Returns whether they are valid.
fn add_fields(head: &mut Vec<u8>, fields: &Bound<'_, PyDict>) -> bool {
    for (name, values) in fields {
        let (Ok(name), Ok(values)) = (name.cast::<PyBytes>(), values.cast::<PyList>()) else {
            return false;
        };
        for value in values {
            let Ok(value) = value.cast_into::<PyBytes>() else { return false };
            for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
    }
    true
}
