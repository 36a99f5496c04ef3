//! What lookups do, step by step, for people who ask why a request has its response.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gustnado_http::content_coding::{CodingSet, ContentCoding};
use rustix::fs::FileType;

use super::cache_rules::cache_rule;
use super::error::Failure;
use super::resolve::{Located, Root};
use super::target::{Target, TargetFile};
use super::variants::Siblings;
use super::{Folder, spa};

/// The most steps that are kept. A lookup has a few for each setting of its folder.
const STEPS_MAX: usize = 200;

/// The steps of lookups in the folders that were opened with it. A server that serves has none.
#[derive(Clone, Debug, Default)]
pub struct LookupTrace(Arc<Mutex<Vec<LookupStep>>>);

/// A step of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupStep {
    /// It looks in this folder.
    Folder {
        /// The folder, without symlinks.
        path: PathBuf,
        /// Why it looks there.
        why: LookupReason,
    },
    /// The path is one that is never looked for, such as a hidden name.
    Refused,
    /// It looks for an entry.
    Tried {
        /// The entry's path below the folder.
        relative: String,
        /// What is there.
        found: TriedEntry,
    },
    /// It has found a file.
    File(LookedUpFile),
    /// It has found a folder without an index, which is listed.
    Listed,
    /// The client is sent to another spelling of the path.
    Moved,
}

/// Why a lookup looks in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupReason {
    /// For the path of the request.
    Path,
    /// For the page of an application, as there is nothing at the path.
    Page,
    /// For a file of a former release.
    FormerRelease,
}

/// What a lookup has found at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriedEntry {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Neither of them.
    Other,
    /// Nothing.
    Nothing,
    /// A name of the setting `forbidden`.
    Forbidden,
    /// A file that is not at the path of the request, and whose own path is another route's.
    OtherRoute,
    /// The system does not let the server see it.
    Denied,
    /// It cannot be read.
    Unreadable,
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookedUpFile {
    /// The file, without symlinks.
    pub path: PathBuf,
    /// The rule that its `Cache-Control` comes from, and the value.
    pub cache: Option<(String, String)>,
    /// A field that is set for all responses takes the rule's place.
    pub cache_is_overridden: bool,
    /// Codings of the file that lie beside it, up to date.
    pub on_disk: Vec<&'static str>,
    /// Codings that the server may compress it with itself.
    pub made: Vec<&'static str>,
}

impl LookupTrace {
    /// Returns the steps so far.
    pub fn steps(&self) -> Vec<LookupStep> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a step. One that is repeated, as a thread of the pool repeats what the worker could not
    /// find out without waiting, is kept once.
    fn add(&self, step: LookupStep) {
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.len() < STEPS_MAX && !steps.contains(&step) {
            steps.push(step);
        }
    }
}

/// What is found of one key in one root, as a trace keeps it. Without a trace nothing is done.
pub(super) struct TracedLookup<'f> {
    folder: &'f Folder,
    trace: Option<&'f LookupTrace>,
}

impl<'f> TracedLookup<'f> {
    /// Begins a lookup.
    pub(super) fn begin(folder: &'f Folder, root: &Root, key: &[u8], is_former: bool) -> Self {
        let traced = Self { folder, trace: folder.trace.as_ref() };
        traced.note(|| {
            let why = match key {
                _ if is_former => LookupReason::FormerRelease,
                spa::KEY => LookupReason::Page,
                _ => LookupReason::Path,
            };
            LookupStep::Folder { path: root.path().unwrap_or_else(|| folder.path.clone()), why }
        });
        traced
    }

    fn note(&self, step: impl FnOnce() -> LookupStep) {
        if let Some(trace) = self.trace {
            trace.add(step());
        }
    }

    /// Notes what is at a path.
    pub(super) fn tried(&self, relative: &[u8], outcome: &Result<Located, Failure>) {
        // Its thread does the same again and may wait.
        if matches!(outcome, Err(Failure::WouldWait)) {
            return;
        }
        self.note(|| {
            let found = match outcome {
                Ok(located) => match located.kind() {
                    FileType::RegularFile => TriedEntry::File,
                    FileType::Directory => TriedEntry::Folder,
                    _ => TriedEntry::Other,
                },
                Err(failure) if failure.is_missing() => TriedEntry::Nothing,
                Err(failure) if failure.is_denied() => TriedEntry::Denied,
                Err(_) => TriedEntry::Unreadable,
            };
            LookupStep::Tried { relative: text(relative), found }
        });
    }

    /// Notes why a path is not looked for.
    pub(super) fn left_out(&self, relative: &[u8], found: TriedEntry) {
        self.note(|| LookupStep::Tried { relative: text(relative), found });
    }

    /// Notes what the path leads to, unless that is a file.
    pub(super) fn target(&self, outcome: &Result<Target, Failure>) {
        match outcome {
            Ok(Target::Moved(_)) => self.note(|| LookupStep::Moved),
            Ok(Target::Folder(..)) => self.note(|| LookupStep::Listed),
            Err(Failure::Path(_)) => self.note(|| LookupStep::Refused),
            Ok(Target::File(_)) | Err(_) => {}
        }
    }

    /// Notes the file.
    pub(super) fn file(&self, file: &TargetFile, siblings: &Siblings, made: CodingSet) {
        self.note(|| {
            let TargetFile { located, relative, .. } = file;
            let rule = cache_rule(&self.folder.settings, relative);
            let leaves = |is_own| self.folder.headers.leave_cache_control(is_own);
            let names = |all: CodingSet| {
                let coded = ContentCoding::ALL.into_iter().filter(move |one| all.has(*one));
                coded.filter(|one| *one != ContentCoding::Identity).map(ContentCoding::name)
            };
            LookupStep::File(LookedUpFile {
                path: located.path().unwrap_or_else(|| text(relative).into()),
                cache_is_overridden: rule.as_ref().is_some_and(|rule| !leaves(rule.is_own)),
                cache: rule.map(|rule| (rule.name.into_owned(), rule.value.to_owned())),
                on_disk: siblings.codings().map(ContentCoding::name).collect(),
                made: names(made).collect(),
            })
        });
    }
}

/// Returns a path for people.
fn text(relative: &[u8]) -> String {
    String::from_utf8_lossy(relative).into_owned()
}
