//! What tasks send in one turn leaves together, unless one of them holds the others up.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::*;

/// How long a slow task holds its worker up.
const SLOW: Duration = Duration::from_millis(5);
/// How long one that is held up waits.
const HELD_UP: Duration = Duration::from_millis(300);

/// Of a task that is held up.
struct Hold {
    begun: Sender<()>,
    /// May go on.
    told: Receiver<()>,
    was_told: Sender<bool>,
}

impl Hold {
    fn wait(&self) {
        // One may have been told after it gave up.
        while self.told.try_recv().is_ok() {}
        self.begun.send(()).expect("the test waits for it");
        let was_told = self.told.recv_timeout(HELD_UP).is_ok();
        self.was_told.send(was_told).expect("the test waits for it");
    }
}

/// Echoes bytes; with `s` it is slow, and with `h` held up.
async fn echo_bytes(mut connection: Connection, hold: Arc<Mutex<Hold>>) {
    loop {
        let byte = match connection.recv(true).await {
            Ok(piece) if !piece.bytes().is_empty() => piece.bytes()[0],
            _ => return,
        };
        match byte {
            b's' => thread::sleep(SLOW),
            b'h' => hold.lock().unwrap_or_else(PoisonError::into_inner).wait(),
            _ => {}
        }
        let mut out = Connection::outgoing();
        out.bytes.push(byte);
        if connection.send(out).await.is_err() {
            return;
        }
    }
}

/// A worker, and two clients whose tasks wait for what they send.
struct Scene {
    _workers: Served,
    driven: Driven,
    clients: [TcpStream; 2],
    begun: Receiver<()>,
    tell: Sender<()>,
    was_told: Receiver<bool>,
}

impl Scene {
    fn new() -> Self {
        let ((enter, begun), (tell, told), (say, was_told)) = (channel(), channel(), channel());
        let hold = Arc::new(Mutex::new(Hold { begun: enter, told, was_told: say }));
        let echo =
            move |connection| -> BoxTask { Box::pin(echo_bytes(connection, Arc::clone(&hold))) };
        let (workers, driven) = serve(&plan(1), echo);
        let clients = [connect(&workers), connect(&workers)];
        let mut scene = Self { _workers: workers, driven, clients, begun, tell, was_told };
        scene.send(*b"xx");
        let is_there = |client: &TcpStream| {
            client.set_nonblocking(true).expect("a socket can be told");
            let peeked = client.peek(&mut [0]);
            client.set_nonblocking(false).expect("a socket can be told");
            peeked.is_ok()
        };
        drive(&scene.driven, || scene.clients.iter().all(is_there));
        scene.receive(*b"xx");
        scene
    }

    /// Each in turn, so that their tasks run in this order.
    fn send(&mut self, bytes: [u8; 2]) {
        for (client, byte) in self.clients.iter_mut().zip(bytes) {
            client.write_all(&[byte]).expect("the server is there");
        }
    }

    fn receive(&mut self, bytes: [u8; 2]) {
        for (client, byte) in self.clients.iter_mut().zip(bytes) {
            let mut answer = [0];
            client.read_exact(&mut answer).expect("an answer comes");
            assert_eq!(answer, [byte]);
        }
    }

    fn turn(&self) {
        turn(&self.driven, Some(Duration::ZERO));
    }

    /// Whether the first answer leaves while the second task is held up in the same turn.
    fn first_leaves_alone(&mut self) -> bool {
        self.send(*b"xh");
        let first = self.clients[0].try_clone().expect("descriptors are left");
        let (begun, tell) = (&mut self.begun, self.tell.clone());
        thread::scope(|scope| {
            scope.spawn(move || {
                begun.recv().expect("the second task begins");
                first.peek(&mut [0]).expect("the first is answered at last");
                tell.send(()).expect("the second may wait for it");
            });
            turn(&self.driven, Some(Duration::ZERO));
        });
        self.receive(*b"xh");
        self.was_told.recv().expect("the second task has gone on")
    }
}

#[test]
fn what_is_sent_in_one_turn_leaves_at_its_end() {
    let mut scene = Scene::new();
    assert!(!scene.first_leaves_alone(), "the first has not waited for the second");
}

#[test]
fn after_a_slow_task_nothing_is_held_back_for_a_while() {
    let mut scene = Scene::new();
    // (Where this machine stands still for as long as that while, it is tried again.)
    let leaves = (0..5).any(|_| {
        scene.send(*b"xs");
        scene.turn();
        scene.receive(*b"xs");
        scene.first_leaves_alone()
    });
    assert!(leaves, "the first has waited for the second");
}
