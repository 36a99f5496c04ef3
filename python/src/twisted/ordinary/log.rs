//! Lines of the access log: `HTTPFactory.log` and `combinedLogFormatter`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::super::plain::PlainRequest;
use super::super::words::{HeadWords, escaped};
use super::{Ordinary, is_function};

/// The destination of lines of `combinedLogFormatter`.
pub(super) struct CombinedLog<'py> {
    file: Bound<'py, PyAny>,
    time: Bound<'py, PyString>,
    host: Bound<'py, PyString>,
}

/// The other parts of a line. Bytes are escaped in it.
struct CombinedLogLine<'a> {
    method: &'a [u8],
    uri: &'a [u8],
    version: &'a [u8],
    code: i64,
    sent: u64,
    referer: &'a [u8],
    agent: &'a [u8],
}

impl Ordinary {
    /// Logs a request with its response.
    pub(super) fn log(
        &self,
        channel: &Bound<'_, PyAny>,
        names: &HeadWords,
        request: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = request.py();
        match self.log_of(channel)? {
            Some(None) => Ok(()),
            Some(Some(log)) if self.log_request(&log, names, request)? => Ok(()),
            _ => {
                let factory = channel.getattr(intern!(py, "factory"))?;
                factory.call_method1(intern!(py, "log"), (request,)).map(drop)
            }
        }
    }

    /// Returns the destination of a channel's lines, if there is one. `None` if the factory logs
    /// differently.
    #[expect(clippy::option_option, reason = "there may be no log, and one that is not known")]
    pub(super) fn log_of<'py>(
        &self,
        channel: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Option<CombinedLog<'py>>>> {
        let (py, api) = (channel.py(), self.api.get());
        let factory = channel.getattr_opt(intern!(py, "factory"))?;
        let Some(factory) = factory.filter(|factory| !factory.is_none()) else {
            return Ok(Some(None));
        };
        if !is_function(&factory, &factory.getattr(intern!(py, "log"))?, &api.factory_log)? {
            return Ok(None);
        }
        let file = factory.getattr(intern!(py, "_logFile"))?;
        if file.is_none() {
            return Ok(Some(None));
        }
        let peer = self.peer.bind(py);
        if !factory.getattr(intern!(py, "_logFormatter"))?.is(&api.formatter)
            || !peer.is_instance(api.addresses.bind(py))?
        {
            return Ok(None);
        }
        let time = factory.getattr(intern!(py, "_logDateTime"))?;
        let host = peer.getattr(intern!(py, "host"))?;
        Ok(match (time.cast_into::<PyString>(), host.cast_into::<PyString>()) {
            (Ok(time), Ok(host)) => Some(Some(CombinedLog { file, time, host })),
            _ => None,
        })
    }

    /// Writes the line of a request, unless the formatter should see it.
    fn log_request(
        &self,
        log: &CombinedLog<'_>,
        names: &HeadWords,
        request: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (py, api) = (request.py(), self.api.get());
        let fields = request.getattr(intern!(py, "requestHeaders"))?;
        if !request.getattr(intern!(py, "client"))?.is(&self.peer)
            || !fields.get_type().is(&api.headers)
        {
            return Ok(false);
        }
        let fields = fields.getattr(intern!(py, "_rawHeaders"))?.cast_into::<PyDict>()?;
        let referer = last_of(&fields, &names.spelled.referer)?;
        let agent = last_of(&fields, &names.spelled.user_agent)?;
        let method = request.getattr(intern!(py, "method"))?;
        let uri = request.getattr(intern!(py, "uri"))?;
        let version = request.getattr(intern!(py, "clientproto"))?;
        let (Ok(method), Ok(uri), Ok(version)) =
            (method.cast::<PyBytes>(), uri.cast::<PyBytes>(), version.cast::<PyBytes>())
        else {
            return Ok(false);
        };
        log.write(&CombinedLogLine {
            method: method.as_bytes(),
            uri: uri.as_bytes(),
            version: version.as_bytes(),
            code: request.getattr(intern!(py, "code"))?.extract()?,
            sent: request.getattr(intern!(py, "sentLength"))?.extract()?,
            referer: referer.as_ref().map_or(b"-", |value| value.as_bytes()),
            agent: agent.as_ref().map_or(b"-", |value| value.as_bytes()),
        })?;
        Ok(true)
    }
}

impl CombinedLog<'_> {
    /// Writes the line of a request with a response of that many bytes, without Python.
    pub(super) fn write_plain(&self, plain: &PlainRequest<'_>, sent: u64) -> PyResult<()> {
        let last = |name: &[u8]| {
            let mut values = plain.fields().filter(|(own, _)| own.eq_ignore_ascii_case(name));
            let last = values.by_ref().last().map_or(&b""[..], |(_, value)| value);
            if last.is_empty() { &b"-"[..] } else { last }
        };
        self.write(&CombinedLogLine {
            method: plain.method(),
            uri: plain.target(),
            version: b"HTTP/1.1",
            code: 200,
            sent,
            referer: last(b"referer"),
            agent: last(b"user-agent"),
        })
    }

    fn write(&self, line: &CombinedLogLine<'_>) -> PyResult<()> {
        let CombinedLogLine { method, uri, version, code, sent, referer, agent } = *line;
        let mut length = itoa::Buffer::new();
        let length = if sent == 0 { "-" } else { length.format(sent) };
        let text = format!(
            "\"{}\" - - {} \"{} {} {}\" {code} {length} \"{}\" \"{}\"\n",
            escaped(self.host.to_str()?.as_bytes()),
            self.time.to_str()?,
            escaped(method),
            escaped(uri),
            escaped(version),
            escaped(referer),
            escaped(agent),
        );
        self.file.call_method1(intern!(self.file.py(), "write"), (text,)).map(drop)
    }
}

/// The last value of a field, unless it is empty.
fn last_of<'py>(
    fields: &Bound<'py, PyDict>,
    name: &Py<PyBytes>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let Some(values) = fields.get_item(name)? else { return Ok(None) };
    let values = values.cast_into::<PyList>()?;
    let Some(last) = values.iter().last() else { return Ok(None) };
    Ok(Some(last.cast_into::<PyBytes>()?).filter(|value| !value.as_bytes().is_empty()))
}
