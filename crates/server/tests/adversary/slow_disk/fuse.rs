//! A file system whose every operation takes as long as it is told to: a daemon of FUSE, so small
//! that it speaks the kernel's protocol itself (linux/fuse.h, version 7.31).
//!
//! There are endlessly many files: `s0`, `s1` … are small, `l0`, `l1` … large, all of them full of
//! `x`. What is written to them is lost.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};

use crate::harness::wait_until;

pub(crate) const SMALL_BYTES: u64 = 4_000;
pub(crate) const LARGE_BYTES: u64 = 1_500_000;

/// A delay that does not end while a test runs.
const FROZEN_MS: u64 = u64::MAX;
/// How often it is looked whether the delay has changed.
const LOOK_MS: u64 = 5;

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const BATCH_FORGET: u32 = 42;

const ROOT: u64 = 1;
const FIRST_SMALL: u64 = 1_000;
const FIRST_LARGE: u64 = 1_000_000;

const NO_ENTRY: i32 = -2;
const NO_SUCH_CALL: i32 = -38;

/// A mounted file system. Drop it after the server: it goes when the last of its files is closed.
pub(crate) struct SlowFiles {
    at: PathBuf,
    delay_ms: Arc<AtomicU64>,
    daemon: Option<JoinHandle<()>>,
}

impl SlowFiles {
    /// Mounts it; `None` where that cannot be, which is said.
    pub(crate) fn mount(at: &Path) -> Option<Self> {
        let fuse = match OpenOptions::new().read(true).write(true).open("/dev/fuse") {
            Ok(fuse) => fuse,
            Err(error) => return skip(&format!("/dev/fuse: {error}")),
        };
        // (The number is named in the mount's options, so the command must have it too.)
        fcntl_setfd(&fuse, FdFlags::empty()).expect("an open descriptor");
        let options =
            format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", fuse.as_raw_fd());
        let mut mount = Command::new("mount");
        mount.args(["-i", "-t", "fuse", "-o", &options, "slow"]).arg(at).stderr(Stdio::null());
        let mounted = mount.status();
        fcntl_setfd(&fuse, FdFlags::CLOEXEC).expect("an open descriptor");
        if !mounted.is_ok_and(|status| status.success()) {
            return skip("a file system of FUSE cannot be mounted here: it takes root");
        }
        let delay_ms = Arc::new(AtomicU64::new(0));
        let daemon = Daemon { fuse: Arc::new(fuse), delay_ms: Arc::clone(&delay_ms) };
        let daemon = Some(thread::spawn(move || daemon.serve()));
        Some(Self { at: at.to_owned(), delay_ms, daemon })
    }

    /// From now on each operation takes so long, also those that have begun.
    pub(crate) fn delay(&self, delay: Duration) {
        let ms = u64::try_from(delay.as_millis()).expect("a short time");
        self.delay_ms.store(ms, Ordering::SeqCst);
    }

    /// From now on no operation ends.
    pub(crate) fn freeze(&self) {
        self.delay_ms.store(FROZEN_MS, Ordering::SeqCst);
    }
}

impl Drop for SlowFiles {
    fn drop(&mut self) {
        self.delay(Duration::ZERO);
        let unmounted = Command::new("umount").arg("-l").arg(&self.at).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            return eprintln!("{} is still mounted", self.at.display());
        }
        // It ends when the last file is closed. A process that ended before would wait without end:
        // for an answer to that close, which nobody is left to give.
        let daemon = self.daemon.take().expect("dropped once");
        if !thread::panicking() {
            wait_until("all files of the file system are closed", || daemon.is_finished());
        }
    }
}

fn skip(why: &str) -> Option<SlowFiles> {
    eprintln!("skipped: {why}");
    None
}

#[derive(Clone)]
struct Daemon {
    fuse: Arc<File>,
    delay_ms: Arc<AtomicU64>,
}

impl Daemon {
    /// Answers until it is unmounted.
    fn serve(&self) {
        let mut request = vec![0; 1 << 20];
        while let Ok(size) = (&*self.fuse).read(&mut request) {
            let kind = word(&request, 4);
            let (unique, node) = (long(&request, 8), long(&request, 16));
            match kind {
                FORGET | BATCH_FORGET => {}
                INIT => self.reply(unique, 0, &init()),
                kind => {
                    let (daemon, rest) = (self.clone(), request[40..size].to_vec());
                    thread::spawn(move || daemon.answer(kind, unique, node, &rest));
                }
            }
        }
    }

    fn answer(&self, kind: u32, unique: u64, node: u64, rest: &[u8]) {
        let mut waited_ms = 0;
        while waited_ms < self.delay_ms.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(LOOK_MS));
            waited_ms += LOOK_MS;
        }
        match kind {
            LOOKUP => match node_of(rest) {
                Some(node) => {
                    self.reply(unique, 0, &[&entry(node)[..], &attributes(node)].concat());
                }
                None => self.reply(unique, NO_ENTRY, &[]),
            },
            GETATTR | SETATTR => {
                self.reply(unique, 0, &[&[0; 16][..], &attributes(node)].concat());
            }
            OPEN => self.reply(unique, 0, &[0; 16]),
            READ => {
                let (offset, size) = (long(rest, 8), word(rest, 16).into());
                let left = size_of(node).saturating_sub(offset).min(size);
                let left = usize::try_from(left).expect("a short read");
                self.reply(unique, 0, &vec![b'x'; left]);
            }
            WRITE => self.reply(unique, 0, &[&rest[16..20], &[0; 4]].concat()),
            RELEASE | FLUSH => self.reply(unique, 0, &[]),
            _ => self.reply(unique, NO_SUCH_CALL, &[]),
        }
    }

    fn reply(&self, unique: u64, error: i32, data: &[u8]) {
        let size = u32::try_from(16 + data.len()).expect("a short answer");
        let mut reply = size.to_ne_bytes().to_vec();
        reply.extend(error.to_ne_bytes());
        reply.extend(unique.to_ne_bytes());
        reply.extend(data);
        // (Who was interrupted waits no more.)
        _ = (&*self.fuse).write(&reply);
    }
}

/// `fuse_init_out`: version 7.31, nothing that is optional.
fn init() -> Vec<u8> {
    let mut out = Vec::new();
    for word in [7_u32, 31, 1 << 17, 0] {
        out.extend(word.to_ne_bytes());
    }
    out.extend(64_u16.to_ne_bytes()); // requests in the background
    out.extend(48_u16.to_ne_bytes());
    out.extend((1_u32 << 17).to_ne_bytes()); // bytes of a write
    out.extend(1_u32.to_ne_bytes()); // nanoseconds of a time's step
    out.resize(64, 0);
    out
}

/// `fuse_entry_out` without its attributes; nothing of it may be remembered.
fn entry(node: u64) -> Vec<u8> {
    let mut out = node.to_ne_bytes().to_vec();
    out.resize(40, 0);
    out
}

/// `fuse_attr`.
fn attributes(node: u64) -> Vec<u8> {
    let (mode, size) = if node == ROOT { (0o40_755_u32, 0) } else { (0o100_644, size_of(node)) };
    let mut out = Vec::new();
    for long in [node, size, size / 512, 1_600_000_000, 1_600_000_000, 1_600_000_000] {
        out.extend(long.to_ne_bytes());
    }
    for word in [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0] {
        out.extend(word.to_ne_bytes());
    }
    out
}

fn size_of(node: u64) -> u64 {
    if node < FIRST_LARGE { SMALL_BYTES } else { LARGE_BYTES }
}

fn node_of(name: &[u8]) -> Option<u64> {
    let name = std::str::from_utf8(name).ok()?.trim_end_matches('\0');
    let number = |text: &str| text.parse::<u64>().ok();
    match (name.strip_prefix('s').and_then(number), name.strip_prefix('l').and_then(number)) {
        (Some(small), _) => Some(FIRST_SMALL + small),
        (_, Some(large)) => Some(FIRST_LARGE + large),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
