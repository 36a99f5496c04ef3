//! Whole contests, with servers and a load generator that are shell scripts and Python: nothing
//! here measures.

use super::*;
use crate::statistics::summarise;

/// Prints an outcome as `gustnado bench --json` would, after requesting the page once with what
/// every machine has: bash's own connections.
const GENERATOR: &str = r#"
url=$1
place=${url#http://127.0.0.1:}
exec 3<>/dev/tcp/127.0.0.1/${place%%/*} || { echo refused >&2; exit 1; }
printf 'GET /%s HTTP/1.0\r\n\r\n' "${place#*/}" >&3
cat <&3 >/dev/null
sleep 0.2
now=$(date +%s.%N)
cat <<END
{"format":1,"tool":"fake","urls":["$url"],"started_unix_s":$now,"duration_s":0.2,
"model":{"name":"closed","sentence":"","connections":1,"pipeline":1,"keep_alive":true,
"threads":1,"io":"epoll"},
"requests":1000,"sent":1000,"requests_per_s":5000,
"errors":{"refused":0,"unconnected":0,"no_port":0,"reset":0,"timed_out":0,"short":0,"status":0,
"length":0,"body":0,"unreadable":0},"statuses":{"200":1000},"bytes_received":1,"bytes_sent":1,
"connections_opened":1,"latency_us":{"count":1000,"min":1,"mean":2,"sd":1,"max":9,
"percentiles":{"50":2,"99":3,"99.9":4}},"histogram":"",
"generator":{"cpu_s":0,"cpu_user_s":0,"cpu_system_s":0,"cpu_share":0,"busiest_thread_share":0,
"bottleneck":false,"verdict":""},
"kernel":{"retransmits":0,"listen_overflows":0,"listen_drops":0,"syn_cookies":0,"resets":0},
"warnings":[],"series":[]}
END
"#;

const SERVER: &str = r#"["python3", "-m", "http.server", "--bind", "127.0.0.1", "-d", "{root}",
    "{port}"]"#;

/// A contest of these contenders, as its file says it.
fn contest(contenders: &str, output: &Path) -> ContestSpec {
    let text = format!(
        "rounds = 2\n[page]\nbytes = 300\n{contenders}\n[[scenario]]\nname = \"page\"\n\
         connections = 1\nduration = \"200ms\"\n"
    );
    let mut contest = file::parse(Path::new("c.toml"), &text).expect("it is right");
    contest.output = output.to_owned();
    contest
}

fn contender(name: &str, command: &str, more: &str) -> String {
    format!(
        "[[contender]]\nname = \"{name}\"\ncommand = {command}\nready_timeout = \"8s\"\n{more}\n"
    )
}

fn tools() -> Tools {
    let generator = ["bash", "-c", GENERATOR, "generator"].map(str::to_owned).to_vec();
    Tools { program: "/proc/self/exe".into(), generator, launcher: Vec::new() }
}

/// Returns whether what these tests are made of is there; says so if not.
fn is_possible() -> bool {
    let possible = tool::find("python3") && tool::find("bash");
    if !possible {
        println!("skipped: there is no python3 or no bash");
    }
    possible
}

fn held(contest: &ContestSpec, stop: &AtomicBool) -> (Record, Vec<String>) {
    let mut lines = Vec::new();
    let record = run(contest, &tools(), false, stop, &mut |event| match event {
        ContestEvent::Line(line) => lines.push(line.to_owned()),
        ContestEvent::Progress { done, all, left } => {
            lines.push(format!("{done} of {all}, {}", left > Duration::ZERO));
        }
    });
    (record.expect("it begins"), lines)
}

#[test]
fn rounds_are_interleaved_and_everything_is_kept() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let both = contender("a", SERVER, "") + &contender("b", SERVER, "");
    let (record, lines) = held(&contest(&both, folder.path()), &AtomicBool::new(false));
    assert_eq!(record.cut, None, "{lines:?}");
    let progress: Vec<&String> = lines.iter().filter(|line| line.contains(" of 4, ")).collect();
    assert_eq!(progress, ["1 of 4, true", "2 of 4, true", "3 of 4, true", "4 of 4, false"]);
    let order: Vec<_> = record.runs.iter().map(|run| (&*run.contender, run.round)).collect();
    assert_eq!(order, [("a", 1), ("b", 1), ("a", 2), ("b", 2)]);
    for run in &record.runs {
        assert_eq!(run.failure, None);
        assert!(run.usage.memory_before_bytes > 1 << 20, "{:?}", run.usage);
        assert!(run.usage.descriptors_peak > 2 && run.usage.processes >= 1);
        assert!(run.usage.samples.len() >= 2);
    }
    assert_eq!(record.scenarios[0].body_bytes, 300);
    assert_eq!(store::read(folder.path()).expect("kept"), record);
    assert!(log_of(folder.path(), "a").exists());
    let rows = summarise(&record);
    assert!(rows.iter().all(|row| row.rounds == 2 && row.missing.is_none()));
    assert!(table::is_well(&record));
    assert!(table::text(&record, &str::to_owned, 80).contains("requests/s"));
}

#[test]
fn who_cannot_take_part_is_a_row_that_says_why_and_the_rest_go_on() {
    if !is_possible() {
        return;
    }
    let other = r#"["bash", "-c", "mkdir o; echo other > o/page.html; exec python3 -m http.server \
        --bind 127.0.0.1 -d o {port}"]"#
        .replace("\\\n        ", "");
    let all = [
        contender("odd", &other, "allow_unequal = \"it is the reference, and no measure\""),
        contender("good", SERVER, ""),
        contender("absent", "[\"no-such-program\"]", "install = \"buy it\""),
        contender("bare", SERVER, "installed_if = [[\"python3\", \"-c\", \"import no_such\"]]"),
        contender("dying", r#"["sh", "-c", "echo no memory >&2; exit 3"]"#, ""),
        contender("silent", r#"["sleep", "60"]"#, "ready_timeout = \"300ms\"").replacen(
            "ready_timeout = \"8s\"\n",
            "",
            1,
        ),
        contender("unequal", &other, ""),
        contender("forgiven", &other, "allow_unequal = \"it is known\""),
        contender("unmade", SERVER, "set_up = [[\"sh\", \"-c\", \"echo broken; exit 1\"]]"),
    ]
    .concat();
    let folder = tempfile::tempdir().expect("a folder");
    let contest = contest(&all, folder.path()).with_rounds(1);
    let (record, _) = held(&contest, &AtomicBool::new(false));
    let fate = |name: &str| {
        let known = record.contenders.iter().find(|one| one.name == name).expect("in the record");
        known.fate.clone()
    };
    assert_eq!(fate("good"), Fate::Ran);
    let absent =
        Fate::NotInstalled("there is no program no-such-program; to install it: buy it".to_owned());
    assert_eq!(fate("absent"), absent);
    let Fate::NotInstalled(why) = fate("bare") else { panic!("{:?}", fate("bare")) };
    assert!(why.contains("No module named 'no_such'; install it, or correct the command"), "{why}");
    for (name, words) in [
        ("dying", "it did not start: it ended with exit code 3, saying: no memory"),
        ("silent", "it was not ready within 0.3 s: cannot connect to "),
        ("unmade", "failed: broken"),
    ] {
        let Fate::Failed(why) = fate(name) else { panic!("{name}: {:?}", fate(name)) };
        assert!(why.contains(words), "{why}");
    }
    let unequal = Fate::Unequal("page.html: expected 300 bytes, found 6".to_owned());
    assert_eq!(fate("unequal"), unequal);
    let ran: Vec<_> = record.runs.iter().map(|run| run.contender.as_str()).collect();
    assert_eq!(ran, ["odd", "good", "forgiven"]);
    assert!(record.method.iter().any(|line| line.contains("it is known")));
    assert!(!table::is_well(&record));
    let page = table::checks(&record);
    assert!(page.contains("NOT THE SAME WORK") && page.contains("not installed"), "{page}");
}

#[test]
fn a_contender_that_dies_under_load_is_a_run_that_says_so() {
    if !is_possible() {
        return;
    }
    // It responds to the requests before the load, and ends a moment later.
    let mortal = r#"["bash", "-c", "python3 -m http.server --bind 127.0.0.1 -d {root} {port} & \
        sleep 2.5; echo that was it; kill $!; exit 5"]"#
        .replace("\\\n        ", "");
    let folder = tempfile::tempdir().expect("a folder");
    let both = contender("mortal", &mortal, "") + &contender("good", SERVER, "");
    let mut contest = contest(&both, folder.path()).with_rounds(1);
    // The generator stays until it is dead.
    contest.scenarios[0].arguments = vec!["--stay".to_owned()];
    let mut tools = tools();
    tools.generator[2] = GENERATOR.replace("sleep 0.2", "sleep 4");
    let stop = AtomicBool::new(false);
    let record = run(&contest, &tools, false, &stop, &mut |_| {}).expect("it begins");
    let why = record.runs[0].failure.clone().expect("it died");
    assert!(why.contains("under load") && why.contains("exit code 5"), "{why}");
    assert_eq!(record.runs[1].failure, None);
}

#[test]
fn an_end_asked_for_keeps_what_was_measured() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let contest = contest(&contender("a", SERVER, ""), folder.path()).with_rounds(50);
    let stop = AtomicBool::new(false);
    let mut runs = 0;
    let record = run(&contest, &tools(), false, &stop, &mut |event| {
        runs += usize::from(matches!(event, ContestEvent::Line(line) if line.contains("round")));
        stop.store(runs == 2, Ordering::Relaxed);
    });
    let record = record.expect("it begins");
    assert_eq!(record.runs.len(), 2);
    assert!(record.cut.as_ref().is_some_and(|why| why.contains("interrupted")));
    assert_eq!(store::read(folder.path()).expect("kept"), record);
}

#[test]
fn a_contest_that_was_broken_off_goes_on_where_it_was() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let both = contender("a", SERVER, "") + &contender("b", SERVER, "");
    let both = contest(&both, folder.path());
    let stop = AtomicBool::new(false);
    let first = run(&both, &tools(), false, &stop, &mut |event| {
        let is_run = matches!(event, ContestEvent::Line(line) if line.contains("round"));
        stop.fetch_or(is_run, Ordering::Relaxed);
    });
    let first = first.expect("it begins");
    assert_eq!(first.runs.len(), 1);
    stop.store(false, Ordering::Relaxed);
    let whole = run(&both, &tools(), true, &stop, &mut |_| {}).expect("it goes on");
    assert_eq!((whole.runs.len(), &whole.cut), (4, &None));
    assert_eq!(whole.runs[0], first.runs[0]);
    assert!(whole.took_s > first.took_s && whole.started_unix_s <= first.started_unix_s);
    assert_eq!(store::read(folder.path()).expect("kept"), whole);
    let fewer = both.with_contenders(&["b".to_owned()]).expect("there is one");
    let error = run(&fewer, &tools(), true, &stop, &mut |_| {}).expect_err("another selection");
    assert!(error.to_string().contains("the selection of contenders"), "{error}");
    assert_eq!(store::read(folder.path()).expect("untouched"), whole);
}

#[test]
fn an_old_record_in_the_folder_is_named_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("contest.json"), "{\"format\":1}").expect("written");
    let error = store::read(folder.path()).expect_err("another format").to_string();
    assert!(error.contains("contest.json: expected a record of format 2, found 1"), "{error}");
}

#[test]
fn less_than_a_whole_contest_can_be_held() {
    let folder = tempfile::tempdir().expect("a folder");
    let both = contender("a", "[\"a\"]", "") + &contender("b", "[\"b\"]", "");
    let whole = contest(&both, folder.path());
    let only = whole.clone().with_contenders(&["b".to_owned()]).expect("there is one");
    assert_eq!((only.contenders.len(), &*only.reference), (1, "b"));
    let error = whole.clone().with_contenders(&["c".to_owned()]).expect_err("nobody");
    assert_eq!(error, "\"c\" is no contender of this contest; there are a, b");
    assert!(whole.clone().with_scenarios(&["page".to_owned()]).is_ok());
    assert!(whole.clone().with_scenarios(&["x".to_owned()]).is_err());
    let checked = whole.checked();
    assert_eq!((checked.scenarios.len(), checked.scenarios[0].rounds), (1, 1));
    let check = &checked.scenarios[0];
    assert_eq!((check.requests, check.connections), (Some(10), 1), "it loads nobody");
}

#[test]
fn a_comparison_says_what_changed_by_more_than_noise() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let one = contest(&contender("a", SERVER, ""), folder.path());
    let (old, _) = held(&one, &AtomicBool::new(false));
    let mut new = old.clone();
    for run in &mut new.runs {
        let outcome = run.outcome.as_mut().expect("measured");
        outcome.requests_per_s *= 2.0;
    }
    new.contenders[0].version = Some("another".to_owned());
    let page = compare::text(&old, &new);
    assert!(
        page.contains("page, a: requests/s 5,000 -> 10,000, ×2.00 [2.00, 2.00]: better"),
        "{page}"
    );
    assert!(page.contains("the version of a"), "{page}");
    let same = compare::text(&old, &old);
    assert!(same.contains("Nothing changed by more than noise"), "{same}");
    let mut failing = old.clone();
    for run in &mut failing.runs {
        run.outcome.as_mut().expect("measured").errors.reset = 3;
    }
    let page = compare::text(&old, &failing);
    assert!(page.contains("page, a: failures 0 -> 3"), "{page}");
    assert!(page.contains("0 other figures differ by no more than noise."), "{page}");
    assert!(page.contains(" have no ratio: their row is not comparable"), "{page}");
}

#[test]
fn figures_to_reach_are_judged_by_what_was_measured() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let all =
        contender("a", SERVER, "") + &contender("b", SERVER, "") + &contender("c", "[\"c\"]", "");
    let mut contest = contest(&all, folder.path());
    let limit = |of: &str, to: Option<&str>| file::ReachSpec {
        of: of.to_owned(),
        to: to.map(str::to_owned),
        ..file::ReachSpec::default()
    };
    // The generator of these tests always has 5,000 responses per second.
    contest.scenarios[0].reach = vec![
        file::ReachSpec { rate: Some(4_999.0), ..limit("a", None) },
        file::ReachSpec { rate: Some(5_001.0), ..limit("a", None) },
        file::ReachSpec { rate: Some(0.9), ..limit("a", Some("b")) },
        file::ReachSpec { cpu: Some(1e6), ..limit("a", Some("c")) },
        file::ReachSpec { instructions: Some(1e6), ..limit("a", None) },
    ];
    let (record, _) = held(&contest, &AtomicBool::new(false));
    let met: Vec<bool> = record.verdicts.iter().map(|verdict| verdict.is_met).collect();
    assert_eq!(met, [true, false, true, false, false], "{:#?}", record.verdicts);
    assert!(!reach::is_reached(&record));
    let page = reach::text(&record);
    let line = "NOT REACHED  page, a: requests/s (/s): 5,000.00, at least 5,001.00";
    assert!(page.lines().any(|one| one == line), "{page}");
    let line = "reached      page, a: requests/s (/s) as a factor of b's: 1.000, at least 0.900";
    assert!(page.lines().any(|one| one == line), "{page}");
    assert!(page.contains("c: not installed: there is no program c"), "{page}");
    assert!(page.contains("instructions/request: not counted, at most"), "{page}");
    assert!(contest.quick().scenarios[0].reach.is_empty(), "a look judges nothing");
}

#[test]
fn a_scenario_has_some_contenders_and_a_contest_has_a_set_up() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let both = contender("a", SERVER, "") + &contender("b", SERVER, "");
    let mut contest = contest(&both, folder.path()).with_rounds(1);
    contest.folder = folder.path().to_owned();
    contest.set_up = vec![["touch", "made"].map(str::to_owned).into()];
    contest.scenarios.push(contest.scenarios[0].clone());
    contest.scenarios[0].contenders = vec!["b".to_owned()];
    "all".clone_into(&mut contest.scenarios[1].name);
    let (record, _) = held(&contest, &AtomicBool::new(false));
    let runs: Vec<_> = record.runs.iter().map(|run| (&*run.scenario, &*run.contender)).collect();
    assert_eq!(runs, [("page", "b"), ("all", "a"), ("all", "b")]);
    assert_eq!(summarise(&record).len(), 3, "there is no row for who does not take part");
    assert!(folder.path().join("made").exists());
    let only = contest.clone().with_contenders(&["a".to_owned()]).expect("there is one");
    assert_eq!(only.scenarios.len(), 1, "one is without contenders");
    contest.set_up = vec![["sh", "-c", "echo no compiler; exit 1"].map(str::to_owned).into()];
    let (record, _) = held(&contest, &AtomicBool::new(false));
    let why = record.cut.expect("it did not begin");
    assert!(why.contains("its set_up") && why.contains("no compiler"), "{why}");
}

/// Takes 40 MB at its second request. The first one is that of the check.
const GROWING: &str = r"
import http.server, sys
taken = []
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        taken.append(None if not taken else b'x' * (40_000_000 if len(taken) == 1 else 1))
        self.send_response(200)
        self.send_header('Content-Length', '300')
        self.end_headers()
        self.wfile.write(b'x' * 300)
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Page).serve_forever()
";

#[test]
fn memory_before_is_that_before_the_warm_up() {
    if !is_possible() || !tool::find("ab") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("growing.py");
    std::fs::write(&script, GROWING).expect("it can be written");
    let command = format!(r#"["python3", "{}", "{{port}}"]"#, script.display());
    let more = "allow_unequal = \"it makes a page of its own\"";
    let mut contest = contest(&contender("a", &command, more), folder.path()).with_rounds(1);
    let scenario = &mut contest.scenarios[0];
    (scenario.generator, scenario.requests) = (file::GeneratorKind::Ab, Some(20));
    scenario.warm_up = Duration::from_millis(200);
    let (record, _) = held(&contest, &AtomicBool::new(false));
    let run = &record.runs[0];
    assert_eq!(run.failure, None);
    let grown = run.usage.memory_peak_bytes - run.usage.memory_before_bytes;
    assert!(grown > 35_000_000, "{:?}", run.usage);
}

#[test]
fn a_contender_that_names_the_page_is_started_for_each() {
    if !is_possible() {
        return;
    }
    // It serves one page at any path: the one in its command.
    let one = r#"["python3", "-c", "import sys, http.server as h
class A(h.BaseHTTPRequestHandler):
    def do_GET(self):
        body = open(sys.argv[2], 'rb').read()
        self.send_response(200)
        self.send_header('Content-Length', len(body))
        self.end_headers()
        self.wfile.write(body)
h.HTTPServer(('127.0.0.1', int(sys.argv[1])), A).serve_forever()", "{port}", "{root}/{page}"]"#
        .replace('\n', "\\n");
    let folder = tempfile::tempdir().expect("a folder");
    let both = contender("files", SERVER, "") + &contender("one", &one, "");
    let mut contest = contest(&both, folder.path()).with_rounds(1);
    contest.scenarios.push(contest.scenarios[0].clone());
    let second = &mut contest.scenarios[1];
    "longer".clone_into(&mut second.name);
    second.page = Some(file::PageSpec::Bytes(5_000));
    let (record, lines) = held(&contest, &AtomicBool::new(false));
    assert!(record.contenders.iter().all(|one| one.fate == Fate::Ran), "{lines:?}");
    assert_eq!(record.runs.len(), 4);
    assert!(record.runs.iter().all(|run| run.failure.is_none()));
}
