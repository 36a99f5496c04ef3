//! Progress: a bar if standard error is a terminal, else a line now and then on request.

use super::options::ProgressOutput;
use crate::figures::{counted, grouped};
use gustnado_lab::figures::real;
use gustnado_lab::load::{LoadPhase, LoadProgress, ProgressObserver};
use gustnado_lab::plan::LoadPlan;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const LINE_EVERY_S: u64 = 5;
/// Redraws per second.
const DRAWS_PER_S: u8 = 10;

/// Shows progress.
#[derive(Clone)]
pub(super) struct BenchProgress(ProgressForm);

#[derive(Clone)]
enum ProgressForm {
    Nowhere,
    Bar(ProgressBar),
    /// Second of the last line.
    Lines(Arc<AtomicU64>),
}

impl BenchProgress {
    /// - `shown`: when to show it.
    /// - `plan`: the amount of work.
    pub(super) fn new(shown: ProgressOutput, plan: &LoadPlan) -> Self {
        Self(match (shown, stderr().is_terminal()) {
            (ProgressOutput::Never, _) | (ProgressOutput::OnTerminals, false) => {
                ProgressForm::Nowhere
            }
            (ProgressOutput::Always, false) => ProgressForm::Lines(Arc::new(AtomicU64::new(0))),
            (_, true) => ProgressForm::Bar(bar(plan)),
        })
    }

    /// Prints other output without garbling the bar.
    pub(super) fn suspended(&self, print: impl FnOnce()) {
        match &self.0 {
            ProgressForm::Bar(bar) => bar.suspend(print),
            _ => print(),
        }
    }

    /// Removes the bar.
    pub(super) fn clear(&self) {
        if let ProgressForm::Bar(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn bar(plan: &LoadPlan) -> ProgressBar {
    let length = plan.end.after.map(millis).or(plan.end.requests);
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_S);
    let style = ProgressStyle::with_template("[{wide_bar}] {msg}");
    let style = style.expect("the template is right").progress_chars("=> ");
    ProgressBar::with_draw_target(length, target).with_style(style)
}

impl ProgressObserver for BenchProgress {
    fn progress(&self, progress: &LoadProgress) {
        match &self.0 {
            ProgressForm::Nowhere => {}
            ProgressForm::Bar(bar) => {
                let (done, all) = share(progress);
                bar.update(|state| {
                    state.set_len(all);
                    state.set_pos(done);
                });
                bar.set_message(after_bar(progress));
            }
            ProgressForm::Lines(last_s) => {
                let now_s = progress.elapsed.as_secs();
                let since = last_s.load(Ordering::Relaxed);
                // A new phase begins at 0 again.
                if now_s >= since + LINE_EVERY_S || now_s < since {
                    last_s.store(now_s, Ordering::Relaxed);
                    let _ = writeln!(stderr(), "{}", line(progress));
                }
            }
        }
    }
}

/// The completed share: by time or by requests, whichever is nearer to its end.
pub(super) fn share(progress: &LoadProgress) -> (u64, u64) {
    let by_time = progress.of.map(|of| (millis(progress.elapsed.min(of)), millis(of).max(1)));
    let by_count = progress.asked.map(|asked| (progress.requests.min(asked), asked.max(1)));
    match (by_time, by_count) {
        (Some(time), Some(count)) => {
            // a/b < c/d, without a division.
            let product = |(a, _): (u64, u64), (_, d): (u64, u64)| u128::from(a) * u128::from(d);
            if product(time, count) < product(count, time) { count } else { time }
        }
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => (0, 1),
    }
}

/// The text after a bar, on the rest of the line.
pub(super) fn after_bar(progress: &LoadProgress) -> String {
    let phase = match progress.phase {
        LoadPhase::Measuring => String::new(),
        phase => format!("{phase:?}  ").to_lowercase(),
    };
    format!(
        "{phase}{}  {}/s  p50 {} p99 {} ms  {}  {}",
        time_left(progress),
        rate(progress),
        ms(progress.p50_us),
        ms(progress.p99_us),
        counted(progress.errors, "error"),
        counted(progress.connections, "connection")
    )
}

/// The remaining time, by whichever end is nearer; without an end, the elapsed time.
fn time_left(progress: &LoadProgress) -> String {
    let elapsed_s = progress.elapsed.as_secs_f64();
    let by_time = progress.of.map(|of| (of.as_secs_f64() - elapsed_s).max(0.0));
    let by_count = progress.asked.filter(|_| progress.requests > 0).map(|asked| {
        let left = real(asked.saturating_sub(progress.requests));
        elapsed_s * left / real(progress.requests)
    });
    match by_time.into_iter().chain(by_count).reduce(f64::min) {
        Some(left_s) if left_s >= 600.0 => format!("{:.0} min left", left_s / 60.0),
        Some(left_s) => format!("{left_s:.1} s left"),
        None => format!("{elapsed_s:.1} s"),
    }
}

/// Milliseconds; `-` before the first response.
fn ms(us: f64) -> String {
    if us > 0.0 { format!("{:.3}", us / 1_000.0) } else { "-".to_owned() }
}

fn rate(progress: &LoadProgress) -> String {
    let rate = format!("{:.0}", progress.requests_per_s);
    rate.parse().map_or(rate, grouped)
}

/// `measuring  4.2 of 10 s  12,345 requests  2,939/s  p50 0.301 ms  p99 1.200 ms  0 errors  …`
pub(super) fn line(progress: &LoadProgress) -> String {
    let elapsed = progress.elapsed.as_secs_f64();
    let time = match progress.of {
        Some(of) => format!("{elapsed:.1} of {:.1} s", of.as_secs_f64()),
        None => format!("{elapsed:.1} s"),
    };
    let requests = match progress.asked {
        Some(asked) => format!("{} of {}", grouped(progress.requests), grouped(asked)),
        None => grouped(progress.requests),
    };
    let noun =
        if progress.asked.unwrap_or(progress.requests) == 1 { "request" } else { "requests" };
    let rate = rate(progress);
    format!(
        "{}  {time}  {requests} {noun}  {rate}/s  p50 {} ms  p99 {} ms  {}  {}",
        format!("{:?}", progress.phase).to_lowercase(),
        ms(progress.p50_us),
        ms(progress.p99_us),
        counted(progress.errors, "error"),
        counted(progress.connections, "connection")
    )
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
