//! Configuration files, as clients see them: hosts, folders, redirects, answers, fields, pages; and
//! another file in the place of the first.

use gustnado::Reloaded;

use crate::harness::client::request;
use crate::harness::{Answer, Client, Folder, Server, Setup, wait_until};

on_every_server!(
    a_file_with_a_root_alone_serves_the_folder,
    each_host_has_its_site,
    routes_lead_to_folders_answers_and_elsewhere,
    what_a_request_brings_never_leads_to_another_host,
    header_fields_are_in_every_answer,
    refusals_have_the_fields_of_the_server,
    pages_for_errors_are_for_folders_too,
    pages_for_errors_are_named_by_the_setting_too,
    several_listeners_serve_the_same,
    a_reload_counts_for_connections_that_are_open,
    a_reload_goes_from_any_kind_of_site_to_any_other,
    a_reload_opens_and_closes_listeners,
    a_reload_that_fails_changes_nothing,
    what_needs_a_restart_stays_and_is_named,
    a_request_under_way_ends_as_it_began,
);

fn with_body(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    request(method, path, &format!("Content-Length: {length}\r\n")) + body
}

fn served(setup: Setup, folder: &Folder, text: &str) -> Server {
    Server::built(setup.described(folder, text))
}

fn of_host(server: &Server, host: &str, path: &str) -> Answer {
    server.ask(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

fn a_file_with_a_root_alone_serves_the_folder(setup: Setup) {
    let folder = Folder::new();
    folder.file("index.html", "<p>hello");
    let server = served(setup, &folder, "root = \"root\"\nserver-name = \"breeze\"\n");
    let answer = server.get("/");
    assert_eq!((answer.status, &*answer.text()), (200, "<p>hello"));
    assert_eq!(answer.field("Server"), Some("breeze"));
    assert_eq!(server.get("/none").status, 404);
}

fn each_host_has_its_site(setup: Setup) {
    let folder = Folder::new();
    folder.file("a/who", "a");
    folder.file("b/who", "b");
    folder.file("who", "rest");
    let server = served(
        setup,
        &folder,
        "root = \"root\"\n\
         [[site]]\nhosts = [\"a.org\", \"www.a.org\"]\nroot = \"root/a\"\n\
         [[site]]\nhosts = \"*.b.org\"\nroot = \"root/b\"\n\
         [[site.route]]\npath = \"/own\"\nanswer = \"b's own\"\n",
    );
    for (host, who) in [
        ("a.org", "a"),
        ("WWW.A.org:8080", "a"),
        ("x.b.org", "b"),
        ("b.org", "rest"),
        ("elsewhere", "rest"),
    ] {
        assert_eq!(of_host(&server, host, "/who").text(), who, "{host}");
    }
    assert_eq!(of_host(&server, "x.b.org", "/own").text(), "b's own");
    assert_eq!(of_host(&server, "a.org", "/own").status, 404);
}

fn routes_lead_to_folders_answers_and_elsewhere(setup: Setup) {
    let folder = Folder::new();
    folder.file("x.txt", "x in the folder");
    let server = served(
        setup,
        &folder,
        "[[route]]\npath = \"/static\"\nfolder = \"root\"\n\
         [[route]]\npath = \"/old/{id}/{*rest}\"\nredirect = \"/new/{rest}?was={id}\"\n\
         [[route]]\npath = \"/away/{*rest}\"\nredirect = \"https://example.org/{rest}\"\n\
         status = 302\n\
         [[route]]\npath = \"/health\"\nanswer = \"ok\"\n\
         [[route]]\npath = \"/health\"\nanswer = \"made\"\nstatus = 201\n\
         methods = [\"POST\", \"PUT\"]\n\
         [[route]]\npath = \"/json\"\nanswer = \"{}\"\ntype = \"application/json\"\n\
         [[route]]\npath = \"/gone\"\nanswer = \"\"\nstatus = 410\n\
         [[route]]\npath = \"/empty\"\nanswer = \"\"\nstatus = 204\n",
    );
    assert_eq!(server.get("/static/x.txt").text(), "x in the folder");
    let answer = server.get("/old/7/a%20b/c?d=e");
    assert_eq!((answer.status, answer.field("Location")), (308, Some("/new/a%20b/c?was=7")));
    let answer = server.get("/away/a?b=c");
    assert_eq!((answer.status, answer.field("Location")), (302, Some("https://example.org/a?b=c")));
    let answer = server.get("/health");
    assert_eq!((answer.status, &*answer.text()), (200, "ok"));
    assert_eq!(answer.field("Content-Type"), Some("text/plain; charset=utf-8"));
    for method in ["POST", "PUT"] {
        let answer = server.ask(with_body(method, "/health", "body"));
        assert_eq!((answer.status, &*answer.text()), (201, "made"), "{method}");
    }
    let refused = server.ask(with_body("DELETE", "/health", ""));
    assert_eq!(
        (refused.status, refused.field("Allow")),
        (405, Some("GET, HEAD, POST, PUT, OPTIONS"))
    );
    assert_eq!(server.get("/json").field("Content-Type"), Some("application/json"));
    assert_eq!(server.get("/gone").status, 410);
    assert_eq!(server.get("/empty").status, 204);
    assert_eq!(server.get("/nothing").status, 404);
}

fn what_a_request_brings_never_leads_to_another_host(setup: Setup) {
    let folder = Folder::new();
    let text = "[[route]]\npath = \"/go/{*rest}\"\nredirect = \"/{rest}\"\n";
    let server = served(setup, &folder, text);
    for (path, location) in [
        ("/go/a", "/a"),
        ("/go//evil.org/", "/evil.org/"),
        ("/go///evil.org", "/evil.org"),
        ("/go/%2Fevil.org", "/%2Fevil.org"),
        ("/go/a//b", "/a/b"),
        ("/go/%61%2Bb?c", "/%61%2Bb?c"),
    ] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.field("Location")), (308, Some(location)), "{path}");
    }
    let answer = server.get("/go/\\evil.org");
    let location = answer.field("Location");
    assert!(answer.status == 400 || location == Some("/evil.org"), "{location:?}");
}

fn header_fields_are_in_every_answer(setup: Setup) {
    let folder = Folder::new();
    folder.dated("x.txt", "0123456789");
    let server = served(
        setup,
        &folder,
        "[headers]\nX-All = \"1\"\nX-Content-Type-Options = \"nosniff\"\nX-Over = \"file\"\n\
         [[route]]\npath = \"/files\"\nfolder = \"root\"\n\
         [route.headers]\nX-Route = \"2\"\nX-Over = \"route\"\n\
         [[route]]\npath = \"/x\"\nanswer = \"x\"\n[route.headers]\nX-Over = \"answer\"\n\
         [[site]]\nhosts = \"a.org\"\nroot = \"root\"\n[site.headers]\nX-Over = \"site\"\n\
         [[site.route]]\npath = \"/r\"\nredirect = \"/\"\n",
    );
    let get = |more: &str| {
        let head =
            format!("GET /files/x.txt HTTP/1.1\r\nHost: x\r\n{more}Connection: close\r\n\r\n");
        server.ask(head)
    };
    let whole = get("");
    let tag = whole.field("ETag").expect("files have one").to_owned();
    for (answer, status, over) in [
        (whole, 200, "route"),
        (get("Range: bytes=2-3\r\n"), 206, "route"),
        (get("Range: bytes=2-3,5-6\r\n"), 206, "route"),
        (get("Range: bytes=99-\r\n"), 416, "route"),
        (get(&format!("If-None-Match: {tag}\r\n")), 304, "route"),
        (server.get("/files/none"), 404, "route"),
        (server.get("/files"), 301, "route"),
        (server.ask(with_body("POST", "/files/x.txt", "")), 405, "route"),
        (server.get("/x"), 200, "answer"),
        (server.get("/none"), 404, "file"),
        (of_host(&server, "a.org", "/x.txt"), 200, "site"),
        (of_host(&server, "a.org", "/none"), 404, "site"),
        (of_host(&server, "a.org", "/r"), 308, "site"),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.field("X-Over"), Some(over), "{answer:?}");
        assert_eq!(answer.field("X-Route").is_some(), over == "route", "{answer:?}");
        for name in ["X-All", "X-Over", "X-Content-Type-Options", "Date"] {
            assert_eq!(answer.count(name), 1, "{name} in {answer:?}");
        }
    }
    let refused = server.ask(request("GET", "/", "Expect: tea\r\n"));
    assert_eq!((refused.status, refused.field("X-All")), (417, Some("1")));
    assert_eq!(refused.count("X-Content-Type-Options"), 1);
    if Setup::is_http2() {
        // What is malformed has no response.
        return;
    }
    let refused = server.ask("BAD\r\n\r\n");
    assert_eq!((refused.status, refused.field("X-All")), (400, Some("1")));
    assert_eq!(refused.count("X-Content-Type-Options"), 1);
}

/// The server's fields, two of which a site and a route have another value for.
const OVERRIDDEN: &str = "
    limit-head-bytes = \"4k\"
    limit-target-bytes = \"1k\"
    limit-body-bytes = \"1k\"
    [headers]
    Referrer-Policy = \"no-referrer\"
    X-Content-Type-Options = \"server\"
    X-All = \"server\"
    [[route]]
    path = \"/x\"
    answer = \"x\"
    headers = { X-All = \"route\" }
    [[site]]
    hosts = \"example.org\"
    root = \"root\"
    [site.headers]
    Referrer-Policy = \"same-origin\"
    X-Content-Type-Options = \"nosniff\"
";

fn refusals_have_the_fields_of_the_server(setup: Setup) {
    let folder = Folder::new();
    folder.file("x.txt", "x");
    let server = served(setup, &folder, OVERRIDDEN);
    let assert_fields = |answer: &Answer, status, policy, all| {
        assert_eq!(answer.status, status, "{answer:?}");
        for (name, value) in [("Referrer-Policy", policy), ("X-All", all)] {
            assert_eq!((answer.field(name), answer.count(name)), (Some(value), 1), "{answer:?}");
        }
        assert_eq!(answer.count("X-Content-Type-Options"), 1, "{answer:?}");
    };
    assert_fields(&server.get("/x"), 200, "no-referrer", "route");
    assert_fields(&of_host(&server, "example.org", "/x.txt"), 200, "same-origin", "server");
    let to_all = |start: &str| {
        let answer = server.ask(format!("{start}\r\n\r\n"));
        let status = answer.status;
        assert_fields(&answer, status, "no-referrer", "server");
        status
    };
    let long = "x".repeat(5_000);
    for host in ["gust.example", "example.org"] {
        let with = |field: &str| format!("GET /x HTTP/1.1\r\nHost: {host}\r\n{field}");
        assert_eq!(to_all(&with("Expect: tea")), 417);
        assert_eq!(to_all(&with("Content-Length: 1025")), 413);
        assert_eq!(to_all(&format!("OPTIONS * HTTP/1.1\r\nHost: {host}")), 204);
        if Setup::is_http2() {
            // What is malformed has no response.
            continue;
        }
        assert_eq!(to_all(&format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443")), 405);
        assert_eq!(to_all(&format!("GET /{long} HTTP/1.1\r\nHost: {host}")), 414);
        assert_eq!(to_all(&with(&format!("X: {long}"))), 431);
        assert_eq!(to_all(&format!("GET / HTTP/3.0\r\nHost: {host}")), 505);
        assert_eq!(to_all(&with("broken")), 400);
    }
    if Setup::is_http2() {
        return;
    }
    for start in ["BAD", "GET / HTTP/1.1", "GET / HTTP/1.1\r\nHost: a b"] {
        assert_eq!(to_all(start), 400);
    }
}

fn pages_for_errors_are_for_folders_too(setup: Setup) {
    let folder = Folder::new();
    folder.file("x", "x");
    folder.file("404.html", "<p>lost");
    folder.file("all.txt", "odd");
    let pages = "[[error-page]]\nstatus = 404\nfile = \"root/404.html\"\n\
                 [[error-page]]\nfile = \"root/all.txt\"\n";
    let alone = format!("root = \"root\"\n{pages}");
    let routed = format!("{alone}[[route]]\npath = \"/y\"\nanswer = \"\"\nstatus = 500\n");
    for text in [&alone, &routed] {
        let server = served(setup, &folder, text);
        let lost = server.get("/none");
        assert_eq!((lost.status, &*lost.text()), (404, "<p>lost"));
        assert_eq!(lost.field("Content-Type"), Some("text/html; charset=utf-8"));
        let refused = server.ask(with_body("POST", "/x", ""));
        assert_eq!((refused.status, &*refused.text()), (405, "odd"));
        assert_eq!(refused.field("Allow"), Some("GET, HEAD, OPTIONS"));
        assert_eq!(server.get("/x").text(), "x");
    }
    let server = served(setup, &folder, &routed);
    let failed = server.get("/y");
    assert_eq!(failed.status, 500);
}

fn pages_for_errors_are_named_by_the_setting_too(setup: Setup) {
    let folder = Folder::new();
    for name in ["404.html", "4xx.html", "own.html"] {
        folder.file(name, name);
    }
    let site = "[[site]]\nhosts = [\"own.example\"]\nroot = \"root\"\n\
                [[site.error-page]]\nstatus = \"4xx\"\nfile = \"root/own.html\"\n";
    // At the top, or in the table of settings beside pages of the file's own site.
    let setting = "error-page = [\"4xx=root/4xx.html\", \"404=root/404.html\"]\n";
    let alone = format!("{setting}root = \"root\"\n{site}");
    let apart = format!(
        "root = \"root\"\n[settings]\n{setting}[[error-page]]\nstatus = 405\n\
         file = \"root/own.html\"\n{site}"
    );
    for (text, of_405) in [(&alone, "4xx.html"), (&apart, "own.html")] {
        let server = served(setup, &folder, text);
        assert_eq!(server.get("/none").text(), "404.html");
        let refused = server.ask(with_body("POST", "/404.html", ""));
        assert_eq!((refused.status, &*refused.text()), (405, of_405));
        let of_site = of_host(&server, "own.example", "/none");
        assert_eq!((of_site.status, &*of_site.text()), (404, "own.html"));
    }
}

/// The answer on a Unix socket.
fn of_socket(path: &std::path::Path) -> String {
    let mut client = Client::connect_unix(path);
    client.send("GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    String::from_utf8(client.read_to_end()).expect("text")
}

const X: &str = "[[route]]\npath = \"/x\"\nanswer = \"x\"\n";

fn several_listeners_serve_the_same(setup: Setup) {
    let folder = Folder::new();
    let text = format!("listen = [\"127.0.0.1:0\", \"127.0.0.1:00\", \"unix:x.sock\"]\n{X}");
    let server = served(setup, &folder, &text);
    let addresses = server.running().listens_on();
    assert_eq!(addresses.len(), 3, "{addresses:?}");
    for address in &addresses[..2] {
        let address = address.to_string().parse().expect("an address");
        assert_eq!(crate::harness::Client::connect(address).get("/x").text(), "x");
    }
    let socket = folder.outside().join("x.sock");
    assert!(of_socket(&socket).ends_with("\r\n\r\nx"));
    server.stop();
    assert!(!socket.exists(), "its file is removed");
}

/// Takes another file.
fn reload(setup: Setup, server: &Server, folder: &Folder, text: &str) -> Reloaded {
    server.running().reload(setup.described(folder, text)).expect("it is taken")
}

fn a_reload_counts_for_connections_that_are_open(setup: Setup) {
    let folder = Folder::new();
    let server = served(setup, &folder, X);
    let mut client = server.connect();
    assert_eq!(client.get("/x").text(), "x");
    let more = "limit-body-bytes = 3\nserver-name = \"new\"\n[headers]\nX-New = \"1\"\n\
                [[route]]\npath = \"/x\"\nanswer = \"y\"\nmethods = [\"GET\", \"POST\"]\n";
    let reloaded = reload(setup, &server, &folder, more);
    assert_eq!(reloaded.changed, ["limit-body-bytes", "server-name"]);
    // The same connection: another answer, and another limit.
    assert_eq!(client.get("/x").text(), "y");
    wait_until("the fields follow", || {
        let answer = client.get("/x");
        answer.field("X-New") == Some("1") && answer.field("Server") == Some("new")
    });
    assert_eq!(client.ask(with_body("POST", "/x", "123")).text(), "y");
    assert_eq!(client.ask(with_body("POST", "/x", "1234")).status, 413);
    assert_eq!(server.stats().reloads, 1);
}

fn a_reload_goes_from_any_kind_of_site_to_any_other(setup: Setup) {
    let folder = Folder::new();
    folder.file("x", "in the folder");
    let kinds = [
        ("root = \"root\"\n", "in the folder"),
        (X, "x"),
        ("root = \"root\"\nhidden = true\n", "in the folder"),
        ("", "Gustnado"),
    ];
    for (from, _) in kinds {
        let server = served(setup, &folder, from);
        let mut client = server.connect();
        client.get("/x");
        for (to, text) in kinds {
            reload(setup, &server, &folder, to);
            // Pipelined, and with a body that nobody wants: all by what counts now.
            let path = if text == "Gustnado" { "/" } else { "/x" };
            client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").repeat(2));
            for _ in 0..2 {
                let answer = client.read_answer();
                assert_eq!(answer.status, 200, "{from} to {to}");
                assert!(answer.text().contains(text), "{from} to {to}: {}", answer.text());
            }
        }
        assert_eq!(server.stats().connections_accepted, 1, "it was one connection all along");
    }
}

fn a_reload_opens_and_closes_listeners(setup: Setup) {
    let folder = Folder::new();
    let server = served(setup, &folder, &format!("listen = [\"127.0.0.1:0\"]\n{X}"));
    let mut client = server.connect();
    assert_eq!(client.get("/x").text(), "x");
    let socket = folder.outside().join("x.sock");
    let both = format!("listen = [\"127.0.0.1:0\", \"unix:x.sock\"]\n{X}");
    let reloaded = reload(setup, &server, &folder, &both);
    assert_eq!((reloaded.opened.len(), reloaded.closed.len()), (1, 0));
    assert!(of_socket(&socket).ends_with("\r\n\r\nx"));
    assert_eq!(server.get("/x").text(), "x", "the old one has stayed");
    let reloaded = reload(setup, &server, &folder, &format!("listen = [\"unix:x.sock\"]\n{X}"));
    assert_eq!((reloaded.opened.len(), reloaded.closed.len()), (0, 1));
    assert_eq!(client.get("/x").text(), "x", "a connection outlives its listener");
    wait_until("nobody listens there", || std::net::TcpStream::connect(server.address()).is_err());
    assert!(of_socket(&socket).ends_with("\r\n\r\nx"));
}

fn a_reload_that_fails_changes_nothing(setup: Setup) {
    let folder = Folder::new();
    let server = served(setup, &folder, X);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound");
    let text = format!(
        "listen = [\"127.0.0.1:0\", \"{address}\"]\n[[route]]\npath = \"/x\"\nanswer = \"y\"\n"
    );
    let error = server.running().reload(setup.described(&folder, &text)).expect_err("in use");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert_eq!(server.get("/x").text(), "x");
    assert_eq!(server.running().listens_on().len(), 1);
    let stats = server.stats();
    assert_eq!((stats.reloads, stats.reloads_refused), (0, 1));
}

fn what_needs_a_restart_stays_and_is_named(setup: Setup) {
    let folder = Folder::new();
    let server = served(setup, &folder, X);
    let wanted = setup.described(&folder, X).workers(5).backlog(77).hidden(true);
    let reloaded = server.running().reload(wanted).expect("it is taken");
    assert_eq!(reloaded.kept, ["backlog", "workers"]);
    assert_eq!(reloaded.changed, ["hidden"]);
    // Those that had no value have none again.
    let text = format!("uds-mode = \"660\"\nuds-owner = \"root\"\ncontrol = \"c.sock\"\n{X}");
    for _ in 0..2 {
        let mut kept = reload(setup, &server, &folder, &text).kept;
        kept.sort_unstable();
        assert_eq!(kept, ["control", "uds-mode", "uds-owner"]);
        assert_eq!(server.get("/x").text(), "x");
    }
    assert_eq!(reload(setup, &server, &folder, X).kept, [""; 0]);
}

fn a_request_under_way_ends_as_it_began(setup: Setup) {
    let folder = Folder::new();
    let post =
        |text: &str| format!("[[route]]\npath = \"/x\"\nanswer = \"{text}\"\nmethods = \"POST\"\n");
    let server = served(setup, &folder, &post("old"));
    let mut client = server.connect();
    client.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n12");
    client.wait_until_read();
    reload(setup, &server, &folder, &post("new"));
    client.send("34");
    let text = client.read_answer().text();
    assert!(text == "old" || text == "new", "{text}");
    assert_eq!(client.ask(with_body("POST", "/x", "12")).text(), "new");
    // Half a head is read under both.
    client.send("POST /x HT");
    reload(setup, &server, &folder, &post("newer"));
    client.send("TP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n12");
    assert_eq!(client.read_answer().text(), "newer");
}
