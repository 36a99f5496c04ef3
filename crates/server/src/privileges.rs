//! Root's privileges: which account a server changes to once it listens, and the change itself.
//!
//! [`lock`] runs before the first thread is started, and all threads inherit it. [`Account::enter`]
//! runs once everything that needs root is open. It calls the C library, which makes every thread
//! of the process change; the system call itself changes one thread only.

use std::ffi::CString;
use std::fmt::Write as _;
use std::{fs, io};

use nix::errno::Errno;
use nix::unistd::{Gid, Group, Uid, User, geteuid, getgid, getuid, initgroups, setgid, setgroups};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs};
use thiserror::Error;

/// Error of a change to another account: expected, found, remedy.
#[derive(Error)]
#[non_exhaustive]
pub enum UserError {
    /// The machine has no such user.
    #[error(
        "--user {text}: expected a user of this machine, found none called {name}; \
         `getent passwd` lists them, and `useradd --system {name}` adds one"
    )]
    UnknownUser {
        /// The setting's value.
        text: String,
        /// The name in it.
        name: String,
    },
    /// The machine has no such group.
    #[error(
        "--user {text}: expected a group of this machine, found none called {name}; \
         `getent group` lists them"
    )]
    UnknownGroup {
        /// The setting's value.
        text: String,
        /// The name in it.
        name: String,
    },
    /// A number without an account has no group.
    #[error(
        "--user {text}: expected a group too, for user {text} has no account that names one; \
         write {text}:GROUP"
    )]
    NoGroup {
        /// The setting's value.
        text: String,
    },
    /// The user is root, or its group root's.
    #[error(
        "--user {text}: expected an account without privileges, found {what}; name another one, \
         or leave --user out to stay root"
    )]
    Privileged {
        /// The setting's value.
        text: String,
        /// What is root's.
        what: &'static str,
    },
    /// Only root may change to another user.
    #[error(
        "--user {text}: expected to be started by root, found user {uid}; start it as root, or \
         leave --user out"
    )]
    NotRoot {
        /// The setting's value.
        text: String,
        /// The user that started the process.
        uid: u32,
    },
    /// The kernel or the user database refused.
    #[error("--user {text}: {step} failed: {error}; {REFUSED}")]
    Refused {
        /// The setting's value.
        text: String,
        /// What was tried.
        step: &'static str,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// A thread has kept privileges.
    #[error(
        "--user {text}: expected every thread without privileges, found {found}; start no thread \
         with credentials of its own before the server"
    )]
    Kept {
        /// The setting's value.
        text: String,
        /// The thread, and what it has.
        found: String,
    },
}

const REFUSED: &str =
    "a container needs the capabilities SETUID and SETGID for it, or the right user at its start";

/// A user without privileges, with its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// The setting's value.
    text: String,
    /// Its name, if it has one.
    name: Option<CString>,
    uid: Uid,
    gid: Gid,
}

impl Account {
    /// Returns the numbers of its user and its group.
    pub(crate) fn ids(&self) -> (u32, u32) {
        (self.uid.as_raw(), self.gid.as_raw())
    }

    /// Finds the account of `NAME`, `NAME:GROUP`, or numbers in their place.
    pub(crate) fn find(text: &str) -> Result<Self, UserError> {
        let (uid, found, group) = parts_of(text)?;
        let gid = match (group, &found) {
            (Some(group), _) => group,
            (None, Some(found)) => found.gid,
            (None, None) => return Err(UserError::NoGroup { text: text.to_owned() }),
        };
        let root = |what| UserError::Privileged { text: text.to_owned(), what };
        if uid.is_root() {
            return Err(root("root"));
        }
        if gid.as_raw() == 0 {
            return Err(root("root's group"));
        }
        let name = found.and_then(|user| CString::new(user.name).ok());
        Ok(Self { text: text.to_owned(), name, uid, gid })
    }

    /// Returns whether the process runs as this account.
    pub(crate) fn is_current(&self) -> bool {
        (getuid(), geteuid(), getgid()) == (self.uid, self.uid, self.gid)
    }

    /// Checks whether this process may change to the account.
    pub(crate) fn check(&self) -> Result<(), UserError> {
        if geteuid().is_root() || self.is_current() {
            return Ok(());
        }
        Err(UserError::NotRoot { text: self.text.clone(), uid: geteuid().as_raw() })
    }

    /// Changes every thread of the process to the account, for good: its user, its group, its
    /// supplementary groups and no others, no capabilities.
    pub(crate) fn enter(&self) -> Result<(), UserError> {
        self.check()?;
        if !self.is_current() {
            let step = |step| move |error| refused(&self.text, step, error);
            // The groups first: without root's user they could not be changed.
            match &self.name {
                Some(name) => initgroups(name, self.gid),
                None => setgroups(&[self.gid]),
            }
            .map_err(step("setting its groups"))?;
            setgid(self.gid).map_err(step("changing to its group"))?;
            nix::unistd::setuid(self.uid).map_err(step("changing to it"))?;
        }
        self.verify()
    }

    /// Checks what the kernel says of each thread: a thread that was not started through the C
    /// library would have kept root's.
    fn verify(&self) -> Result<(), UserError> {
        let kept = |found| UserError::Kept { text: self.text.clone(), found };
        let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        for thread in threads {
            // A thread may end meanwhile; without /proc there is nothing to read.
            let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
            if let Some(wrong) = self.wrong_in(&status) {
                return Err(kept(wrong));
            }
        }
        Ok(())
    }

    /// Returns what a thread has too much, by its status.
    fn wrong_in(&self, status: &str) -> Option<String> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches(':').trim())
        };
        let (user, group) = (self.uid.to_string(), self.gid.to_string());
        let is_all = |text: &str, id: &str| text.split_whitespace().all(|one| one == id);
        let no_caps = |text: &str| text.bytes().all(|digit| digit == b'0');
        let is_right = |name: &str, text: &str| match name {
            "Uid" => is_all(text, &user),
            "Gid" => is_all(text, &group),
            _ => no_caps(text),
        };
        let wrong = ["Uid", "Gid", "CapEff", "CapPrm"].into_iter().find_map(|name| {
            Some((name, field(name)?)).filter(|(name, text)| !is_right(name, text))
        });
        wrong.map(|(name, text)| {
            let mut found = format!("thread {}", field("Name").unwrap_or("?"));
            _ = write!(
                found,
                " with {name} {}",
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            );
            found
        })
    }
}

/// Keeps this thread, and those that it starts from now on, from gaining privileges: neither a
/// set-user-ID program nor one with capabilities gives any.
pub(crate) fn lock(account: &Account) -> Result<(), UserError> {
    // Not all root users may (CAP_SETPCAP). Without privileges to gain, the set means nothing.
    for capability in CapabilitySet::all().iter() {
        _ = remove_capability_from_bounding_set(capability);
    }
    let failed = |error: rustix::io::Errno| UserError::Refused {
        text: account.text.clone(),
        step: "no_new_privs",
        error: error.into(),
    };
    set_no_new_privs(true).map_err(failed)
}

/// Returns the numbers of `NAME` or `NAME:GROUP`, if the machine knows them.
pub(crate) fn owner(text: &str) -> Option<(Option<u32>, Option<u32>)> {
    let (user, _, group) = parts_of(text).ok()?;
    Some((Some(user.as_raw()), group.map(Gid::as_raw)))
}

/// Returns the user of `NAME`, `NAME:GROUP` or numbers in their place, its account if it has one,
/// and the group that is named.
fn parts_of(text: &str) -> Result<(Uid, Option<User>, Option<Gid>), UserError> {
    let (user, group) = text.split_once(':').map_or((text, None), |(u, g)| (u, Some(g)));
    let found = user_called(user).map_err(|error| refused(text, "looking it up", error))?;
    let number = || user.parse().ok().map(Uid::from_raw);
    let unknown = || UserError::UnknownUser { text: text.to_owned(), name: user.to_owned() };
    let uid = found.as_ref().map(|user| user.uid).or_else(number).ok_or_else(unknown)?;
    let group = group.map(|group| group_called(text, group)).transpose()?;
    Ok((uid, found, group))
}

fn user_called(name: &str) -> Result<Option<User>, Errno> {
    match (User::from_name(name)?, name.parse()) {
        (None, Ok(number)) => User::from_uid(Uid::from_raw(number)),
        (found, _) => Ok(found),
    }
}

fn group_called(text: &str, name: &str) -> Result<Gid, UserError> {
    let found = Group::from_name(name).map_err(|error| refused(text, "looking it up", error))?;
    let number = || name.parse().ok().map(Gid::from_raw);
    let unknown = || UserError::UnknownGroup { text: text.to_owned(), name: name.to_owned() };
    found.map(|group| group.gid).or_else(number).ok_or_else(unknown)
}

fn refused(text: &str, step: &'static str, error: Errno) -> UserError {
    UserError::Refused { text: text.to_owned(), step, error: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_name_and_by_number() {
        let account = Account::find("nobody").expect("every machine has it");
        let number = account.uid.to_string();
        assert_eq!(Account::find(&number).expect("the same").name, account.name);
        let other = Account::find(&format!("{number}:1")).expect("a group's number");
        assert_eq!((other.uid, other.gid), (account.uid, Gid::from_raw(1)));
    }

    #[test]
    fn mistakes_say_what_was_expected_and_found() {
        let line = |text: &str| Account::find(text).expect_err(text).to_string();
        assert!(line("no-such").starts_with(
            "--user no-such: expected a user of this machine, found none called no-such; "
        ));
        assert!(line("nobody:no-such").contains("found none called no-such; `getent group`"));
        assert!(line("54321").contains("write 54321:GROUP"));
        assert!(line("root").contains("found root; name another one"));
        assert!(line("nobody:0").contains("found root's group"));
    }

    #[test]
    fn a_thread_that_kept_something_is_named() {
        let account = Account::find("65534:65534").expect("numbers need no account");
        let status = "Name:\tworker\nUid:\t65534\t65534\t65534\t65534\n\
                      Gid:\t65534\t65534\t65534\t65534\nCapPrm:\t0000\nCapEff:\t0000\n";
        assert_eq!(account.wrong_in(status), None);
        let saved = status.replace("Uid:\t65534\t65534\t65534", "Uid:\t65534\t65534\t0");
        let found = account.wrong_in(&saved).expect("root is saved");
        assert_eq!(found, "thread worker with Uid 65534 65534 0 65534");
        let capable = status.replace("CapEff:\t0000", "CapEff:\t0400");
        assert_eq!(account.wrong_in(&capable), Some("thread worker with CapEff 0400".to_owned()));
    }
}
