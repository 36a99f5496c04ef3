use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn rung(bell: &Bell) -> usize {
    bell.0.swap(0, Ordering::Relaxed)
}

#[test]
fn each_side_wakes_the_other_and_nothing_is_taken_twice() {
    let (reader, connection) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    let (reading, serving) = (reader.clone().into(), connection.clone().into());
    let (mut reading, serving) = (Context::from_waker(&reading), Context::from_waker(&serving));
    let channel = BodyChannel::default();
    assert_eq!(channel.poll_demand(&serving), BodyDemand::Nothing);
    assert!(channel.poll_take(&mut reading).is_pending());
    assert_eq!((rung(&connection), rung(&reader)), (1, 0));
    assert_eq!(channel.poll_demand(&serving), BodyDemand::Bytes);
    channel.put(Bytes::from_static(b"one"));
    assert_eq!(rung(&reader), 1);
    assert_eq!(channel.poll_demand(&serving), BodyDemand::Nothing);
    let Poll::Ready(Some(Ok(bytes))) = channel.poll_take(&mut reading) else {
        panic!("the bytes are there");
    };
    assert_eq!((&*bytes, channel.received()), (b"one".as_slice(), 3));
    assert!(channel.poll_take(&mut reading).is_pending());
    channel.end(Err(BodyError::TooSlow));
    assert_eq!(rung(&reader), 1);
    assert_eq!(channel.poll_take(&mut reading), Poll::Ready(Some(Err(BodyError::TooSlow))));
    assert_eq!(channel.poll_take(&mut reading), Poll::Ready(None));
}

#[test]
fn a_reader_that_collects_is_told_to_put_its_bytes_to_the_disk() {
    let reader = Arc::new(Bell::default());
    let reading = reader.clone().into();
    let mut reading = Context::from_waker(&reading);
    let (channel, spool) = (BodyChannel::default(), Arc::new(Spool::default()));
    assert!(!channel.order_spill(&spool), "it uses them as they come");
    channel.set_collected(true);
    assert!(!channel.order_spill(&spool), "it can only hold them");
    channel.set_spooled();
    assert!(channel.poll_collect(&mut reading).is_pending());
    channel.put(Bytes::from_static(b"three"));
    assert_eq!(rung(&reader), 1);
    let held = |bytes| Some(HeldBytes { bytes, can_spill: true, is_part: false });
    assert_eq!(channel.held(), held(5));
    let polled = channel.poll_collect(&mut reading);
    assert!(matches!(polled, Poll::Ready(Some(Ok(Collected::Bytes(_))))));
    assert!(channel.poll_collect(&mut reading).is_pending());
    assert!(channel.order_spill(&spool));
    assert_eq!(rung(&reader), 1);
    let polled = channel.poll_collect(&mut reading);
    assert!(matches!(polled, Poll::Ready(Some(Ok(Collected::Spill(_))))));
    channel.set_released(5);
    assert_eq!(channel.held(), held(0));
    channel.set_collected(true);
    assert!(!channel.order_spill(&spool), "it could not");
    channel.end(Ok(()));
    assert!(matches!(channel.poll_collect(&mut reading), Poll::Ready(None)));
}

#[test]
fn a_reader_that_goes_is_noticed() {
    let connection = Arc::new(Bell::default());
    let serving = connection.clone().into();
    let serving = Context::from_waker(&serving);
    let channel = BodyChannel::default();
    assert_eq!(channel.poll_demand(&serving), BodyDemand::Nothing);
    channel.give_up();
    assert_eq!(rung(&connection), 1);
    assert_eq!(channel.poll_demand(&serving), BodyDemand::GivenUp);
    channel.end(Err(BodyError::Gone));
    assert_eq!(channel.poll_demand(&serving), BodyDemand::Nothing);
}
