//! Options of one listener: what is set before its sockets are bound, and on a Unix socket's file.

use std::fs::Permissions;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, netdevice::name_to_index, sockopt};

use crate::sys::options::bind_to_interface;

/// Options of a listener's sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindOptions {
    /// Connections that may wait in each socket; the kernel cuts it to `net.core.somaxconn`.
    pub backlog: u32,
    /// Whether an IPv6 socket takes IPv6 only; `None` is the system's `net.ipv6.bindv6only`.
    pub v6only: Option<bool>,
    /// Whether the address may be one that the machine does not have yet.
    pub freebind: bool,
    /// The network interface that connections come from, by its name.
    pub device: Option<String>,
    /// Mode of a Unix socket's file; `None` is what the umask leaves.
    pub mode: Option<u32>,
    /// User and group of a Unix socket's file, by their numbers.
    pub owner: (Option<u32>, Option<u32>),
}

impl BindOptions {
    /// Options of a listener that has nothing of its own.
    pub fn of_backlog(backlog: u32) -> Self {
        let owner = (None, None);
        Self { backlog, v6only: None, freebind: false, device: None, mode: None, owner }
    }

    /// Prepares a TCP socket that is not bound yet.
    pub(super) fn prepare(&self, socket: impl AsFd, is_v6: bool) -> Result<(), Errno> {
        if let Some(v6only) = self.v6only.filter(|_| is_v6) {
            sockopt::set_ipv6_v6only(&socket, v6only)?;
        }
        if self.freebind && is_v6 {
            sockopt::set_ipv6_freebind(&socket, true)?;
        } else if self.freebind {
            sockopt::set_ip_freebind(&socket, true)?;
        }
        if let Some(device) = &self.device {
            let index = name_to_index(&socket, device)?;
            let failed = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::PERM);
            bind_to_interface(socket.as_fd(), index).map_err(failed)?;
        }
        Ok(())
    }

    /// Sets owner and mode of a Unix socket's file. Nothing can connect before it listens.
    pub(super) fn own_file(&self, path: &Path) -> io::Result<()> {
        if self.owner != (None, None) {
            chown(path, self.owner.0, self.owner.1)?;
        }
        // Last: a change of the owner may clear bits.
        match self.mode {
            Some(mode) => std::fs::set_permissions(path, Permissions::from_mode(mode)),
            None => Ok(()),
        }
    }
}

/// Returns the kernel's form of a Unix socket's path. One that begins with `@` is abstract: it is
/// in no folder, and ends with its last descriptor.
pub(super) fn unix_address(path: &Path) -> Result<SocketAddrUnix, Errno> {
    match abstract_name(path) {
        Some(name) => SocketAddrUnix::new_abstract_name(name),
        None => SocketAddrUnix::new(path),
    }
}

/// Returns the name of an abstract Unix socket, without its `@`.
pub(super) fn abstract_name(path: &Path) -> Option<&[u8]> {
    path.as_os_str().as_encoded_bytes().strip_prefix(b"@")
}
