use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

/// Counts how often it was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Bell {
    fn rung(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl PipeConnection for Bell {
    fn wake(&self, _: u32) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A pipe, what wakes its connection, and what wakes its tunnel.
fn piped() -> (Arc<StreamPipe>, Arc<Bell>, Arc<Bell>) {
    let (connection, tunnel) = (Arc::<Bell>::default(), Arc::<Bell>::default());
    let write = ProgressTimeout { silence_ms: 1_000, rate_min: 0 };
    let bell: Arc<dyn PipeConnection> = Arc::<Bell>::clone(&connection);
    let pipe = StreamPipe::new(None, 10, (bell, 1), write);
    (pipe, connection, tunnel)
}

fn recv(pipe: &StreamPipe, bell: &Arc<Bell>) -> Poll<Result<Vec<u8>, PipeFailure>> {
    pipe.poll_recv(&Context::from_waker(&Waker::from(Arc::clone(bell))), true)
}

fn sent(pipe: &StreamPipe, bell: &Arc<Bell>) -> Poll<Result<(), PipeFailure>> {
    pipe.poll_sent(&Context::from_waker(&Waker::from(Arc::clone(bell))))
}

#[test]
fn what_was_taken_is_told_in_steps() {
    let (pipe, connection, tunnel) = piped();
    assert!(recv(&pipe, &tunnel).is_pending());
    pipe.put(b"four");
    assert_eq!((tunnel.rung(), recv(&pipe, &tunnel)), (1, Poll::Ready(Ok(b"four".to_vec()))));
    assert_eq!(connection.rung(), 0, "less than a step");
    pipe.put(b"six");
    pipe.put(b"more");
    assert_eq!(recv(&pipe, &tunnel), Poll::Ready(Ok(b"sixmore".to_vec())));
    assert_eq!((connection.rung(), pipe.take_taken(), pipe.take_taken()), (1, 11, 0));
    pipe.finish();
    assert_eq!(recv(&pipe, &tunnel), Poll::Ready(Ok(Vec::new())));
    assert_eq!(recv(&pipe, &tunnel), Poll::Ready(Ok(Vec::new())), "again and again");
}

#[test]
fn what_nobody_takes_any_more_is_given_back() {
    let (pipe, ..) = piped();
    pipe.close(PipeClose::Returned);
    pipe.put(b"late");
    assert_eq!(pipe.take_taken(), 4);
}

#[test]
fn a_send_ends_once_all_of_it_is_taken() {
    let (pipe, connection, tunnel) = piped();
    pipe.start_send(Bytes::from_static(b"hello"));
    assert!(connection.rung() == 1 && sent(&pipe, &tunnel).is_pending());
    assert!(pipe.has_output(true) && !pipe.has_output(false) && pipe.has_unsent());
    assert_eq!(pipe.output(0), PipeOutput::Nothing, "an empty piece would be a frame");
    assert_eq!(pipe.output(3), PipeOutput::Bytes(Bytes::from_static(b"hel")));
    assert!(sent(&pipe, &tunnel).is_pending() && tunnel.rung() == 0);
    // The end goes behind what is left, and needs no window.
    pipe.shut();
    assert_eq!(pipe.output(3), PipeOutput::Bytes(Bytes::from_static(b"lo")));
    assert_eq!((tunnel.rung(), sent(&pipe, &tunnel)), (1, Poll::Ready(Ok(()))));
    assert!(pipe.has_output(false) && !pipe.is_open());
    assert_eq!((pipe.output(3), pipe.output(3)), (PipeOutput::Shut, PipeOutput::Nothing));
    assert!(!pipe.has_output(true));
    pipe.close(PipeClose::Returned);
    assert_eq!(pipe.output(3), PipeOutput::Close { is_shut: true });
}

#[test]
fn a_loss_is_told_once_and_wakes_all() {
    let (pipe, _, tunnel) = piped();
    let task = Arc::<Bell>::default();
    pipe.start_send(Bytes::from_static(b"hello"));
    assert!(sent(&pipe, &tunnel).is_pending() && recv(&pipe, &tunnel).is_pending());
    assert!(pipe.poll_lost(&Context::from_waker(&Waker::from(Arc::clone(&task)))).is_pending());
    pipe.put(b"before");
    pipe.lose(PipeLoss::TimedOut);
    pipe.lose(PipeLoss::Gone);
    assert_eq!((tunnel.rung(), task.rung()), (2, 1));
    assert_eq!(recv(&pipe, &tunnel), Poll::Ready(Ok(b"before".to_vec())));
    assert_eq!(sent(&pipe, &tunnel), Poll::Ready(Err(PipeFailure::Lost(PipeLoss::TimedOut))));
    assert_eq!(recv(&pipe, &tunnel), Poll::Ready(Err(PipeFailure::Closed)));
    assert!(!pipe.has_output(true), "its stream is gone");
}

#[test]
fn this_side_may_cut_it() {
    let (pipe, connection, tunnel) = piped();
    pipe.start_send(Bytes::from_static(b"lost"));
    pipe.cut();
    assert!(connection.rung() == 2 && pipe.has_output(false));
    assert_eq!(pipe.output(9), PipeOutput::Cut);
    assert_eq!(recv(&pipe, &tunnel), Poll::Ready(Err(PipeFailure::Lost(PipeLoss::Cut))));
    let (pipe, ..) = piped();
    pipe.start_send(Bytes::from_static(b"lost"));
    pipe.close(PipeClose::Panicked);
    assert!(pipe.has_output(false));
    assert_eq!(pipe.output(9), PipeOutput::Failed);
}

#[test]
fn a_drain_is_told_behind_what_has_come() {
    let (pipe, _, tunnel) = piped();
    assert!(recv(&pipe, &tunnel).is_pending());
    pipe.tell_ending();
    assert_eq!(tunnel.rung(), 1);
    pipe.put(b"hello");
    assert_eq!(recv(&pipe, &tunnel), Poll::Ready(Ok(b"hello".to_vec())));
    assert_eq!(recv(&pipe, &tunnel), Poll::Ready(Err(PipeFailure::Lost(PipeLoss::Ending))));
    let context = Context::from_waker(Waker::noop());
    assert!(pipe.poll_recv(&context, false).is_pending(), "it goes on");
}

#[test]
fn a_pipe_that_waits_is_small() {
    // As it is allocated: with the counts of an `Arc`.
    let bytes = size_of::<[usize; 2]>() + size_of::<StreamPipe>();
    assert!(bytes <= 264, "{bytes} bytes");
}
