//! On a system that refuses every connection, as a security module or a filter does, the server
//! does not try for ever as fast as it can.

mod gustnado;

use gustnado::{PATIENCE, Server};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Makes `accept4` fail with EPERM by a seccomp filter, and executes the command that follows.
const REFUSING: &str = r"
import ctypes, os, struct, sys
number = {'x86_64': 288, 'aarch64': 242}[os.uname().machine]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
steps = b''.join(struct.pack('HBBI', *step) for step in steps)
memory = ctypes.create_string_buffer(steps)
program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 4, ctypes.addressof(memory)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
";
/// Time for which the server is watched.
const WATCHED: Duration = Duration::from_secs(1);

/// The processor time of a process so far, in hundredths of a second.
fn used_ticks(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    let (_, fields) = text.rsplit_once(") ").expect("the name is in brackets");
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    ticks(11) + ticks(12)
}

#[test]
fn accepting_that_is_refused_costs_no_processor() {
    if !Command::new("python3")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|it| it.success())
    {
        println!("skipped: there is no python3");
        return;
    }
    let ours = gustnado::command(&[]);
    let mut command = Command::new("python3");
    command.args(["-c", REFUSING]).arg(ours.get_program()).args(["--io", "epoll", "--port", "0"]);
    let mut server = Server::start_by(&mut command);
    // They wait in the backlog: each try meets them again.
    let clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    let (before, begun) = (used_ticks(server.id()), Instant::now());
    thread::sleep(WATCHED);
    let (used, watched) = (used_ticks(server.id()) - before, begun.elapsed());
    // A worker that spins takes a whole processor, unless others use it too.
    assert!(u128::from(used) * 10 < watched.as_millis() / 5, "{used} ticks in {watched:?}");
    server.signal(rustix::process::Signal::TERM);
    let asked = Instant::now();
    assert_eq!(server.wait(), Some(0), "{:#?}", server.seen);
    assert!(asked.elapsed() < PATIENCE / 4, "it does not wait for what is refused");
    drop(clients);
}
