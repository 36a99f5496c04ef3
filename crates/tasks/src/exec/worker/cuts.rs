//! Tasks whose connections are to be cut, until they have noticed it.

use crate::exec::wakers::task_id::TaskId;
use crate::sync::lock::Lock;

/// What a connection waits for when it is cut; at other times it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutDuring {
    /// For its peer to take what is sent.
    Send,
    /// For the rest of a request's head.
    Head,
}

/// The connections of all workers that are to be cut.
#[derive(Debug, Default)]
pub(crate) struct Cuts(Lock<Vec<(TaskId, CutDuring)>>);

impl Cuts {
    pub(crate) fn add(&self, task: TaskId, during: CutDuring) {
        self.0.lock().push((task, during));
    }

    /// Takes one out. Returns whether it was there.
    pub(crate) fn take(&self, task: TaskId, during: CutDuring) -> bool {
        let mut cuts = self.0.lock();
        let at = cuts.iter().position(|cut| *cut == (task, during));
        at.map(|at| cuts.swap_remove(at)).is_some()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_once_and_only_for_what_it_is() {
        let (cuts, task) = (Cuts::default(), TaskId::of_token(7));
        cuts.add(task, CutDuring::Send);
        cuts.add(TaskId::of_token(8), CutDuring::Head);
        assert!(!cuts.take(task, CutDuring::Head));
        assert!(cuts.take(task, CutDuring::Send) && !cuts.take(task, CutDuring::Send));
        assert!(cuts.take(TaskId::of_token(8), CutDuring::Head));
    }
}
