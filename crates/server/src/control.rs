//! The control socket: a program asks a running server to read its configuration again, and gets
//! the result.
//!
//! It is a Unix socket that its owner alone can open. A client sends the line `reload`; the server
//! sends `taken` or `refused`, then lines for a person, and closes. Clients are served one after
//! another, each within [`REQUEST_WITHIN`] and what the reload takes.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::process::umask;
use thiserror::Error;

/// The time that a client has for its request, and for taking the reply.
pub const REQUEST_WITHIN: Duration = Duration::from_secs(2);
/// The longest request and reply.
const REQUEST_BYTES_MAX: usize = 64;
const REPLY_BYTES_MAX: u64 = 256 << 10;

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadReply {
    /// Whether the configuration is in force.
    pub taken: bool,
    /// What was taken and what was not, and why: lines for a person.
    pub lines: Vec<String>,
}

/// Error of a control socket. Each says what to do.
#[derive(Error)]
#[non_exhaustive]
pub enum ControlError {
    /// There is a file of another kind.
    #[error(
        "{}: expected a socket or nothing, found another file; name another path",
        .path.display()
    )]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// Another process listens there.
    #[error("{}: another server is controlled there; name another path", .path.display())]
    Taken {
        /// The path.
        path: PathBuf,
    },
    /// It cannot be created.
    #[error(
        "{}: cannot be created: {source}; name a path in a folder that may be written to",
        .path.display()
    )]
    Create {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No server answers there.
    #[error(
        "{}: no server is controlled there: {source}; start it with --control {}",
        .path.display(), .path.display()
    )]
    Connect {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The server gave no reply.
    #[error(
        "{}: no reply within {} s; see what the server has printed",
        .path.display(), .within.as_secs()
    )]
    NoReply {
        /// The path.
        path: PathBuf,
        /// How long one was waited for.
        within: Duration,
    },
}

gustnado_tasks::debug_as_display!(ControlError);

/// The server's end of a control socket. Dropping it removes the socket.
///
/// ```no_run
/// use gustnado::Server;
/// use gustnado::control::{ControlSocket, ReloadReply};
///
/// let control = ControlSocket::open("/run/site.sock".as_ref())?;
/// let running = std::sync::Arc::new(Server::from_file("site.toml")?.start()?);
/// let reload = move || {
///     let outcome = Server::from_file("site.toml").map_err(|error| error.to_string());
///     match outcome.and_then(|server| running.reload(server).map_err(|error| error.to_string())) {
///         Ok(reloaded) => ReloadReply { taken: true, lines: vec![format!("{reloaded:?}")] },
///         Err(why) => ReloadReply { taken: false, lines: vec![why] },
///     }
/// };
/// control.serve(reload)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode, so that the socket of a successor is not removed.
    identity: (u64, u64),
}

impl ControlSocket {
    /// Creates the socket with permissions 0600. One that a process has left behind is replaced.
    ///
    /// # Errors
    /// [`ControlError`]: another server or file is there, or it cannot be created.
    pub fn open(path: &Path) -> Result<Self, ControlError> {
        let failed = |source| ControlError::Create { path: path.to_owned(), source };
        match fs::symlink_metadata(path) {
            Ok(meta) if !meta.file_type().is_socket() => {
                return Err(ControlError::NoSocket { path: path.to_owned() });
            }
            Ok(_) => match UnixStream::connect(path) {
                // Its process is gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
                Ok(_) => return Err(ControlError::Taken { path: path.to_owned() }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        // It gets its name when it has its permissions: nobody else can open it in between.
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(format!(".{}", std::process::id()));
        let fresh = PathBuf::from(fresh);
        _ = fs::remove_file(&fresh);
        let before = umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(&fresh);
        umask(before);
        let listener = bound.map_err(failed)?;
        let named = fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600))
            .and_then(|()| fs::rename(&fresh, path))
            .and_then(|()| fs::symlink_metadata(path));
        let meta = named.map_err(|error| {
            _ = fs::remove_file(&fresh);
            failed(error)
        })?;
        Ok(Self { listener, path: path.to_owned(), identity: (meta.dev(), meta.ino()) })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves clients on a thread of its own, which ends with the process.
    ///
    /// - `reload`: reads the configuration again, and returns the result.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn serve(
        &self,
        mut reload: impl FnMut() -> ReloadReply + Send + 'static,
    ) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        let serving = move || {
            loop {
                match listener.accept() {
                    // A client that does not keep to the rules gets no reply.
                    Ok((client, _)) => _ = serve_client(client, &mut reload),
                    // No descriptor is left, for instance.
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        };
        std::thread::Builder::new().name("gust-control".to_owned()).spawn(serving).map(drop)
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.remove();
    }
}

impl ControlSocket {
    /// Removes the socket from the file system, if it is still this one; clients that are connected
    /// get their reply.
    pub fn remove(&self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|meta| (meta.dev(), meta.ino()) == self.identity);
        if is_ours {
            _ = fs::remove_file(&self.path);
        }
    }
}

fn serve_client(
    mut client: UnixStream,
    reload: &mut impl FnMut() -> ReloadReply,
) -> io::Result<()> {
    let request = read_line(&mut client)?;
    let reply = match request.trim_ascii() {
        b"reload" => reload(),
        other => ReloadReply {
            taken: false,
            lines: vec![format!("expected the line reload, found \"{}\"", other.escape_ascii())],
        },
    };
    client.set_write_timeout(Some(REQUEST_WITHIN))?;
    let mut text = String::from(if reply.taken { "taken\n" } else { "refused\n" });
    for line in reply.lines {
        text.push_str(&line.replace('\n', " "));
        text.push('\n');
    }
    client.write_all(text.as_bytes())
}

/// Reads a line, however slowly it comes, within the time of a client.
fn read_line(client: &mut UnixStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + REQUEST_WITHIN;
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < REQUEST_BYTES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        if client.read(&mut byte)? == 0 || byte == *b"\n" {
            break;
        }
        line.push(byte[0]);
    }
    Ok(line)
}

/// Asks the server of a control socket to read its configuration again, and waits for the result.
///
/// # Errors
/// [`ControlError`]: no server is there, or it does not reply.
pub fn ask_reload(path: &Path, within: Duration) -> Result<ReloadReply, ControlError> {
    let no_server = |source| ControlError::Connect { path: path.to_owned(), source };
    let mut server = UnixStream::connect(path).map_err(no_server)?;
    let mut text = String::new();
    let mut ask = || {
        server.set_write_timeout(Some(within))?;
        server.set_read_timeout(Some(within))?;
        server.write_all(b"reload\n")?;
        (&server).take(REPLY_BYTES_MAX).read_to_string(&mut text)
    };
    let no_reply = ControlError::NoReply { path: path.to_owned(), within };
    if ask().is_err() {
        return Err(no_reply);
    }
    let mut lines = text.lines();
    let taken = match lines.next() {
        Some("taken") => true,
        Some("refused") => false,
        _ => return Err(no_reply),
    };
    Ok(ReloadReply { taken, lines: lines.map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.sock");
        (folder, path)
    }

    fn of_lines(taken: bool, lines: &[&str]) -> ReloadReply {
        ReloadReply { taken, lines: lines.iter().map(|&line| line.to_owned()).collect() }
    }

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn a_client_gets_the_result_and_the_socket_is_its_owners() {
        let (folder, path) = place();
        let socket = ControlSocket::open(&path).expect("it is created");
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut count = 0;
        socket
            .serve(move || {
                count += 1;
                of_lines(count == 1, &["one", "two"])
            })
            .expect("a thread");
        for taken in [true, false] {
            let reply = ask_reload(&path, PATIENCE).expect("a reply");
            assert_eq!(reply, of_lines(taken, &["one", "two"]));
        }
        drop(socket);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        let error = ask_reload(&path, PATIENCE).expect_err("no server");
        assert!(error.to_string().contains("no server is controlled there"), "{error}");
    }

    #[test]
    fn a_socket_that_was_left_is_replaced_and_another_servers_is_not() {
        let (_folder, path) = place();
        drop(UnixListener::bind(&path).expect("a socket that is left"));
        let socket = ControlSocket::open(&path).expect("it is replaced");
        let error = ControlSocket::open(&path).expect_err("it is in use");
        assert!(error.to_string().contains("another server is controlled there"), "{error}");
        // That of a successor stays.
        fs::remove_file(&path).expect("removed");
        let successor = ControlSocket::open(&path).expect("created");
        drop(socket);
        assert!(path.exists());
        drop(successor);
        fs::write(&path, "a file").expect("written");
        let error = ControlSocket::open(&path).expect_err("it is a file");
        assert!(error.to_string().contains("found another file"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "a file");
    }

    #[test]
    fn clients_that_say_nothing_or_something_else_hold_nobody_for_long() {
        let (_folder, path) = place();
        let socket = ControlSocket::open(&path).expect("it is created");
        socket.serve(|| of_lines(true, &[])).expect("a thread");
        let silent = UnixStream::connect(&path).expect("it listens");
        let began = Instant::now();
        let mut slow = UnixStream::connect(&path).expect("it listens");
        slow.write_all(&[b'x'; 65]).expect("sent");
        let mut text = String::new();
        slow.set_read_timeout(Some(PATIENCE)).expect("a bound");
        // What was sent and not read may cut the reply.
        _ = slow.read_to_string(&mut text);
        assert!(ask_reload(&path, PATIENCE).expect("a reply").taken);
        assert!(began.elapsed() < 3 * REQUEST_WITHIN, "{:?}", began.elapsed());
        let mut other = UnixStream::connect(&path).expect("it listens");
        other.write_all(b"relaod\n").expect("sent");
        text.clear();
        other.read_to_string(&mut text).expect("a reply");
        assert_eq!(text, "refused\nexpected the line reload, found \"relaod\"\n");
        drop(silent);
    }
}
