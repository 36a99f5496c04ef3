//! Handlers with work to do, as `contests/workloads.toml` compares them with other languages': one
//! counts primes, one needs a megabyte.
//!
//! ```text
//! cargo run --release --example workloads -- 127.0.0.1:3456
//! curl http://127.0.0.1:3456/primes
//! ```

use std::env;

use gustnado::{Request, Server};

const MOST: usize = 20_000;
const WORDS: u32 = 262_144;

/// The server, before it listens.
pub(crate) fn server() -> Server {
    Server::new()
        .get("/primes", |_: &Request| primes().to_string())
        .get("/megabyte", |_: &Request| megabyte().to_string())
}

/// How many primes there are below 20,000, by the sieve of Eratosthenes.
fn primes() -> usize {
    let mut composite = vec![false; MOST];
    let mut count = 0;
    for n in 2..MOST {
        if composite[n] {
            continue;
        }
        count += 1;
        for multiple in (n * n..MOST).step_by(n) {
            composite[multiple] = true;
        }
    }
    count
}

/// The sum of a megabyte of numbers.
fn megabyte() -> u64 {
    let words: Vec<u32> = (0..WORDS).map(|at| at * 7 % 65_521).collect();
    words.iter().copied().map(u64::from).sum()
}

fn main() -> gustnado::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl http://{address}/primes");
    server().listen(&address)?.run()
}
