//! Memory of sleeping tasks: what the process grows by, as the kernel counts it.

use std::process::Command;

use crate::{gustnado_side, tokio_side};

/// The word that makes this program measure, say the figure, and end.
const CHILD: &str = "measure-sleepers";

/// Bytes by which a fresh process grows for each sleeping task.
pub(crate) fn bytes_per_sleeper(name: &str, detached: bool, count: usize) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let how = if detached { "detached" } else { "joined" };
    let output = Command::new(program)
        .args([CHILD, name, how, &count.to_string()])
        .output()
        .map_err(|error| format!("no process for {name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| {
        format!("{name} gave no figure: {}", String::from_utf8_lossy(&output.stderr).trim())
    })
}

/// What a process that was started by [`bytes_per_sleeper`] has to say.
#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
pub(crate) fn as_child(arguments: &[String]) -> Option<f64> {
    let [word, name, how, count] = arguments else { return None };
    let count: usize = count.parse().ok()?;
    if word != CHILD {
        return None;
    }
    let contenders = [gustnado_side::CONTENDER, tokio_side::CONTENDER];
    let contender = contenders.into_iter().find(|contender| contender.name == name)?;
    // A few first: the runtime itself is not what is measured.
    (contender.sleepers)(100, how == "detached", &mut || ());
    let before = resident_bytes()?;
    let mut grown = None;
    (contender.sleepers)(count, how == "detached", &mut || {
        grown = resident_bytes().map(|after| after.saturating_sub(before));
    });
    Some(grown? as f64 / count as f64)
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
