//! What `--user` means for the rest of the run: what its user cannot do later, found by trying.

use crate::arguments::ServeOptions;
use crate::root;
use gustnado::config::{Config, ListenSpec};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::geteuid;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the line for a server that runs as root and could do without.
pub(crate) fn root_line(config: &Config) -> Option<String> {
    (config.user.is_empty() && geteuid().is_root()).then(|| {
        "it runs as root; --user NAME drops root's privileges once it listens (--quiet hides this)"
            .to_owned()
    })
}

/// Returns what cannot work as the user of the settings. The process has already changed to it.
pub(crate) fn cannot_later(options: &ServeOptions) -> Vec<String> {
    let config = &options.settings.config;
    let user = config.user.as_str();
    if user.is_empty() {
        return Vec::new();
    }
    let folder = config.root.as_deref().filter(|root| root::check(root).is_err());
    let folder = folder.map(|root| {
        let root = root.display();
        format!(
            "--user {user}: expected to read the folder {root}, found no permission, so its files \
             get no 200; `chmod -R o+rX {root}`, or `chown -R` it to {user}"
        )
    });
    let log = config.access_log.as_deref().filter(|log| !is_stream(log));
    let log = log.and_then(|log| log_line(user, log));
    let sockets = unix_sockets(config).into_iter().filter_map(|path| socket_line(user, &path));
    let spool = config.body_spool.as_deref().and_then(|folder| spool_line(user, folder));
    folder
        .into_iter()
        .chain(log)
        .chain(spool)
        .chain(sockets)
        .chain(reload_line(options, user))
        .collect()
}

/// Says whether a check can try the settings as their user. Only root may change to it, and the
/// process stays that user.
pub(crate) fn try_as_user(options: &ServeOptions) -> Vec<String> {
    let user = options.settings.config.user.as_str();
    if user.is_empty() {
        return Vec::new();
    }
    match gustnado::drop_privileges(user) {
        Ok(()) => cannot_later(options),
        Err(error) => vec![error.to_string()],
    }
}

/// HUP reads the file, and whatever it names, as the user.
fn reload_line(options: &ServeOptions, user: &str) -> Option<String> {
    let file = options.file()?;
    let wrong = match File::open(file) {
        Err(error) => Some(format!("{}: {error}", file.display())),
        Ok(_) => match options.try_again() {
            Err(refused) => refused.line.lines().next().map(str::to_owned),
            Ok(again) => again.server().check().err().map(|error| again.line(&error)),
        },
    };
    let wrong = wrong?;
    Some(format!(
        "--user {user}: expected to read everything again at HUP, found {wrong}; let {user} read \
         it, or restart instead of HUP"
    ))
}

/// USR1 opens the log again: the same file, or a new one where it was.
fn log_line(user: &str, log: &Path) -> Option<String> {
    let found = match may(log, Access::WRITE_OK) {
        Ok(()) => return None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            may(folder_of(log), Access::WRITE_OK | Access::EXEC_OK).err()?
        }
        Err(error) => error,
    };
    let log = log.display();
    Some(format!(
        "--user {user}: expected to open the access log {log} again at USR1, found {found}, so \
         lines would stay in the old file; `chown {user} {log}`, and let logrotate `create 0640 \
         {}`",
        user.replace(':', " ")
    ))
}

/// Long bodies of requests are written to files in the folder.
fn spool_line(user: &str, folder: &Path) -> Option<String> {
    let found = may(folder, Access::WRITE_OK | Access::EXEC_OK).err()?;
    let folder = folder.display();
    Some(format!(
        "--user {user}: expected to write long request bodies to {folder}, found {found}, so they \
         stay in memory; `chown {user} {folder}`"
    ))
}

/// The end of the server removes the socket's file.
fn socket_line(user: &str, socket: &Path) -> Option<String> {
    let folder = folder_of(socket);
    let found = may(folder, Access::WRITE_OK | Access::EXEC_OK).err()?;
    let (socket, folder) = (socket.display(), folder.display());
    Some(format!(
        "--user {user}: expected to remove {socket} at the end, found {folder}: {found}, so it \
         stays until the next start; use a folder of {user}'s, such as systemd's RuntimeDirectory"
    ))
}

fn unix_sockets(config: &Config) -> Vec<PathBuf> {
    let path = |text: &String| {
        let address = ListenSpec::parse(text).ok()?.address;
        let path = address.strip_prefix("unix:").filter(|path| !path.starts_with('@'));
        path.map(PathBuf::from)
    };
    let uds = config.uds.clone().filter(|_| config.listen.is_empty());
    config.listen.iter().filter_map(path).chain(uds).collect()
}

fn may(path: &Path, access: Access) -> io::Result<()> {
    // As the process is now, and not as it was started.
    Ok(accessat(CWD, path, access, AtFlags::EACCESS)?)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns whether it is standard output, or one of the streams under `/dev`.
fn is_stream(log: &Path) -> bool {
    log == Path::new("-") || log.starts_with("/dev")
}
