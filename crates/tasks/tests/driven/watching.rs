//! Descriptors of the caller's, watched beside the worker's own sockets.

use std::cell::RefCell;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use gustnado_tasks::{Driven, Wants};

use crate::{
    PATIENCE, READ, WRITE, connect, drive, echo_once, found, full_pipe, plan, start, start_bare,
    turn,
};

#[test]
fn pipes_are_watched_for_what_is_wanted_as_long_as_it_lasts() {
    let (_workers, driven) = start_bare();
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    driven.watch(reader.as_raw_fd(), READ, 11).expect("a pipe can be watched");
    driven.watch(writer.as_raw_fd(), WRITE, 22).expect("a pipe can be watched");
    assert_eq!(driven.watches(), 2);
    let again = driven.watch(reader.as_raw_fd(), READ, 33).expect_err("it is watched");
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    assert_eq!(found(&driven), [(22, [false, true, false, false])]);
    driven.rewatch(writer.as_raw_fd(), Wants::default()).expect("it is watched");
    assert_eq!(found(&driven), []);
    rustix::io::write(&writer, b"xy").expect("there is room");
    for _ in 0..3 {
        assert_eq!(found(&driven), [(11, [true, false, false, false])]);
    }
    let (_, ready) = turn(&driven, None);
    assert_eq!(ready.len(), 1);
    rustix::io::read(&reader, &mut [0; 8][..]).expect("two bytes are there");
    assert_eq!(found(&driven), []);
    drop(writer);
    assert_eq!(found(&driven), [(11, [false, false, false, true])]);
    driven.unwatch(reader.as_raw_fd()).expect("it is watched");
    assert_eq!((found(&driven), driven.watches()), (vec![], 1));
    let error = driven.unwatch(reader.as_raw_fd()).expect_err("it is not watched any more");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    driven.watch(writer.as_raw_fd(), Wants::default(), 44).expect("a pipe can be watched");
    drop(reader);
    assert_eq!(found(&driven), [(44, [false, false, true, false])]);
}

#[test]
fn errors_keep_their_numbers() {
    let (_workers, driven) = start_bare();
    let file = File::open("/proc/self/exe").expect("the program is a file");
    let number_of = |result: std::io::Result<()>| result.expect_err("refused").raw_os_error();
    let (eperm, ebadf, enoent) = (Some(1), Some(9), Some(2));
    assert_eq!(number_of(driven.watch(file.as_raw_fd(), READ, 1)), eperm);
    assert_eq!(number_of(driven.watch(-1, READ, 1)), ebadf);
    assert_eq!(number_of(driven.watch(1_000_000, READ, 1)), ebadf);
    assert_eq!(number_of(driven.rewatch(file.as_raw_fd(), READ)), enoent);
    assert_eq!(number_of(driven.unwatch(-1)), ebadf);
    assert_eq!(driven.watches(), 0);
}

#[test]
fn a_closed_descriptor_is_not_heard_of_any_more_nor_taken_for_its_successor() {
    let (workers, driven) = start(&plan(1));
    let (reader, _writer) = full_pipe();
    let number = reader.as_raw_fd();
    driven.watch(number, READ, 1).expect("a pipe can be watched");
    assert_eq!(found(&driven).len(), 1);
    drop(reader);
    assert_eq!(found(&driven), []);
    // The same number again, watched: its key is the new one's.
    let (other, _other_writer) = full_pipe();
    if rustix::io::fcntl_getfd(&other).is_ok() && other.as_raw_fd() == number {
        assert_eq!(found(&driven), [], "nobody has asked for this one");
        let error = driven.rewatch(number, READ).expect_err("this one was never watched");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    driven.watch(other.as_raw_fd(), READ, 2).expect("a pipe can be watched");
    assert_eq!(found(&driven), [(2, [true, false, false, false])]);
    driven.unwatch(other.as_raw_fd()).expect("it is watched");
    // A connection of ours that gets the number of a closed one is not taken out with it.
    let (reader, _writer) = full_pipe();
    let number = reader.as_raw_fd();
    driven.watch(number, READ, 3).expect("a pipe can be watched");
    let mut clients = [(); 4].map(|()| connect(&workers));
    drop(reader);
    drive(&driven, || workers.connections_open() == 4);
    _ = driven.unwatch(number);
    let asking = thread::spawn(move || clients.iter_mut().for_each(echo_once));
    drive(&driven, || asking.is_finished());
    asking.join().expect("all echoes have come");
}

#[test]
fn one_that_lives_on_elsewhere_can_be_unwatched_after_its_number_is_closed() {
    let (workers, driven) = start(&plan(1));
    let mut client = connect(&workers);
    drive(&driven, || workers.connections_open() == 1);
    let (reader, _writer) = full_pipe();
    let (second, _second_writer) = full_pipe();
    let _held = reader.try_clone().expect("a second handle");
    let number = reader.as_raw_fd();
    driven.watch(number, READ, 1).expect("a pipe can be watched");
    driven.watch(second.as_raw_fd(), READ, 2).expect("a pipe can be watched");
    drop(reader);
    assert_eq!(found(&driven).len(), 2, "as the kernel has it");
    driven.unwatch(number).expect("it is watched");
    for _ in 0..3 {
        assert_eq!(found(&driven), [(2, [true, false, false, false])]);
    }
    driven.unwatch(second.as_raw_fd()).expect("it is watched");
    let began = Instant::now();
    turn(&driven, Some(Duration::from_millis(20)));
    assert!(began.elapsed() >= Duration::from_millis(19), "it turns without end");
    // What was registered before that still is.
    let asking = thread::spawn(move || echo_once(&mut client));
    drive(&driven, || asking.is_finished());
    asking.join().expect("an echo has come");
    driven.waker().wake();
    turn(&driven, None);
}

#[test]
fn as_many_are_found_in_one_turn_as_are_ready() {
    let (_workers, driven) = start_bare();
    let pipes: Vec<_> = (0..300).map(|_| full_pipe()).collect();
    for (key, (reader, _)) in (0..).zip(&pipes) {
        driven.watch(reader.as_raw_fd(), READ, key).expect("a pipe can be watched");
    }
    let mut keys: Vec<_> = found(&driven).iter().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    assert_eq!(keys, (0..300).collect::<Vec<_>>());
}

#[test]
fn what_a_task_unwatches_is_not_reported_by_its_turn() {
    thread_local! {
        static DRIVEN: RefCell<Option<Driven>> = const { RefCell::new(None) };
    }
    let (_workers, driven) = start_bare();
    let (reader, _writer) = full_pipe();
    let number = reader.as_raw_fd();
    driven.watch(number, READ, 1).expect("a pipe can be watched");
    let tell = async move {
        DRIVEN.with_borrow(|driven| {
            let driven = driven.as_ref().expect("it was put there");
            driven.unwatch(number).expect("it is watched");
            let nested = driven.turn(None, &mut Vec::new(), &mut |sleep| sleep());
            assert!(nested.is_err(), "a turn within a turn");
        });
    };
    driven.spawn(tell).expect("a slot is free");
    DRIVEN.set(Some(driven));
    DRIVEN.with_borrow(|driven| {
        let driven = driven.as_ref().expect("it was put there");
        assert_eq!((found(driven), driven.watches()), (vec![], 0));
    });
    drop(DRIVEN.take());
}

#[test]
fn a_socket_of_the_callers_is_served_beside_connections() {
    let (workers, driven) = start(&plan(1));
    let (mine, mut theirs) = UnixStream::pair().expect("a pair");
    mine.set_nonblocking(true).expect("it can");
    driven.watch(mine.as_raw_fd(), READ, 1).expect("a socket can be watched");
    let mut client = connect(&workers);
    let asking = thread::spawn(move || {
        theirs.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero is valid");
        for _ in 0..50 {
            echo_once(&mut client);
            theirs.write_all(b"y").expect("the caller is there");
            theirs.read_exact(&mut [0]).expect("the caller answers");
        }
    });
    let began = Instant::now();
    while !asking.is_finished() && began.elapsed() < PATIENCE {
        let (_, ready) = turn(&driven, Some(Duration::from_millis(50)));
        for _ in ready.iter().filter(|found| found.key == 1 && !found.hang_up) {
            let mut byte = [0];
            if (&mine).read(&mut byte).is_ok_and(|len| len == 1) {
                (&mine).write_all(&byte).expect("there is room");
            }
        }
    }
    asking.join().expect("both have answered");
    driven.unwatch(mine.as_raw_fd()).expect("it is watched");
}
