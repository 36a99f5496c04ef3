//! Reads rates that change: `--ramp` and `--stages`.

use super::flags::{in_unit, rate};
use crate::usage_error::UsageError;
use gustnado::config::Unit;
use gustnado_lab::plan::{LoadModel, RateStage};
use std::time::Duration;

/// Length of a step, unless given.
const STEP: Duration = Duration::from_secs(5);
/// Shortest step or stage, in milliseconds.
const STEP_MS_MIN: u64 = 100;
/// Most stages.
const STAGES_MAX: usize = 1_000;

/// Reads steps of one length: `FROM:TO:STEPS[:SECONDS]`.
///
/// # Errors
/// The first mistake.
pub(super) fn ramp(text: &str) -> Result<LoadModel, UsageError> {
    let wrong = |what: &str| {
        let form = "expected FROM:TO:STEPS[:SECONDS] such as 1000:20000:10:5";
        UsageError::of_usage(format!("--ramp: {form}, found {text:?}{what}"))
    };
    let parts: Vec<&str> = text.split(':').collect();
    let (from, to, steps, step) = match parts[..] {
        [from, to, steps] => (from, to, steps, STEP),
        [from, to, steps, seconds] => {
            let seconds = seconds.trim_end_matches('s').parse::<f64>().ok();
            let step = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
            let step = step.filter(|step| *step >= Duration::from_millis(STEP_MS_MIN));
            (from, to, steps, step.ok_or_else(|| wrong("; a step lasts 0.1 seconds or more"))?)
        }
        _ => return Err(wrong("")),
    };
    let steps: Option<u16> = steps.parse().ok().filter(|steps| (2..=1_000).contains(steps));
    let steps = steps.ok_or_else(|| wrong("; there are 2 to 1000 steps"))?;
    let (from, to) = (rate("ramp", from)?, rate("ramp", to)?);
    if from >= to {
        return Err(wrong("; the first rate is the smaller one"));
    }
    Ok(LoadModel::rising((from, to), steps, step))
}

/// Reads stages, each with its own length: `TIME:RATE,…`.
///
/// # Errors
/// The first mistake.
pub(super) fn stages(text: &str) -> Result<LoadModel, UsageError> {
    let wrong = |what: &str| {
        let form = "expected TIME:RATE,… such as 10s:100,30s:1000";
        UsageError::of_usage(format!("--stages: {form}, found {text:?}{what}"))
    };
    let stage = |part: &str| {
        let (time, per_s) = part.trim().split_once(':').ok_or_else(|| wrong(""))?;
        let ms = in_unit(Unit::Duration, "stages", time)?;
        if ms < STEP_MS_MIN {
            return Err(wrong("; a stage lasts 0.1 seconds or more"));
        }
        let length = Duration::from_millis(ms);
        Ok(RateStage { rate_per_s: rate("stages", per_s)?, length })
    };
    let stages = text.split(',').map(stage).collect::<Result<Vec<_>, _>>()?;
    if stages.len() > STAGES_MAX {
        return Err(wrong("; there are at most 1000 stages"));
    }
    Ok(LoadModel::Ramp { stages })
}
