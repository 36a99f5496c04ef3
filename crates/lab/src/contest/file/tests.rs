use super::*;

const SMALL: &str = r#"
reference = "one"
[page]
bytes = 10
[[contender]]
preset = "nginx"
name = "one"
[contender.files]
"more.conf" = "x"
[[contender]]
name = "two"
command = ["two", "{port}"]
[[scenario]]
name = "page"
title = "The page"
connections = [10, 200]
duration = "500ms"
[[scenario]]
name = "idle"
model = "hold"
connections = 1000
rate = 50
requests = 100
rounds = 2
"#;

fn parsed(text: &str) -> Result<ContestSpec, FileError> {
    parse(Path::new("c.toml"), text)
}

/// The problems of a text, each as it is printed.
fn problems(text: &str) -> String {
    parsed(text).expect_err("something is wrong").to_string()
}

#[test]
fn a_file_says_who_takes_part_and_what_is_asked() {
    let contest = parsed(SMALL).expect("it is right");
    assert_eq!(contest.title, "c");
    assert_eq!((contest.rounds, contest.fresh), (3, true));
    assert_eq!(contest.page, PageSpec::Bytes(10));
    let one = &contest.contenders[0];
    assert_eq!((one.name.as_str(), one.tuning.as_str()), ("one", "untuned"));
    assert!(one.files.contains_key("nginx.conf") && one.files.contains_key("more.conf"));
    assert_eq!(contest.contenders[1].url, "http://127.0.0.1:{port}/{page}");
    let names: Vec<_> = contest.scenarios.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["page-10", "page-200", "idle"]);
    assert_eq!(contest.scenarios[1].title, "The page, 200 connections");
    assert_eq!(contest.scenarios[1].sweep.as_deref(), Some("page"));
    assert_eq!(contest.scenarios[1].duration, Duration::from_millis(500));
    let idle = &contest.scenarios[2];
    assert_eq!((idle.model, idle.rounds, idle.sweep.clone()), (ModelSpec::Hold, 2, None));
    assert_eq!((idle.requests, idle.rate, idle.probes), (Some(100), Some(50.0), 1));
}

#[test]
fn counts_are_taken_as_the_flags_of_bench_take_them() {
    let text = SMALL
        .replace("[10, 200]", "[\"1k\", 200]")
        .replace("rate = 50", "rate = \"1.5k\"")
        .replace("requests = 100", "requests = \"1m\"");
    let contest = parsed(&text).expect("it is right");
    assert_eq!(contest.scenarios[0].name, "page-1000");
    let idle = &contest.scenarios[2];
    assert_eq!((idle.requests, idle.rate), (Some(1_000_000), Some(1_500.0)));
    let wrong = problems(&SMALL.replace("requests = 100", "requests = \"many\""));
    assert!(wrong.contains("requests: expected 1 to 1000000000, found \"many\""), "{wrong}");
}

#[test]
fn every_unknown_key_is_named_with_its_line_and_what_was_probably_meant() {
    let text = "titel = \"x\"\n[[contender]]\npreset = \"nginx\"\nport = 5\n\
                [[scenario]]\nname = \"a\"\nconections = 5\n";
    assert_eq!(
        problems(text),
        "c.toml:1: titel: no such key here; did you mean title?\n\
         c.toml:4: port: no such key here; there are preset, name, about, tuning, needs, \
         installed_if, install, command, version, set_up, files, environment, url, unix_socket, \
         ready_timeout, stop_timeout, cpus, allow_unequal\n\
         c.toml:7: conections: no such key here; did you mean connections?"
    );
}

#[test]
fn everything_that_is_out_of_bounds_is_said_at_once() {
    let text = "rounds = 0\nreference = \"nobody\"\n[[contender]]\npreset = \"nginks\"\n\
                [[contender]]\nname = \"a\"\ncommand = [\"a\"]\nurl = \"http://example.org/\"\n\
                [[contender]]\nname = \"a\"\nfiles = { \"../x\" = \"\" }\n\
                [[scenario]]\nname = \"s\"\nmodel = \"opne\"\nconnections = [0]\n\
                [[scenario]]\nname = \"t\"\nmodel = \"open\"\nduration = 0\n\
                [[scenario]]\nname = \"t\"\nrate = 5\n";
    assert_eq!(
        problems(text),
        "c.toml:1: rounds: expected 1 to 100, found 0; correct it\n\
         c.toml:2: reference: expected a contender's name (a, a), found \"nobody\"; correct it\n\
         c.toml:4: preset: \"nginks\" is no preset; did you mean \"nginx\"?\n\
         c.toml:8: url: expected http://127.0.0.1:{port}/… or https://…, because nothing but this \
         machine is loaded, found \"http://example.org/\"; correct it\n\
         c.toml:9: command: expected [\"program\", \"argument\", …] or a preset; say one of them\n\
         c.toml:10: name: \"a\" is taken by another contender; choose one\n\
         c.toml:11: files: expected names within its folder, found \"../x\"; correct it\n\
         c.toml:14: model: expected closed, open, hold or churn, found \"opne\"; correct it\n\
         c.toml:15: connections: expected a number such as 1000, or a list such as [100, 1000], \
         from 1 to 1000000, found [0]; correct it\n\
         c.toml:16: rate: an open model needs the requests per second that are due; give them\n\
         c.toml:19: duration: expected a length of time from 1ms to 1h, found 0; correct it\n\
         c.toml:21: name: \"t\" is taken by another scenario; choose one\n\
         c.toml:22: rate: a rate is for the open model, not for \"closed\"; leave one out"
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_its_line() {
    let found = problems("[[scenario]]\nname = \"a\"\nduration = \"soon\"\n");
    let line = "c.toml:3: duration: expected a length of time from 1ms to 1h, found \"soon\"; \
                correct it";
    assert!(found.lines().any(|one| one == line), "{found}");
    let found = problems("[[scenario]]\nconnections = \"many\"\n");
    let line = "c.toml:2: connections: expected a number such as 1000, or a list such as \
                [100, 1000], from 1 to 1000000, found \"many\"; correct it";
    assert!(found.lines().any(|one| one == line), "{found}");
    let found = problems("rounds = \"three\"\n");
    let line = "c.toml:1: rounds: expected 1 to 100, found \"three\"; correct it";
    assert!(found.lines().any(|one| one == line), "{found}");
}

/// An unknown key hides no wrong value, and neither hides what is wrong with the whole.
#[test]
fn mistakes_of_all_kinds_are_said_at_once() {
    let text = "rounds = \"three\"\ntitel = \"x\"\n[[contender]]\npreset = \"nginks\"\n\
                [[scenario]]\nname = \"a\"\nconnections = \"many\"\nmodle = \"closed\"\n\
                duration = \"1h1h\"\nrate = -1\nmodel = \"open\"\n";
    let found = problems(text);
    let begins: Vec<String> = found
        .lines()
        .map(|line| line.splitn(4, ':').take(3).collect::<Vec<_>>().join(":"))
        .collect();
    let expected = [
        "c.toml:1: rounds",
        "c.toml:2: titel",
        "c.toml:4: preset",
        "c.toml:7: connections",
        "c.toml:8: modle",
        "c.toml:9: duration",
        "c.toml:10: rate",
    ];
    assert_eq!(begins, expected, "{found}");
}

#[test]
fn slips_of_syntax_are_named_with_their_lines() {
    let found = problems("title = \"x\"\nrounds 3\n");
    assert!(found.starts_with("c.toml:2: "), "{found}");
    assert!(found.ends_with("see https://toml.io"), "{found}");
}

#[test]
fn a_contest_without_anybody_or_anything_is_refused() {
    let found = problems("title = \"x\"\n");
    assert!(found.contains("[[contender]], found none"), "{found}");
    assert!(found.contains("[[scenario]], found none"), "{found}");
}

#[test]
fn a_file_that_cannot_be_read_says_what_to_do() {
    let error = read(Path::new("/no/such/contest.toml")).expect_err("there is none");
    assert_eq!(error.to_string(), "/no/such/contest.toml: no such file; name one that is there");
    let error = read(Path::new("/")).expect_err("no file");
    assert!(error.to_string().contains("it is a folder"), "{error}");
}

#[test]
fn a_scenario_may_ask_for_another_page() {
    let text = SMALL.replace("title = \"The page\"", "path = \"/primes\"");
    let contest = parsed(&text).expect("it is right");
    assert_eq!(contest.scenarios[0].page, Some(PageSpec::Path("primes".to_owned())));
    assert_eq!(contest.scenarios[2].page, None);
    let both = problems(&text.replace("path = ", "bytes = 5\npath = "));
    assert!(both.contains("path: expected one of bytes and path, found both"), "{both}");
}

#[test]
fn the_contests_that_come_with_the_program_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contests");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the contests") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let contest = read(&path).unwrap_or_else(|error| panic!("{error}"));
            assert!(contest.contenders.iter().any(|one| one.name.starts_with("gustnado")));
            assert!(contest.folder.is_absolute() && contest.folder.ends_with("contests"));
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen}");
}

#[test]
fn what_other_generators_cannot_do_is_refused() {
    let text = "[[contender]]\npreset = \"nginx\"\n\
                [[scenario]]\nname = \"a\"\ngenerator = \"ab\"\nmodel = \"churn\"\npipeline = 2\n\
                threads = 2\n\
                [[scenario]]\nname = \"b\"\ngenerator = \"wrk\"\nrequests = 5\nrate = 9\n\
                [[scenario]]\nname = \"c\"\ngenerator = \"h2load\"\nkeep_alive = false\n\
                [[scenario]]\nname = \"d\"\ngenerator = \"oha\"\n\
                [[scenario]]\nname = \"e\"\ngenerator = \"wrk\"\nhttp2 = true\n\
                [[scenario]]\nname = \"f\"\nstreams = 8\n";
    assert_eq!(
        problems(text),
        "c.toml:3: requests: ab needs the number of requests; give it\n\
         c.toml:6: model: ab makes closed loads only; leave this out, or the generator\n\
         c.toml:7: pipeline: ab has one request under way on each connection; leave this out\n\
         c.toml:8: threads: ab has one thread; leave this out\n\
         c.toml:12: requests: wrk ends after a time; give the duration in place of this\n\
         c.toml:13: rate: a rate is for the open model, not for \"closed\"; leave one out\n\
         c.toml:17: keep_alive: h2load keeps its connections; leave this out\n\
         c.toml:20: generator: expected gustnado, ab, wrk or h2load, found \"oha\"; correct it\n\
         c.toml:24: http2: wrk speaks HTTP/1 only; leave this out, or the generator\n\
         c.toml:27: streams: it needs `http2 = true`, and no `pipeline`; leave one out"
    );
}

#[test]
fn accepted_statuses_are_ranges_within_their_bounds() {
    let text = |statuses: &str| {
        format!(
            "[[contender]]\npreset = \"nginx\"\n[[scenario]]\nname = \"a\"\n\
             accept_status = \"{statuses}\"\n"
        )
    };
    let contest = parse(Path::new("c.toml"), &text("200-399, 404")).expect("it is right");
    assert_eq!(contest.scenarios[0].accept_status, [(200, 399), (404, 404)]);
    let expected = "c.toml:5: accept_status: expected statuses from 200 to 599 such as \
                    \"200-399,404\" or \"2xx\", found \"all\"; correct it";
    assert_eq!(problems(&text("all")), expected);
}

#[test]
fn niosteds_table_has_the_rows_that_it_had_and_is_measured_by_ab() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contests/niosted.toml");
    let contest = read(Path::new(path)).expect("it is right");
    let find = |name: &str| contest.contenders.iter().find(|one| one.name == name);
    for name in ["gustnado", "gustnado-python", "gustnado-cyclone", "cyclone", "tornado"] {
        let contender = find(name).unwrap_or_else(|| panic!("{name} takes part"));
        assert!(!contender.version.is_empty(), "{name}");
    }
    for contender in &contest.contenders {
        // The command of the package and that of the executable have one name.
        assert_ne!(contender.command[0], "gustnado", "{}", contender.name);
    }
    let ab = &contest.scenarios[0];
    assert_eq!((ab.generator, ab.connections), (GeneratorKind::Ab, 25));
    assert_eq!((ab.requests, ab.keep_alive), (Some(20_000), false));
}

#[test]
fn figures_to_reach_are_read_and_checked() {
    let text = "[[contender]]\nname = \"a\"\ncommand = [\"a\"]\n\
                [[contender]]\nname = \"b\"\ncommand = [\"b\"]\n\
                [[scenario]]\nname = \"s\"\ncount = [\"system_calls\"]\n\
                contenders = [\"a\", \"b\"]\n\
                reach = [{ to = \"b\", cpu = 1.05 }, { of = \"b\", system_calls = 2 }]\n";
    let contest = parsed(text).expect("it is right");
    let scenario = &contest.scenarios[0];
    assert_eq!(scenario.counts, [CountKind::SystemCalls]);
    assert!(scenario.has("a") && !scenario.has("c"));
    let [one, two] = &*scenario.reach else { panic!("{:?}", scenario.reach) };
    assert_eq!((&*one.of, one.to.as_deref(), one.cpu), ("a", Some("b"), Some(1.05)));
    assert_eq!((&*two.of, two.to.as_deref(), two.system_calls), ("b", None, Some(2.0)));
    let wrong = text.replace("cpu = 1.05", "instructions = 5").replace("to = \"b\"", "to = \"c\"");
    assert_eq!(
        problems(&wrong),
        "c.toml:11: instructions: nothing counts it here; add `count = [\"instructions\"]`\n\
         c.toml:11: to: expected a contender's name (a, b), found \"c\"; correct it"
    );
    let empty = text.replace(", cpu = 1.05", "");
    assert!(problems(&empty).contains("expected at least one figure to reach"));
}

#[test]
fn a_scenario_may_send_a_body() {
    let text = SMALL.replace("title = \"The page\"", "path = \"/echo\"\nsend = \"{}\"");
    let contest = parsed(&text).expect("it is right");
    let body = BodySpec::Text("{}".to_owned());
    assert_eq!(contest.scenarios[0].page, Some(PageSpec::Post("echo".to_owned(), body)));
    let nowhere = problems(&text.replace("path = \"/echo\"\n", ""));
    assert!(nowhere.contains("send: it needs a path to send to"), "{nowhere}");
}

#[test]
fn a_scenario_may_have_messages_in_place_of_requests() {
    let of = |keys: &str| SMALL.replace("duration = \"500ms\"", keys);
    let contest = parsed(&of("websocket = \"broadcast\"\npath = \"/chat\"")).expect("right");
    let wanted = MessageSpec { path: "chat".to_owned(), bytes: 64, is_broadcast: true };
    assert_eq!(contest.scenarios[0].page, Some(PageSpec::Messages(wanted)));
    let contest = parsed(&of("websocket = \"echo\"\nbytes = 5")).expect("right");
    let wanted = MessageSpec { path: String::new(), bytes: 5, is_broadcast: false };
    assert_eq!(contest.scenarios[0].page, Some(PageSpec::Messages(wanted)));
    for other in ["http2 = true", "generator = \"wrk\"", "model = \"churn\"", "send = \"{}\""] {
        let found = problems(&of(&format!("websocket = \"echo\"\n{other}")));
        assert!(found.contains("messages are sent by gustnado bench"), "{other}: {found}");
    }
    let found = problems(&of("websocket = \"chat\""));
    assert!(found.contains("expected echo or broadcast, found \"chat\""), "{found}");
}
