//! The load generator on its own: what it found, as JSON. For comparing it with others.
//!
//! ```text
//! load URL CONNECTIONS SECONDS [THREADS] [epoll|uring] [rate=R] [hold=N] [source=A.B.C] [churn]
//!      [pipeline=K] [check=K] [h2] [insecure]
//! ```

use std::time::Duration;

use gustnado_lab::load::{LoadProgress, ProgressObserver, StopHandle, run};
use gustnado_lab::plan::{BackendChoice, HttpVersion, LoadModel, LoadPlan, Trust};

struct Lines;

impl ProgressObserver for Lines {
    fn progress(&self, progress: &LoadProgress) {
        eprintln!(
            "{:?} {:.1} s: {} right, {} wrong, {} connections, {:.0}/s, p99 {:.0} us",
            progress.phase,
            progress.elapsed.as_secs_f64(),
            progress.requests,
            progress.errors,
            progress.connections,
            progress.requests_per_s,
            progress.p99_us
        );
    }
}

struct Quiet;

impl ProgressObserver for Quiet {
    fn progress(&self, _: &LoadProgress) {}
}

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: f64| {
        words.get(at).map_or(Ok(or), |word| word.parse::<f64>().map_err(|_| word.clone()))
    };
    let url = words.first().ok_or("usage: load URL CONNECTIONS SECONDS …")?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
    let mut plan = LoadPlan::closed(url, number(1, 1.0)? as u64);
    plan.end.after = Some(Duration::from_secs_f64(number(2, 1.0)?));
    plan.threads = Some(1);
    let (mut rate, mut hold) = (None, None);
    for word in words.iter().skip(3) {
        let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
        let parsed = || value.parse::<u32>().map_err(|_| word.clone());
        match word.split('=').next().unwrap_or_default() {
            "epoll" => plan.io = Some(BackendChoice::Epoll),
            "uring" => plan.io = Some(BackendChoice::Uring),
            "h2" => plan.http = HttpVersion::Http2,
            "insecure" => plan.tls.trust = Trust::Anyone,
            "churn" => plan.keep_alive = false,
            "rate" => rate = Some(f64::from(parsed()?)),
            "hold" => hold = Some(u64::from(parsed()?)),
            "pipeline" => plan.pipeline = parsed()?,
            "check" => plan.check_every = parsed()?,
            "source" => {
                let all = (1..=254).filter_map(|last| format!("{value}.{last}").parse().ok());
                plan.sources = all.collect();
            }
            "lines" => {}
            _ => plan.threads = Some(parsed()?),
        }
    }
    plan.load = match (hold, rate) {
        (Some(idle), rate_per_s) => LoadModel::Hold { idle, rate_per_s },
        (None, Some(rate_per_s)) => LoadModel::Open { rate_per_s },
        (None, None) => LoadModel::Closed,
    };
    let watch: &dyn ProgressObserver =
        if words.iter().any(|word| word == "lines") { &Lines } else { &Quiet };
    let outcome = run(&plan, watch, &StopHandle::default()).map_err(|error| error.to_string())?;
    println!("{}", serde_json::to_string_pretty(&outcome).map_err(|error| error.to_string())?);
    Ok(())
}
