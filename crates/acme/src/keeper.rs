//! Keeps a certificate valid: the thread that does what is due.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::attempt::{advice, attempt, now_s};
use crate::authority::Authority;
use crate::certificate::{HeldCertificate, placeholder};
use crate::error::AcmeError;
use crate::schedule::{AcmeState, DueAction};
use crate::settings::AcmeSettings;
use crate::store::{CertificateStore, CertificateStoreError};

/// The longest wait between two looks: the clock may jump, and others may change the folder.
const LOOK_S: i64 = 60;
/// Attempts again at once that an authority spoils by refusing its own nonces.
const NONCE_TRIES: u32 = 2;
/// The wait while another process is at it.
const OTHERS_S: i64 = 10;

/// Hears of attempts.
pub trait AcmeObserver: Send {
    /// A certificate was obtained.
    fn obtained(&self, line: &str);
    /// An attempt has failed.
    fn failed(&self, line: &str);
}

/// Keeps the certificate of a folder valid.
pub struct CertificateKeeper {
    settings: AcmeSettings,
    store: CertificateStore,
    authority: Authority,
    /// The state that could not be written: what it says about the next attempt counts all the
    /// same.
    unsaved: RefCell<Option<AcmeState>>,
}

impl CertificateKeeper {
    /// Opens the folder. If there is no certificate that can be used, a placeholder is put there,
    /// so that the server can start.
    ///
    /// # Errors
    /// [`AcmeError`].
    pub fn open(settings: AcmeSettings) -> Result<Self, AcmeError> {
        let store = CertificateStore::open(&settings.folder)?;
        let held = HeldCertificate::read(&store.certificate());
        let fits = |held: &HeldCertificate| {
            (held.is_placeholder && held.has(&settings.names))
                || (!held.is_placeholder && held.not_after_s > now_s())
        };
        if !held.as_ref().is_some_and(fits) {
            let pem = placeholder(&settings.names)?;
            store.write_bytes("certificate.pem", pem.as_bytes())?;
        }
        let authority = Authority::new(&settings);
        Ok(Self { settings, store, authority, unsaved: RefCell::default() })
    }

    /// Returns the folder.
    pub fn store(&self) -> &CertificateStore {
        &self.store
    }

    /// Does what is due. Returns for how many seconds nothing is.
    ///
    /// - `now_s`: seconds since 1970.
    ///
    /// # Errors
    /// [`CertificateStoreError`]: the folder cannot be used.
    pub fn step(
        &self,
        observer: &dyn AcmeObserver,
        now_s: i64,
    ) -> Result<i64, CertificateStoreError> {
        let due = || {
            let state = self.state();
            let held = HeldCertificate::read(&self.store.certificate());
            (state.due(held.as_ref(), &self.settings.names, now_s), state, held)
        };
        if let (DueAction::At(at), ..) = due() {
            return Ok((at - now_s).clamp(1, LOOK_S));
        }
        let Some(_lock) = self.store.lock()? else { return Ok(OTHERS_S) };
        // Another process may have done it just before.
        match due() {
            (DueAction::At(at), ..) => return Ok((at - now_s).clamp(1, LOOK_S)),
            // The observer has heard of a failure, and the state says when to try again.
            (DueAction::Attempt, state, _) => _ = self.attempt(state, observer, now_s)?,
            (DueAction::Advice, mut state, held) => {
                let held = held.expect("advice is about a certificate");
                let (settings, store) = (&self.settings, &self.store);
                let asked = advice(settings, store, &mut state, &held, &self.authority);
                // Without it the certificate is renewed in time all the same.
                let (window, wait_s) = asked.unwrap_or((None, 0));
                state.note_advice(window, wait_s, now_s, chance());
                self.save(state)?;
            }
        }
        Ok(1)
    }

    /// Obtains a certificate now, whatever is due.
    ///
    /// # Errors
    /// [`AcmeError`], which is kept in the folder, too.
    pub fn renew(&self, observer: &dyn AcmeObserver) -> Result<(), AcmeError> {
        let Some(_lock) = self.store.lock()? else { return Err(AcmeError::UnderWay) };
        self.attempt(self.state(), observer, now_s())?
    }

    fn state(&self) -> AcmeState {
        let unsaved = self.unsaved.borrow().clone();
        unsaved.or_else(|| self.store.read("state.json")).unwrap_or_default()
    }

    fn save(&self, state: AcmeState) -> Result<(), CertificateStoreError> {
        let written = self.store.write("state.json", &state);
        *self.unsaved.borrow_mut() = written.is_err().then_some(state);
        written
    }

    /// Tries to obtain a certificate. Where the folder cannot be written, the authority is not
    /// asked: what it issues would be lost, and it counts.
    ///
    /// # Errors
    /// [`CertificateStoreError`]: the state cannot be written.
    fn attempt(
        &self,
        mut state: AcmeState,
        observer: &dyn AcmeObserver,
        now_s: i64,
    ) -> Result<Result<(), AcmeError>, CertificateStoreError> {
        let mut begun = state.clone();
        begun.note_begun(now_s, chance());
        self.store.write("state.json", &begun)?;
        let mut tried = attempt(&self.settings, &self.store, &mut state, &self.authority);
        // An authority may forget its nonces any time: that is nobody's fault, and soon mended.
        for _ in 0..NONCE_TRIES {
            if !tried.as_ref().is_err_and(AcmeError::is_of_nonce) {
                break;
            }
            tried = attempt(&self.settings, &self.store, &mut state, &self.authority);
        }
        let names = self.settings.names.join(", ");
        let done = match tried {
            Ok(held) => {
                state.note_obtained(&held, now_s, chance());
                let days = (held.not_after_s - now_s) / 86_400;
                observer.obtained(&format!(
                    "a certificate for {names} was obtained; it ends in {days} days"
                ));
                Ok(())
            }
            Err(error) => {
                if error.is_of_account() {
                    crate::account::forget(&self.settings, &self.store);
                }
                let line = error.to_string();
                let patience = self.authority.patience_until_s();
                let is_refused = error.is_of_authority();
                state.note_failed(line.clone(), is_refused, patience, now_s, chance());
                let wait = state.retry_at_s - now_s;
                observer.failed(&format!(
                    "no certificate for {names}: {line}; the next attempt is in {}",
                    in_words(wait)
                ));
                Err(error)
            }
        };
        self.save(state)?;
        Ok(done)
    }
}

/// Returns a time in words.
fn in_words(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} minutes", seconds / 60),
        _ => format!("{} hours", seconds / 3_600),
    }
}

/// Returns a random number.
fn chance() -> u64 {
    let mut bytes = [0; 8];
    // Without one, several servers renew at the same time; that is all.
    _ = aws_lc_rs::rand::fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}

/// Ends a keeper's thread when it is dropped. An attempt under way is finished before.
#[derive(Debug)]
pub struct KeeperHandle(Arc<KeeperEnding>);

#[derive(Debug, Default)]
struct KeeperEnding {
    is_ending: Mutex<bool>,
    changed: Condvar,
}

impl Drop for KeeperHandle {
    fn drop(&mut self) {
        *self.0.is_ending.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

impl KeeperEnding {
    /// Waits. Returns whether to end.
    fn wait(&self, seconds: i64) -> bool {
        let time = Duration::from_secs(u64::try_from(seconds).unwrap_or(1));
        let is_ending = self.is_ending.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_ending, time, |is_ending| !*is_ending);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Keeps a certificate valid from now on, on a thread of its own.
///
/// # Errors
/// The thread cannot be started.
pub fn start(
    keeper: CertificateKeeper,
    observer: impl AcmeObserver + 'static,
) -> io::Result<KeeperHandle> {
    let ending = Arc::new(KeeperEnding::default());
    let handle = KeeperHandle(Arc::clone(&ending));
    let work = move || {
        let mut wait = 1;
        let mut said = String::new();
        while !ending.wait(wait) {
            wait = keeper.step(&observer, now_s()).unwrap_or_else(|error| {
                // The folder is looked at each minute: the same trouble is told once.
                let line = error.to_string();
                if line != said {
                    observer.failed(&line);
                }
                said = line;
                LOOK_S
            });
        }
    };
    thread::Builder::new().name("acme".to_owned()).spawn(work)?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::TcpListener;

    use super::*;
    use crate::settings::ChallengeChoice;

    #[derive(Default)]
    struct Counted {
        failed: Cell<u32>,
        obtained: Cell<u32>,
    }

    impl AcmeObserver for Counted {
        fn obtained(&self, _: &str) {
            self.obtained.set(self.obtained.get() + 1);
        }

        fn failed(&self, line: &str) {
            assert!(line.contains("the authority cannot be asked: "), "{line}");
            self.failed.set(self.failed.get() + 1);
        }
    }

    /// Makes it impossible to write the state.
    fn block_state(folder: &std::path::Path) {
        let state = folder.join("state.json");
        _ = std::fs::remove_file(&state);
        std::fs::create_dir_all(state.join("in-its-place")).expect("a folder");
    }

    /// Blocks the state while an attempt is under way.
    struct Blocking<'f>(&'f std::path::Path, Cell<u32>);

    impl AcmeObserver for Blocking<'_> {
        fn obtained(&self, _: &str) {}

        fn failed(&self, _: &str) {
            self.1.set(self.1.get() + 1);
            block_state(self.0);
        }
    }

    fn settings(folder: &std::path::Path, directory: String) -> AcmeSettings {
        AcmeSettings {
            names: vec!["a.test".to_owned()],
            email: None,
            directory,
            trusted: None,
            folder: folder.to_owned(),
            profile: "tlsserver".to_owned(),
            challenge: ChallengeChoice::Http01,
            external: None,
        }
    }

    #[test]
    fn an_authority_is_not_asked_where_the_state_cannot_be_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = "https://127.0.0.1:1/dir".to_owned();
        let keeper = CertificateKeeper::open(settings(folder.path(), directory)).expect("it opens");
        block_state(folder.path());
        let (counted, now) = (Counted::default(), 1_800_000_000);
        keeper.step(&counted, now).expect_err("no state can be written");
        keeper.renew(&counted).expect_err("the same");
        assert_eq!(counted.failed.get(), 0);
        std::fs::remove_dir_all(folder.path().join("state.json")).expect("it is there");
        keeper.step(&counted, now).expect("now it can");
        assert_eq!(counted.failed.get(), 1);
    }

    #[test]
    fn a_state_that_cannot_be_written_counts_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = "https://127.0.0.1:1/dir".to_owned();
        let keeper = CertificateKeeper::open(settings(folder.path(), directory)).expect("it opens");
        let (blocking, now) = (Blocking(folder.path(), Cell::new(0)), 1_800_000_000);
        keeper.step(&blocking, now).expect_err("the end of the attempt cannot be written");
        assert!(keeper.step(&blocking, now + 1).expect("nothing is due") > 50);
        keeper.step(&blocking, now + 3_600).expect_err("it is due, and there is no state");
        assert_eq!(blocking.1.get(), 1, "the authority was asked once");
    }

    /// No authority is there for a day, and a restart of the server changes nothing about it.
    #[test]
    fn an_authority_that_is_down_for_a_day_is_asked_some_thirty_times() {
        let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
        let directory = format!("https://{}/dir", closed.local_addr().expect("it is bound"));
        drop(closed);
        let folder = tempfile::tempdir().expect("a folder");
        let counted = Counted::default();
        let (start, mut now) = (1_800_000_000, 1_800_000_000);
        while now < start + 86_400 {
            let keeper = CertificateKeeper::open(settings(folder.path(), directory.clone()))
                .expect("it opens");
            now += keeper.step(&counted, now).expect("the folder is there");
        }
        assert!((20..=35).contains(&counted.failed.get()), "{}", counted.failed.get());
        assert_eq!(counted.obtained.get(), 0);
        let held = HeldCertificate::read(&folder.path().join("certificate.pem"));
        assert!(held.expect("a certificate").is_placeholder);
    }
}
