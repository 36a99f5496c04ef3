//! Waiting for less than a millisecond, for tasks that keep a beat.
//!
//! Timers of tasks count in milliseconds, which is all that time-outs need. This one is a timer of
//! the kernel with a descriptor of its own, so a thread has one, not one per task.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use gustnado_reactor::{Interest, Io};
use rustix::fd::AsFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::exec::executor::context;
use crate::exec::waits::WaitsOn;

/// A timer that is exact to what the kernel can do, some ten microseconds. It belongs to the task
/// that waits on it.
#[derive(Debug)]
pub struct PreciseTimer {
    io: Io,
}

impl PreciseTimer {
    /// Opens a timer.
    ///
    /// # Errors
    /// The process is out of descriptors.
    ///
    /// # Panics
    /// Outside a task.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let io = context::with(|ctx| ctx.reactor.borrow_mut().adopt(timer))?;
        Ok(Self { io })
    }

    /// Waits for so long. Nothing is waited for if that is zero.
    ///
    /// # Errors
    /// The kernel refuses, which it does not do with a timer that is open.
    pub async fn wait(&mut self, duration: Duration) -> io::Result<()> {
        if duration.is_zero() {
            return Ok(());
        }
        self.set(duration)?;
        poll_fn(|_| {
            context::with(|ctx| {
                ctx.waits_on(WaitsOn::Timer);
                ctx.reactor.borrow_mut().ready(&self.io, Interest::Read, ctx.token())
            })
        })
        .await;
        Ok(())
    }

    /// Restarts the timer, which also forgets that it had run out before.
    fn set(&self, duration: Duration) -> io::Result<()> {
        let tv_sec = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let it_value = Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        context::with(|ctx| {
            let mut reactor = ctx.reactor.borrow_mut();
            reactor.used_up(&self.io, Interest::Read);
            let Some(timer) = reactor.fd(&self.io) else { return Ok(()) };
            let once = Itimerspec { it_interval, it_value };
            timerfd_settime(timer.as_fd(), TimerfdTimerFlags::empty(), &once)?;
            Ok(())
        })
    }
}

impl Drop for PreciseTimer {
    fn drop(&mut self) {
        context::try_with(|ctx| ctx.reactor.borrow_mut().close(self.io.take()));
    }
}
