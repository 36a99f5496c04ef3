//! A dump as a table for people.

use std::fmt;
use std::time::Duration;

use super::{Dump, TaskInfo, TaskState};
use crate::exec::wakers::task_id::TaskId;

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<_> = self.tasks.iter().map(row).collect();
        let head = ["task", "worker", "state", "since", "name"].map(str::to_owned);
        let mut widths = head.each_ref().map(|cell| cell.chars().count());
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for row in std::iter::once(&head).chain(&rows) {
            write_row(f, row, &widths)?;
        }
        if self.left_out > 0 {
            writeln!(f, "and {} more", self.left_out)?;
        }
        for worker in &self.silent {
            writeln!(f, "worker {worker} did not answer: a task holds it")?;
        }
        Ok(())
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &[String; 5], widths: &[usize; 5]) -> fmt::Result {
    let mut line = String::new();
    for ((at, cell), width) in row.iter().enumerate().zip(widths) {
        // What is counted stands to the right, what is read to the left.
        let padded = match at {
            1 | 3 => format!("{cell:>width$}  "),
            _ => format!("{cell:<width$}  "),
        };
        line.push_str(&padded);
    }
    writeln!(f, "{}", line.trim_end())
}

fn row(task: &TaskInfo) -> [String; 5] {
    let id = TaskId::of_token(task.id);
    let state = match task.state {
        TaskState::Running => "running".to_owned(),
        TaskState::Ready => "ready".to_owned(),
        TaskState::Waiting { on } => on.to_string(),
    };
    [
        format!("{}.{}.{}", id.wake_target(), id.slot(), id.generation()),
        task.worker.map_or_else(String::new, |worker| worker.to_string()),
        state,
        task.since.map_or_else(String::new, seconds),
        // A name must not draw lines of its own.
        task.name.iter().flat_map(|name| name.chars()).flat_map(char::escape_debug).collect(),
    ]
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::exec::waits::WaitsOn;

    #[test]
    fn columns_line_up_and_what_is_missing_is_said() {
        let waits = TaskState::Waiting { on: WaitsOn::MailboxReceive };
        let dump = Dump {
            tasks: vec![
                TaskInfo {
                    id: TaskId::new(3, 12, 1).token(),
                    name: None,
                    worker: Some(0),
                    state: TaskState::Running,
                    since: None,
                },
                TaskInfo {
                    id: TaskId::new(3, 7, 0).token(),
                    name: Some("ticker\n".into()),
                    worker: None,
                    state: waits,
                    since: Some(Duration::from_secs(75)),
                },
            ],
            left_out: 2,
            silent: vec![1],
        };
        let expected = "\
            task    worker  state              since  name\n\
            3.12.1       0  running\n\
            3.7.0           mailbox receive  75.00 s  ticker\\n\n\
            and 2 more\n\
            worker 1 did not answer: a task holds it\n";
        assert_eq!(dump.to_string(), expected);
    }
}
