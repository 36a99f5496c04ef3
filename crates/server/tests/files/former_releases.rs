//! Files of former releases: a page that was loaded before a deployment still finds its chunks.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use gustnado::config::{Config, SchedulerKind};

use crate::harness::client::get;
use crate::harness::folder::Dice;
use crate::harness::{Client, Folder, Server, Setup, wait_until};

on_every_server!(
    a_swap_under_load_breaks_no_page,
    an_old_chunk_is_found_and_nothing_else_of_the_old_release,
    old_chunks_are_found_after_a_restart_and_a_reload,
    old_chunks_are_gone_in_time,
    without_the_setting_the_old_release_is_gone,
);

/// A day, as an operator would say.
const LONG: Duration = Duration::from_hours(24);

/// The names of a release's chunks: hashes with a digit and a letter, as of a build tool.
fn chunks(release: usize) -> [String; 2] {
    [format!("app-a1{release:06x}.js"), format!("style.b2{release:06x}.css")]
}

/// The content of a chunk: one is small, and the other is sent by the kernel.
fn content(release: usize, chunk: usize) -> Vec<u8> {
    let size = [300, 20_000][chunk];
    format!("release {release}, chunk {chunk}; ")
        .into_bytes()
        .into_iter()
        .cycle()
        .take(size)
        .collect()
}

/// Makes the folder of a release.
fn release(folder: &Folder, release: usize) {
    let names = chunks(release);
    for (chunk, name) in names.iter().enumerate() {
        folder.file(&format!("releases/{release}/assets/{name}"), content(release, chunk));
    }
    let page = format!("{release} {}", names.join(" "));
    folder.file(&format!("releases/{release}/index.html"), page);
    folder.file(&format!("releases/{release}/old-{release}.txt"), "not hashed");
    folder.file(&format!("releases/{release}/assets/logo-{release}.svg"), "not hashed");
    folder.file(&format!("releases/{release}/c3{release:06x}.js"), "not beneath assets");
}

/// Makes a release the current one, by one rename.
fn swap(folder: &Folder, release: usize) {
    symlink(format!("releases/{release}"), folder.path("next")).expect("a link to the next");
    fs::rename(folder.path("next"), folder.path("current")).expect("in the old one's place");
}

fn config(setup: Setup, folder: &Folder, keep: Duration) -> Config {
    let mut config = Config { root: Some(folder.path("current")), ..setup.config() };
    config.routes.keep_old_assets = keep;
    config
}

/// Two releases, of which the first is the current one.
fn two_releases(setup: Setup, keep: Duration) -> (Folder, Server) {
    let folder = Folder::new();
    (1..=2).for_each(|at| release(&folder, at));
    swap(&folder, 1);
    let server = Server::start(config(setup, &folder, keep));
    assert!(server.get("/").text().starts_with("1 "));
    (folder, server)
}

/// Waits until all workers serve a release: each looks for a swap with its first request that comes
/// a second after its last look.
fn wait_for_release(server: &Server, release: usize) {
    thread::sleep(Duration::from_millis(1_200));
    assert!(server.get("/").text().starts_with(&format!("{release} ")));
}

/// A page as a browser tab has it.
#[derive(Clone, Copy)]
struct Tab {
    release: usize,
}

impl Tab {
    /// Loads the page.
    fn open(client: &mut Client) -> Self {
        let page = client.get("/");
        assert_eq!(page.status, 200);
        let text = page.text();
        let release = text.split(' ').next().and_then(|number| number.parse().ok());
        let release = release.unwrap_or_else(|| panic!("no page: {text}"));
        assert_eq!(text, format!("{release} {}", chunks(release).join(" ")), "a mixture");
        Self { release }
    }

    /// Loads one of its chunks.
    fn load(self, client: &mut Client, chunk: usize) {
        let name = &chunks(self.release)[chunk];
        let answer = client.get(&format!("/assets/{name}"));
        assert_eq!(answer.status, 200, "{name} of release {}", self.release);
        assert!(answer.body == content(self.release, chunk), "{name} is another release's");
    }
}

fn a_swap_under_load_breaks_no_page(setup: Setup) {
    const RELEASES: usize = 51;
    const CLIENTS: usize = 4;
    // On each backend; the other schedulers do the same with less.
    let requests = if setup.scheduler == SchedulerKind::Pool { 10_000 } else { 2_000 };
    let folder = Folder::new();
    (1..=RELEASES).for_each(|at| release(&folder, at));
    swap(&folder, 1);
    let server = Server::start(config(setup, &folder, LONG));
    let address = server.address();
    let [swaps, missing] = [const { AtomicUsize::new(0) }; 2];
    let sent = [const { AtomicUsize::new(0) }; CLIENTS];
    thread::scope(|scope| {
        for (client, sent) in sent.iter().enumerate() {
            let swaps = &swaps;
            scope.spawn(move || {
                let mut dice = Dice::new(client as u64 + 1);
                let mut tabs = Vec::new();
                while sent.load(Ordering::Relaxed) < requests / CLIENTS
                    || swaps.load(Ordering::Relaxed) < RELEASES - 1
                {
                    // Each connection may be another worker's.
                    let mut connection = Client::connect(address);
                    for _ in 0..3 {
                        let tab = Tab::open(&mut connection);
                        tabs.push(tab);
                        tab.load(&mut connection, 0);
                        // The other chunk is loaded later, up to ten releases in between.
                        let newest = tab.release;
                        tabs.retain(|tab| tab.release + 10 >= newest);
                        tabs[dice.below(tabs.len())].load(&mut connection, 1);
                        sent.fetch_add(3, Ordering::Relaxed);
                    }
                }
            });
        }
        for next in 2..=RELEASES {
            // No client may fall behind by more releases than are remembered.
            let due = (next - 1) * requests / CLIENTS / RELEASES;
            while sent.iter().any(|sent| sent.load(Ordering::Relaxed) < due) {
                thread::sleep(Duration::from_millis(1));
            }
            swap(&folder, next);
            // A worker that does not find something looks for a swap at once, while the other one
            // goes on with the old release for up to a second.
            let mut client = server.connect();
            wait_until("a worker serves the next release", || {
                missing.fetch_add(1, Ordering::Relaxed);
                assert_eq!(client.get("/none").status, 404);
                Tab::open(&mut client).release == next
            });
            swaps.fetch_add(1, Ordering::Relaxed);
        }
    });
    let sent: usize = sent.iter().map(|sent| sent.load(Ordering::Relaxed)).sum();
    assert!(sent >= requests - CLIENTS, "{sent} requests");
    wait_for_release(&server, RELEASES);
    let stats = server.stats();
    let missing = missing.into_inner() as u64;
    assert_eq!((stats.answers_4xx, stats.answers_5xx), (missing, 0));
}

fn an_old_chunk_is_found_and_nothing_else_of_the_old_release(setup: Setup) {
    let (folder, server) = two_releases(setup, LONG);
    swap(&folder, 2);
    wait_for_release(&server, 2);
    let mut client = server.connect();
    for _ in 0..2 {
        for tab in [Tab { release: 1 }, Tab { release: 2 }] {
            tab.load(&mut client, 0);
            tab.load(&mut client, 1);
        }
        for (path, status) in [
            ("/old-1.txt", 404),
            ("/assets/logo-1.svg", 404),
            ("/c3000001.js", 404),
            ("/releases/1/index.html", 404),
            ("/old-2.txt", 200),
            ("/assets/logo-2.svg", 200),
        ] {
            assert_eq!(client.get(path).status, status, "{path}");
        }
    }
    let tag = client.get("/assets/app-a1000001.js").expect_field("etag").to_owned();
    let fields = format!("If-None-Match: {tag}\r\n");
    let same = crate::harness::client::request("GET", "/assets/app-a1000001.js", &fields);
    assert_eq!(server.ask(same).status, 304);
    // Back to the first, as after a mistake: the second one's chunks are former ones now.
    swap(&folder, 1);
    wait_for_release(&server, 1);
    Tab { release: 2 }.load(&mut client, 0);
    assert_eq!(client.get("/old-2.txt").status, 404);
}

fn old_chunks_are_found_after_a_restart_and_a_reload(setup: Setup) {
    let (folder, server) = two_releases(setup, LONG);
    // Beside the releases, with a name of another pattern.
    folder.file("releases/backup/assets/app-d4000009.js", "a backup");
    swap(&folder, 2);
    server.stop();
    let server = Server::start(config(setup, &folder, LONG));
    let mut client = server.connect();
    Tab { release: 1 }.load(&mut client, 0);
    Tab { release: 1 }.load(&mut client, 1);
    for path in ["/old-1.txt", "/assets/logo-1.svg", "/assets/app-d4000009.js"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    let mut other = config(setup, &folder, LONG);
    other.routes.hidden = true;
    let builder = gustnado::Server::new().config(other);
    server.running().reload(builder).expect("the other settings are taken");
    wait_until("the chunk is found by the new settings", || {
        server.get("/assets/app-a1000001.js").status == 200
    });
}

fn old_chunks_are_gone_in_time(setup: Setup) {
    let (folder, server) = two_releases(setup, Duration::from_secs(2));
    swap(&folder, 2);
    wait_for_release(&server, 2);
    let chunk = "/assets/app-a1000001.js";
    wait_until("the old chunk is gone", || server.get(chunk).status == 404);
    assert_eq!(server.get("/assets/app-a1000002.js").status, 200);
    // For good, also for a server that starts now.
    drop(server);
    let server = Server::start(config(setup, &folder, Duration::from_secs(1)));
    thread::sleep(Duration::from_millis(1_100));
    assert_eq!(server.get(chunk).status, 404);
}

fn without_the_setting_the_old_release_is_gone(setup: Setup) {
    let (folder, server) = two_releases(setup, Duration::ZERO);
    swap(&folder, 2);
    wait_for_release(&server, 2);
    assert_eq!(server.ask(get("/assets/app-a1000001.js")).status, 404);
    assert_eq!(server.get("/assets/app-a1000002.js").status, 200);
}
