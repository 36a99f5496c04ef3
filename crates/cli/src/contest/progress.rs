//! Progress of a contest: on a terminal, a bar below its lines with the remaining time.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use gustnado_lab::contest::ContestEvent;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Console;

/// Shows the events of a contest.
pub(super) struct ContestProgress {
    output: Console,
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
}

impl ContestProgress {
    pub(super) fn new(output: Console) -> Self {
        Self { output, bar: stderr().is_terminal().then(bar) }
    }

    pub(super) fn show(&self, event: ContestEvent<'_>) {
        match (event, &self.bar) {
            (ContestEvent::Line(line), Some(bar)) => bar.suspend(|| self.output.say(line)),
            (ContestEvent::Line(line), None) => self.output.say(line),
            (ContestEvent::Progress { .. }, None) => {}
            (ContestEvent::Progress { done, all, left }, Some(bar)) => {
                bar.set_length(all as u64);
                bar.set_position(done as u64);
                bar.set_message(time_left(left));
            }
        }
    }

    /// Removes the bar.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("[{wide_bar}] {pos}/{len}  {msg}");
    let style = style.expect("the template is right").progress_chars("=> ");
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
}

/// `about 12 minutes left`
fn time_left(left: Duration) -> String {
    match left.as_secs() {
        seconds @ 0..90 => format!("about {seconds} s left"),
        seconds => format!("about {} minutes left", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::time_left;
    use std::time::Duration;

    #[test]
    fn the_time_left_is_said_in_a_unit_that_fits() {
        assert_eq!(time_left(Duration::from_secs(45)), "about 45 s left");
        assert_eq!(time_left(Duration::from_secs(700)), "about 12 minutes left");
    }
}
