//! One body that is collected: in memory at first, then in a file.

use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gustnado_tasks::{MappedFile, PrivateFile, sleep};

use super::{Spool, SpoolFailure, SpoolShare};
use crate::disk_job::run_on;

/// A body up to this length stays in memory, if there is memory for it.
pub const MEMORY_BYTES_MAX: usize = 1 << 20;
/// Bytes of a longer one that are gathered before they are written.
const STEP_BYTES: usize = 256 << 10;
/// A body that is on the disk in part waits for room on it: so often, for so long.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Returns whether what is in memory of a body is to be written.
///
/// - `held`: bytes in memory.
/// - `left`: bytes to come, if that is known.
/// - `is_in_file`: a part of it was written.
pub fn is_due(held: usize, left: Option<u64>, is_in_file: bool) -> bool {
    let known = (held as u64).saturating_add(left.unwrap_or(0));
    let is_long = is_in_file || known > MEMORY_BYTES_MAX as u64;
    held >= if is_long { STEP_BYTES } else { MEMORY_BYTES_MAX }
}

/// A body that is collected. Dropping it deletes its file.
#[derive(Debug, Default)]
pub struct SpooledBody {
    /// What is in memory: behind what is in the file.
    pub memory: Vec<u8>,
    file: Option<SpoolFile>,
    spilled: u64,
}

impl SpooledBody {
    /// Returns the bytes that were written to the file.
    pub fn spilled(&self) -> u64 {
        self.spilled
    }

    /// Returns the bytes that it has.
    pub fn len(&self) -> u64 {
        self.spilled + self.memory.len() as u64
    }

    /// Returns whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes what is in memory to the file, on a thread of the spool.
    ///
    /// # Errors
    /// [`SpoolFailure`].
    pub async fn spill(&mut self, spool: &Arc<Spool>) -> Result<(), SpoolFailure> {
        let bytes = self.memory.len() as u64;
        if bytes == 0 {
            return Ok(());
        }
        let is_first = self.file.is_none();
        let file = match self.file.take() {
            Some(file) => Some(file),
            None => SpoolShare::open(spool).map(SpoolFile::new),
        };
        let mut file = file.ok_or(SpoolFailure::Full)?;
        if !file.take(bytes, is_first).await {
            // A body that was begun on the disk cannot go back to memory.
            if !is_first {
                spool.count_failure();
            }
            return Err(if is_first { SpoolFailure::Full } else { SpoolFailure::Lost });
        }
        let memory = mem::take(&mut self.memory);
        let folder = spool.folder();
        let write = move || {
            let is_written = file.append(&folder, &memory);
            (file, memory, is_written)
        };
        let Ok((file, mut memory, is_written)) = run_on(&spool.pool, write).await else {
            return Err(SpoolFailure::Lost);
        };
        if is_written {
            memory.clear();
            self.spilled += bytes;
            self.file = Some(file);
        }
        self.memory = memory;
        match is_written {
            true => Ok(()),
            false if is_first => Err(SpoolFailure::Full),
            false => Err(SpoolFailure::Lost),
        }
    }

    /// Returns the whole body: the map of its file, if it has one.
    ///
    /// # Errors
    /// [`SpoolFailure::Lost`].
    pub async fn finish(mut self) -> Result<Bytes, SpoolFailure> {
        let Some(file) = &self.file else { return Ok(self.memory.into()) };
        let spool = Arc::clone(file.spool());
        self.spill(&spool).await?;
        let Some(file) = self.file.take() else { return Err(SpoolFailure::Lost) };
        let mapped = run_on(&spool.pool, move || file.map()).await;
        mapped.ok().flatten().ok_or(SpoolFailure::Lost)
    }
}

/// The file of a body that is being received.
#[derive(Debug)]
struct SpoolFile(Option<OpenSpoolFile>);

#[derive(Debug)]
struct OpenSpoolFile {
    /// `None` before the first write.
    file: Option<PrivateFile>,
    share: SpoolShare,
}

impl SpoolFile {
    fn new(share: SpoolShare) -> Self {
        Self(Some(OpenSpoolFile { file: None, share }))
    }

    fn open(&mut self) -> &mut OpenSpoolFile {
        self.0.as_mut().expect("only `map` and the drop take it")
    }

    fn spool(&self) -> &Arc<Spool> {
        self.0.as_ref().expect("only `map` and the drop take it").share.spool()
    }

    /// Takes room on the disk. Returns whether there was some.
    ///
    /// - `is_first`: it does not wait for any.
    async fn take(&mut self, bytes: u64, is_first: bool) -> bool {
        for _ in 0..TRIES {
            if self.open().share.take(bytes) {
                return true;
            }
            // Only a worker has timers.
            if is_first || gustnado_tasks::worker().is_none() {
                return false;
            }
            sleep(PAUSE).await;
        }
        false
    }

    /// Appends bytes. Returns whether that succeeded; a failure is reported.
    fn append(&mut self, folder: &Path, bytes: &[u8]) -> bool {
        let OpenSpoolFile { file, share } = self.open();
        let is_first = file.is_none();
        let created = match file.take() {
            Some(file) => Ok(file),
            None => PrivateFile::create(folder),
        };
        let written = created.and_then(|mut created| {
            created.append(bytes)?;
            *file = Some(created);
            Ok(())
        });
        match &written {
            Ok(()) => share.spool().note_success(is_first),
            Err(error) => share.spool().note_failure(error),
        }
        written.is_ok()
    }

    /// Returns the bytes of the file; `None` if they cannot be mapped.
    fn map(mut self) -> Option<Bytes> {
        let OpenSpoolFile { file, mut share } = self.0.take()?;
        match file?.map() {
            Ok(map) => {
                share.close();
                Some(Bytes::from_owner(SpooledBytes(Some((map, share)))))
            }
            Err(error) => {
                share.spool().note_failure(&error);
                None
            }
        }
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        // Deleting a long file takes time, which no worker has.
        if let Some(open) = self.0.take().filter(|open| open.file.is_some()) {
            let spool = Arc::clone(open.share.spool());
            spool.start(move || drop(open));
        }
    }
}

/// The bytes of a body that is in a file.
struct SpooledBytes(Option<(MappedFile, SpoolShare)>);

impl AsRef<[u8]> for SpooledBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |(map, _)| map.as_ref())
    }
}

impl Drop for SpooledBytes {
    fn drop(&mut self) {
        if let Some((map, share)) = self.0.take() {
            let spool = Arc::clone(share.spool());
            spool.start(move || drop((map, share)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_config::Config;
    use gustnado_tasks::block_on;
    use std::time::Instant;

    fn spool_of(bytes_max: u64) -> Arc<Spool> {
        Arc::new(Spool::new(&Config { body_spool_bytes: bytes_max, ..Config::default() }))
    }

    /// What is dropped is deleted on a thread of the spool.
    fn wait_until_empty(spool: &Spool) {
        let began = Instant::now();
        while spool.counts().bytes > 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", spool.counts());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_body_is_the_same_wherever_it_was() {
        let noise: Vec<u8> = (0..700_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
        let spool = spool_of(1 << 20);
        for step in [1_000_000, 300_000, 99_999] {
            let whole = block_on(async {
                let mut body = SpooledBody::default();
                for piece in noise.chunks(step) {
                    body.memory.extend_from_slice(piece);
                    if body.len() < noise.len() as u64 {
                        body.spill(&spool).await.expect("there is room");
                    }
                }
                assert_eq!(body.len(), noise.len() as u64);
                body.finish().await.expect("there is room")
            })
            .expect("a worker for it");
            assert!(whole == noise, "in steps of {step}");
            let in_file = if step > noise.len() { 0 } else { noise.len() as u64 };
            assert_eq!(spool.counts().bytes, in_file);
            drop(whole);
            wait_until_empty(&spool);
        }
        assert_eq!(spool.counts().bodies, 2);
    }

    #[test]
    fn what_does_not_fit_stays_in_memory() {
        let spool = spool_of(100);
        block_on(async {
            let mut body = SpooledBody { memory: vec![7; 101], ..SpooledBody::default() };
            assert_eq!(body.spill(&spool).await, Err(SpoolFailure::Full));
            assert_eq!((body.memory.len(), body.spilled()), (101, 0));
            assert_eq!(body.finish().await.as_deref(), Ok(&[7; 101][..]));
        })
        .expect("a worker for it");
        assert_eq!((spool.counts().bytes, spool.counts().bodies), (0, 0));
    }

    #[test]
    fn what_cannot_be_written_stays_in_memory_and_is_counted() {
        let config = Config { body_spool: Some("/nowhere/at/all".into()), ..Config::default() };
        let spool = Arc::new(Spool::new(&config));
        block_on(async {
            let mut body = SpooledBody { memory: vec![7; 101], ..SpooledBody::default() };
            assert_eq!(body.spill(&spool).await, Err(SpoolFailure::Full));
            assert_eq!(body.memory.len(), 101);
        })
        .expect("a worker for it");
        wait_until_empty(&spool);
        assert_eq!((spool.counts().failed, spool.counts().bodies), (1, 0));
    }

    #[test]
    fn a_long_body_is_written_in_steps_and_a_short_one_not_at_all() {
        const MIB: usize = MEMORY_BYTES_MAX;
        assert!(!is_due(MIB - 1, None, false) && is_due(MIB, None, false));
        assert!(!is_due(STEP_BYTES, Some((MIB - STEP_BYTES) as u64), false));
        assert!(is_due(STEP_BYTES, Some((MIB - STEP_BYTES + 1) as u64), false));
        assert!(!is_due(STEP_BYTES - 1, Some(1 << 40), true) && is_due(STEP_BYTES, None, true));
    }
}
