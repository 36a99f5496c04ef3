//! Files below a `twisted.web.static.File`, served without Python: found by the same walk through
//! resources, and sent if neither file nor request is special.

use std::io::Read;
use std::os::unix::fs::MetadataExt;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::super::TwistedConnection;
use super::super::plain::PlainRequest;
use super::{Ordinary, is_function};
use crate::regular;

/// Largest file that is read at once; Twisted's producers send larger ones.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Twisted's classes and functions for files.
pub(super) struct FilesApi {
    file: Py<PyAny>,
    get_child: Py<PyAny>,
    create_similar: Py<PyAny>,
    child_with_default: Py<PyAny>,
    make_date: Py<PyAny>,
}

/// A `File`, and the names below it.
type Walked<'py, 'a> = (Bound<'py, PyAny>, &'a [&'a [u8]]);

/// A file with its metadata.
struct ServedFile {
    content: Vec<u8>,
    kind: String,
    /// In seconds since 1970.
    modified: i64,
}

impl FilesApi {
    pub(super) fn new(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let of = |name: &str| source.getattr(name).map(Bound::unbind);
        Ok(Self {
            file: of("file")?,
            get_child: of("get_child")?,
            create_similar: of("create_similar")?,
            child_with_default: of("child_with_default")?,
            make_date: of("make_date")?,
        })
    }

    /// Walks down children that were added explicitly. Returns the `File` where that ends, and the
    /// remaining names.
    fn walk<'py, 'a>(
        &self,
        root: Bound<'py, PyAny>,
        mut names: &'a [&'a [u8]],
    ) -> PyResult<Option<Walked<'py, 'a>>> {
        let (py, mut resource) = (root.py(), root);
        while let Some((name, rest)) = names.split_first() {
            if resource.getattr(intern!(py, "isLeaf"))?.is_truthy()? {
                return Ok(None);
            }
            let step = resource.getattr(intern!(py, "getChildWithDefault"))?;
            if !is_function(&resource, &step, &self.child_with_default)? {
                return Ok(None);
            }
            let children = resource.getattr(intern!(py, "children"))?;
            let Ok(children) = children.cast_exact::<PyDict>() else { return Ok(None) };
            match children.get_item(PyBytes::new(py, name))? {
                Some(child) => resource = child,
                None if resource.get_type().is(&self.file) => return Ok(Some((resource, names))),
                None => return Ok(None),
            }
            names = rest;
        }
        Ok(None)
    }

    /// Reads a file below a `File`. `None` if it is unusual.
    fn read(&self, top: &Bound<'_, PyAny>, names: &[&[u8]]) -> PyResult<Option<ServedFile>> {
        let py = top.py();
        let own = |name, function| is_function(top, &top.getattr(name)?, function);
        if !own(intern!(py, "getChild"), &self.get_child)?
            || !own(intern!(py, "createSimilarFile"), &self.create_similar)?
            || top.getattr(intern!(py, "processors"))?.is_truthy()?
            || !names.iter().all(|name| is_simple(name))
        {
            return Ok(None);
        }
        let Some(kind) = kind_of(top, names.last().copied().unwrap_or_default())? else {
            return Ok(None);
        };
        let folder = top.getattr(intern!(py, "path"))?;
        let Ok(folder) = folder.cast::<PyString>() else { return Ok(None) };
        let mut path = folder.to_str()?.to_owned();
        for name in names {
            path.push('/');
            path.push_str(&String::from_utf8_lossy(name));
        }
        Ok(read_small(&path).map(|(content, modified)| ServedFile { content, kind, modified }))
    }
}

impl Ordinary {
    /// Responds to a request with a file, if it leads to an ordinary one.
    pub(super) fn send_file(
        &self,
        connection: &TwistedConnection,
        channel: &Bound<'_, PyAny>,
        plain: &PlainRequest<'_>,
    ) -> PyResult<bool> {
        let (py, api) = (channel.py(), self.api.get());
        let Some(files) = api.files.get() else { return Ok(false) };
        let is_special = |name: &[u8]| {
            [&b"range"[..], b"if-modified-since", b"connection"]
                .iter()
                .any(|special| name.eq_ignore_ascii_case(special))
        };
        if plain.is_old()
            || plain.method() != b"GET"
            || plain.fields().any(|(name, _)| is_special(name))
        {
            return Ok(false);
        }
        let path = plain.target().split(|byte| *byte == b'?').next().unwrap_or_default();
        let Some(path) = path.strip_prefix(b"/") else { return Ok(false) };
        let parts: Vec<_> = path.split(|byte| *byte == b'/').collect();
        let root = self.site.bind(py).getattr(intern!(py, "resource"))?;
        // Twisted finds what is wrong with a resource.
        let Ok(Some((top, left))) = files.walk(root, &parts) else { return Ok(false) };
        let Ok(Some(found)) = files.read(&top, left) else { return Ok(false) };
        let Some(log) = self.log_of(channel)? else { return Ok(false) };
        let date = files.make_date.bind(py).call1((found.modified,))?;
        let (date, now) = (date.cast_into::<PyBytes>()?, api.date(py)?);
        let mut head = Vec::with_capacity(256);
        let hsts = self.hsts.as_ref().map_or(&b""[..], |hsts| hsts.as_bytes(py));
        let hsts_name = if hsts.is_empty() { "" } else { "\r\nStrict-Transport-Security: " };
        for part in [
            b"HTTP/1.1 200 OK\r\nServer: ",
            api.version.as_bytes(py),
            b"\r\nDate: ",
            now.as_bytes(),
            b"\r\nAccept-Ranges: bytes\r\nContent-Length: ",
            itoa::Buffer::new().format(found.content.len()).as_bytes(),
            b"\r\nContent-Type: ",
            found.kind.as_bytes(),
            b"\r\nLast-Modified: ",
            date.as_bytes(),
            hsts_name.as_bytes(),
            hsts,
            b"\r\n\r\n",
        ] {
            head.extend_from_slice(part);
        }
        channel.setattr(intern!(py, "persistent"), true)?;
        connection.append(py, &[&head, &found.content])?;
        if let Some(log) = log {
            log.write_plain(plain, found.content.len() as u64)?;
        }
        self.touch(channel)?;
        Ok(true)
    }
}

/// Names that are the same in every encoding and have no special meaning in a path.
fn is_simple(name: &[u8]) -> bool {
    let is = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    !name.is_empty() && name[0] != b'.' && name.iter().all(is)
}

/// Returns the result of `getTypeAndEncoding` for a name. `None` if it is encoded, or of unknown
/// type.
fn kind_of(top: &Bound<'_, PyAny>, name: &[u8]) -> PyResult<Option<String>> {
    let py = top.py();
    let name = String::from_utf8_lossy(name);
    let extension = name.rfind('.').map_or("", |dot| &name[dot..]).to_ascii_lowercase();
    let class = top.get_type();
    let encodings = class.getattr(intern!(py, "contentEncodings"))?;
    if encodings.contains(&extension)? {
        return Ok(None);
    }
    let kinds = class.getattr(intern!(py, "contentTypes"))?.cast_into::<PyDict>()?;
    let kind = match kinds.get_item(&extension)? {
        Some(kind) => kind,
        None => top.getattr(intern!(py, "defaultType"))?,
    };
    let kind = kind.extract::<String>().unwrap_or_default();
    let is_word = !kind.is_empty() && kind.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    Ok(is_word.then_some(kind))
}

/// Returns the bytes of a small regular file, and its modification time as Twisted gives it:
/// rounded up.
fn read_small(path: &str) -> Option<(Vec<u8>, i64)> {
    let (file, known) = regular::open(path).ok()??;
    if known.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut content = Vec::with_capacity(usize::try_from(known.len()).ok()?);
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).ok()?;
    if content.len() as u64 != known.len() {
        // It is being changed: Twisted sends the earlier length, and the bytes it finds.
        return None;
    }
    let (seconds, ns) = (known.mtime(), known.mtime_nsec());
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "Python has times as numbers of this kind, and rounds them like this"
    )]
    let modified = (seconds as f64 + 1e-9 * ns as f64).ceil() as i64;
    Some((content, modified))
}
