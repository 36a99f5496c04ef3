//! The times at which a connection may send, receive and bring a request.

use std::sync::Arc;

use gustnado_tasks::{Bucket, ProgressTimeout, Rate, SharedBucket};

use crate::rates::{Buckets, Flows, ResponsePace, after};

/// The pace of one connection: its own buckets, and shared ones. The default has no limits.
#[derive(Debug, Default)]
pub struct Pacer {
    write: Vec<Limiter>,
    read: Vec<Limiter>,
    requests: Option<(Rate, Arc<Buckets>)>,
    first_byte_delay_ms: u64,
    /// The route of the last response, if it has a pace of its own. Kept between responses: the
    /// route's next one continues with the same buckets, so that requesting again does not refill
    /// them.
    route: Option<PacedRoute>,
    /// The pace of a request's body, from its route.
    route_read: Option<Limiter>,
    /// No byte of the response is sent before this time.
    first_byte_at_ms: u64,
    /// Nothing is received before this time.
    read_at_ms: u64,
    /// How long the peer took for the bytes of this response, and how many they are. The server's
    /// own pauses do not count against the peer.
    sending_ms: u64,
    sent: u64,
}

#[derive(Debug)]
struct PacedRoute {
    pacer: RoutePacer,
    /// The current response is one of this route.
    is_on: bool,
}

/// The pace of the responses of one route on one connection.
#[derive(Debug)]
pub struct RoutePacer {
    pace: Arc<ResponsePace>,
    limiters: Vec<Limiter>,
}

impl RoutePacer {
    /// Creates it with buckets of its own, that are full, and those of the route.
    pub fn new(pace: &Arc<ResponsePace>) -> Self {
        let own = pace.write.map(Limiter::own);
        let in_all =
            pace.in_all.map(|rate| Limiter::shared(rate, &pace.buckets, |buckets| &buckets.write));
        Self { pace: Arc::clone(pace), limiters: own.into_iter().chain(in_all).collect() }
    }

    /// Returns whether it is of this route.
    pub fn is_of(&self, pace: &Arc<ResponsePace>) -> bool {
        Arc::ptr_eq(&self.pace, pace)
    }

    /// Takes bytes from all buckets, as far as they are wanted. Returns how many may be sent, and
    /// when.
    pub fn grant(&mut self, now_ms: u64, wanted: u64) -> Grant {
        let portions = self.limiters.iter().map(|limiter| limiter.portion(now_ms, wanted));
        let bytes = portions.min().unwrap_or(wanted).min(wanted);
        Grant { bytes, at_ms: self.charge(now_ms, bytes) }
    }

    /// Takes bytes that are sent at once. Returns when they are due.
    pub fn charge(&mut self, now_ms: u64, bytes: u64) -> u64 {
        let times = self.limiters.iter_mut().map(|limiter| limiter.take(now_ms, bytes));
        times.max().unwrap_or(now_ms)
    }
}

/// The pace of one body that is received.
#[derive(Debug)]
pub struct BodyPacer(Limiter);

impl BodyPacer {
    /// - `rate`: of its route.
    pub fn new(rate: Rate) -> Self {
        Self(Limiter::own(rate))
    }

    /// Counts received bytes. Returns when more may be received.
    pub fn charge(&mut self, now_ms: u64, bytes: u64) -> u64 {
        self.0.take(now_ms, bytes)
    }
}

/// A bucket of bytes, and its rate.
#[derive(Debug)]
struct Limiter {
    rate: Rate,
    bucket: Source,
}

#[derive(Debug)]
enum Source {
    Own(Bucket),
    /// One of those that are shared.
    Shared(Arc<Buckets>, fn(&Buckets) -> &SharedBucket),
}

/// Bytes that may be sent, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// How many.
    pub bytes: u64,
    /// When, in milliseconds of the clock.
    pub at_ms: u64,
}

impl Limiter {
    fn own(rate: Rate) -> Self {
        Self { rate, bucket: Source::Own(Bucket::default()) }
    }

    fn shared(rate: Rate, buckets: &Arc<Buckets>, of: fn(&Buckets) -> &SharedBucket) -> Self {
        Self { rate, bucket: Source::Shared(Arc::clone(buckets), of) }
    }

    fn portion(&self, now_ms: u64, wanted: u64) -> u64 {
        match &self.bucket {
            Source::Own(bucket) => bucket.portion(self.rate, now_ms, wanted),
            Source::Shared(buckets, of) => of(buckets).portion(self.rate, now_ms, wanted),
        }
    }

    fn take(&mut self, now_ms: u64, bytes: u64) -> u64 {
        match &mut self.bucket {
            Source::Own(bucket) => bucket.take(self.rate, now_ms, bytes),
            Source::Shared(buckets, of) => of(buckets).take(self.rate, now_ms, bytes),
        }
    }
}

impl Pacer {
    /// Adds rates of the connection alone.
    pub fn own(&mut self, flows: Flows) {
        self.write.extend(flows.write.map(Limiter::own));
        self.read.extend(flows.read.map(Limiter::own));
    }

    /// Sets how long after its request the first byte of a response is held back.
    pub fn delay_first_byte(&mut self, delay_ms: u64) {
        self.first_byte_delay_ms = delay_ms;
    }

    /// Sets the rate of requests, in a bucket that several connections may share.
    pub fn limit_requests(&mut self, rate: Rate, buckets: Arc<Buckets>) {
        self.requests = Some((rate, buckets));
    }

    /// Adds rates whose buckets are shared with other connections.
    pub fn share(&mut self, flows: Flows, buckets: &Arc<Buckets>) {
        self.write.extend(
            flows.write.map(|rate| Limiter::shared(rate, buckets, |buckets| &buckets.write)),
        );
        self.read
            .extend(flows.read.map(|rate| Limiter::shared(rate, buckets, |buckets| &buckets.read)));
    }

    /// Returns whether receiving has a pace.
    pub(crate) fn has_read_pace(&self) -> bool {
        !self.read.is_empty() || self.route_read.is_some()
    }

    /// Counts a request. The error is in how many milliseconds the client may retry.
    pub(crate) fn admit(&mut self, now_ms: u64) -> Result<(), u64> {
        match &self.requests {
            Some((rate, buckets)) => buckets.requests.try_take(*rate, now_ms, 1),
            None => Ok(()),
        }
    }

    /// Begins the response to a request that was read at `read_ms`.
    pub(crate) fn begin_response(&mut self, read_ms: u64) {
        (self.sending_ms, self.sent) = (0, 0);
        self.first_byte_at_ms = after(read_ms, self.first_byte_delay_ms);
        self.route_read = None;
    }

    /// Begins the response of a route with a pace of its own.
    pub(crate) fn begin_route(&mut self, pace: &Arc<ResponsePace>, read_ms: u64) {
        let first_byte_at_ms = after(read_ms, pace.first_byte_delay_ms);
        // The longer delay counts: a route can slow its responses down further, not speed them up.
        self.first_byte_at_ms = self.first_byte_at_ms.max(first_byte_at_ms);
        (self.sending_ms, self.sent) = (0, 0);
        if let Some(route) = &mut self.route
            && route.pacer.is_of(pace)
        {
            route.is_on = true;
            return;
        }
        self.route = Some(PacedRoute { pacer: RoutePacer::new(pace), is_on: true });
    }

    /// Ends the response of such a route.
    pub(crate) fn end_route(&mut self) {
        if let Some(route) = &mut self.route {
            route.is_on = false;
        }
    }

    /// Sets the pace of the body that follows, of which `received` bytes have arrived.
    pub(crate) fn begin_route_read(&mut self, rate: Rate, now_ms: u64, received: u64) {
        let mut limiter = Limiter::own(rate);
        self.read_at_ms = self.read_at_ms.max(limiter.take(now_ms, received));
        self.route_read = Some(limiter);
    }

    /// Returns how long after its request the first byte of a response is held back.
    pub(crate) fn first_byte_delay_ms(&self) -> u64 {
        self.first_byte_delay_ms
    }

    /// Returns when the response may begin; 0 once it has.
    pub(crate) fn take_first_byte_at_ms(&mut self) -> u64 {
        std::mem::take(&mut self.first_byte_at_ms)
    }

    /// Takes bytes from all buckets. Returns how many of the `wanted` bytes may be sent next, and
    /// when.
    pub(crate) fn grant(&mut self, now_ms: u64, wanted: u64) -> Grant {
        let of_route = match &mut self.route {
            Some(route) if route.is_on => &mut route.pacer.limiters[..],
            _ => &mut [],
        };
        // First the smallest portion, then the same number from every bucket: charging a bucket for
        // more than is sent would slow the connections that share it.
        let portions =
            self.write.iter().chain(&*of_route).map(|limiter| limiter.portion(now_ms, wanted));
        let bytes = portions.min().unwrap_or(wanted).min(wanted);
        let times =
            self.write.iter_mut().chain(of_route).map(|limiter| limiter.take(now_ms, bytes));
        Grant { bytes, at_ms: times.max().unwrap_or(now_ms) }
    }

    /// Returns the time before which nothing is received.
    pub(crate) fn read_at_ms(&self) -> u64 {
        self.read_at_ms
    }

    /// Counts received bytes. Returns for how long nothing more is received.
    pub(crate) fn charge_read(&mut self, now_ms: u64, bytes: u64) -> u64 {
        // The bytes are here already, so buckets go into debt and the pause follows.
        let limiters = self.read.iter_mut().chain(&mut self.route_read);
        let times = limiters.map(|limiter| limiter.take(now_ms, bytes));
        self.read_at_ms = times.max().unwrap_or(0);
        self.read_at_ms.saturating_sub(now_ms)
    }

    /// Returns when the peer must have taken the bytes that are sent next.
    pub(crate) fn send_deadline_ms(&self, patience: ProgressTimeout, now_ms: u64) -> u64 {
        // As if the response had been sent without pauses: a slow pace must not eat up the peer's
        // time.
        let began_ms = now_ms.saturating_sub(self.sending_ms);
        patience.deadline_ms(began_ms, now_ms, self.sent)
    }

    /// Notes that the peer has taken bytes, and for how long it took them.
    pub(crate) fn note_sent(&mut self, took_ms: u64, bytes: u64) {
        self.sending_ms = self.sending_ms.saturating_add(took_ms);
        self.sent = self.sent.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: u64, burst: u64) -> Rate {
        Rate::steady(per_second, burst).expect("a rate")
    }

    #[test]
    fn without_a_pace_everything_goes_at_once() {
        let mut pacer = Pacer::default();
        assert_eq!(pacer.grant(5, 1 << 40), Grant { bytes: 1 << 40, at_ms: 5 });
        assert_eq!(pacer.charge_read(5, 1 << 40), 0);
        assert_eq!(pacer.admit(5), Ok(()));
    }

    #[test]
    fn the_slowest_bucket_decides() {
        let server = Arc::<Buckets>::default();
        let mut pacer = Pacer::default();
        pacer.own(Flows { write: Some(rate(10_000, 1_000)), read: None });
        pacer.share(Flows { write: Some(rate(1_000, 100)), read: None }, &server);
        assert_eq!(pacer.grant(0, 5_000), Grant { bytes: 100, at_ms: 0 });
        assert_eq!(pacer.grant(0, 5_000), Grant { bytes: 50, at_ms: 50 });
        assert_eq!(pacer.grant(50, 5_000), Grant { bytes: 50, at_ms: 100 });
    }

    #[test]
    fn connections_that_share_a_bucket_take_turns() {
        let shared = Arc::<Buckets>::default();
        let flows = Flows { write: Some(rate(1_000, 100)), read: None };
        let mut pacers = [Pacer::default(), Pacer::default()];
        for pacer in &mut pacers {
            pacer.share(flows, &shared);
        }
        assert_eq!(pacers[0].grant(0, 100).at_ms, 0);
        let times: Vec<u64> = (0..6).map(|place| pacers[place % 2].grant(0, 5_000).at_ms).collect();
        assert_eq!(times, [50, 100, 150, 200, 250, 300]);
    }

    #[test]
    fn a_route_goes_on_where_it_stopped_and_slows_nothing_else() {
        let pace = ResponsePace::new(Some(rate(1_000, 100)), None, 0).map(Arc::new);
        let pace = pace.expect("a pace");
        let mut pacer = Pacer::default();
        pacer.begin_route(&pace, 0);
        assert_eq!(pacer.grant(0, 100).at_ms, 0);
        pacer.end_route();
        assert_eq!(pacer.grant(0, 100).at_ms, 0, "another route");
        pacer.begin_route(&pace, 0);
        assert_eq!(pacer.grant(0, 50).at_ms, 50, "its burst was spent");
    }

    #[test]
    fn the_first_byte_waits_from_the_moment_the_request_was_read() {
        let pace = Arc::new(ResponsePace::new(None, None, 300).expect("a pace"));
        let mut pacer = Pacer::default();
        pacer.delay_first_byte(100);
        pacer.begin_response(1_000);
        assert_eq!(pacer.take_first_byte_at_ms(), 1_101, "1,000 may have been 1,000.9");
        assert_eq!(pacer.take_first_byte_at_ms(), 0, "it has begun");
        pacer.begin_response(2_000);
        pacer.begin_route(&pace, 2_000);
        assert_eq!(pacer.take_first_byte_at_ms(), 2_301, "the longer one counts");
    }

    #[test]
    fn pauses_of_ours_do_not_count_against_the_peer() {
        let patience = ProgressTimeout { silence_ms: 1_000, rate_min: 100 };
        let mut pacer = Pacer::default();
        assert_eq!(pacer.send_deadline_ms(patience, 5_000), 6_000);
        pacer.note_sent(1, 10);
        // Whatever the time is now: the peer has used one millisecond.
        assert_eq!(pacer.send_deadline_ms(patience, 900_000), 901_000);
        pacer.note_sent(1_050, 0);
        // Ten bytes extend the silence by 100 ms, of which 49 are left.
        assert_eq!(pacer.send_deadline_ms(patience, 900_000), 900_049);
    }
}
