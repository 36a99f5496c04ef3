//! The flags of `gustnado bench`.

use clap::{Arg, ArgAction, Command};

/// Returns the command with all its arguments.
pub(crate) fn command() -> Command {
    let merge = Command::new("merge")
        .about("Merge what several runs wrote with --json or --hgrm into one table")
        .arg(Arg::new("files").value_name("FILE").num_args(1..).help("Files of runs"))
        .arg(switch("json").help("Print one JSON object"));
    Command::new("bench")
        .about("Load an HTTP server and measure its responses")
        .override_usage(
            "gustnado bench [OPTIONS] [WEIGHT:]URL...\n       \
             gustnado bench [OPTIONS] --targets FILE\n       \
             gustnado bench merge [--json] FILE...",
        )
        .after_help(
            "Example: gustnado bench -c 100 -d 10s http://127.0.0.1:8080/\n\
             Several URLs are requested in turn: 3:http://a/ 1:http://a/b requests the first three \
             times as often.\nExit codes: 0; 1 nothing could be measured; 2 the command line is \
             wrong; 99 a --fail-if struck; 130 interrupted.",
        )
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .subcommand(merge)
        .arg(
            Arg::new("url")
                .value_name("[WEIGHT:]URL")
                .action(ArgAction::Append)
                .help("The URL to request: http://HOST[:PORT]/PATH or https://…"),
        )
        .args(load())
        .args(requests())
        .args(checks())
        .args(addresses())
        .args(tls())
        .args(results())
}

fn load() -> impl Iterator<Item = Arg> {
    let churn = switch("no-keep-alive")
        .visible_alias("churn")
        .overrides_with("keep-alive")
        .help("A new connection for each request");
    let keep_alive = switch("keep-alive")
        .short('k')
        .overrides_with("no-keep-alive")
        .help("Many requests on each connection; this is the default");
    [
        value("connections", "N").short('c').help("Connections that send requests at once [50]"),
        value("requests", "N").short('n').help("End after this many requests: 10000, 10k, 1e6"),
        value("duration", "TIME")
            .short('d')
            .visible_short_alias('z')
            .help("End after so long: 30, 30s, 5m [10s, if -n is not given]"),
        value("rate", "N")
            .short('q')
            .conflicts_with_all(["ramp", "stages"])
            .help("Open loop: this many requests per second, independent of the server"),
        value("ramp", "FROM:TO:STEPS[:SECONDS]")
            .conflicts_with_all(["hold", "stages"])
            .help("Rates in steps, to find the knee; a step lasts 5 seconds unless said"),
        value("stages", "TIME:RATE,...")
            .conflicts_with("hold")
            .help("Rates one after the other, each for its time: 10s:100,30s:1k"),
        value("hold", "N")
            .help("Hold this many idle connections, while the -c others send requests"),
        keep_alive,
        churn,
        value("streams", "N").short('m').visible_alias("pipeline").help(
            "Requests under way at once on each connection: streams by HTTP/2, else pipelined [1]",
        ),
        value("threads", "N").short('t').help("Threads of the generator [as many as CPUs]"),
        value("io", "KIND").help("The generator's way into the kernel: auto, uring, epoll [auto]"),
        value("ramp-up-max", "TIME").help(
            "Longest time for each connection to have a response before measuring; 0s: none [10s]",
        ),
        value("warm-up", "TIME").help("Time of load after that, before measuring [0s]"),
    ]
    .into_iter()
    .map(|arg| arg.help_heading("Load"))
}

fn requests() -> impl Iterator<Item = Arg> {
    [
        value("targets", "FILE")
            .help("Request what this file lists, too: a line [METHOD] [WEIGHT:]URL for each"),
        value("method", "METHOD").short('X').help("The method [GET, or POST with a body]"),
        value("header", "NAME: VALUE").short('H').action(ArgAction::Append).help("A header field"),
        value("body", "TEXT").short('b').help("The body"),
        value("body-file", "FILE").conflicts_with("body").help("The body, from a file"),
        switch("http1.0").help("Requests are of HTTP/1.0"),
        switch("h2")
            .conflicts_with_all(["http1.0", "h2c"])
            .help("Requests are of HTTP/2, which https URLs agree on by ALPN"),
        switch("h2c")
            .conflicts_with("http1.0")
            .help("Requests are of HTTP/2 in clear, which the server is known to speak"),
        switch("ws")
            .conflicts_with_all(["http1.0", "h2", "h2c", "no-keep-alive", "method"])
            .conflicts_with_all(["body", "body-file"])
            .help("Requests are messages over WebSockets, each of which comes back (echo)"),
        value("ws-bytes", "BYTES").requires("ws").help("Bytes of a message [64]"),
        switch("ws-binary").requires("ws").help("Messages are bytes, and not text"),
        switch("ws-broadcast")
            .requires("ws")
            .help("The server sends each message to all connections; their deliveries count"),
        value("slow-send", "BYTES/s").help("Send each request at this pace (slowloris)"),
        value("slow-read", "BYTES/s").help("Read each response at this pace"),
    ]
    .into_iter()
    .map(|arg| arg.help_heading("Requests"))
}

fn checks() -> impl Iterator<Item = Arg> {
    [
        value("status", "LIST")
            .visible_alias("accept-status")
            .action(ArgAction::Append)
            .value_delimiter(',')
            .help("Statuses that are success, such as 200,302 or 200-399,404 or 2xx [2xx]"),
        value("timeout", "TIME").help("Longest time for a response [30s]"),
        value("connect-timeout", "TIME").help("Longest time for connecting [5s]"),
        value("check-every", "N")
            .help("Check length and hash of one body in this many; 1 is each, 0 is none [100]"),
        value("fail-if", "BOUND")
            .action(ArgAction::Append)
            .help("Exit with 99 if so: p99>5ms, error_rate>1%, rps<1000; may be repeated"),
    ]
    .into_iter()
    .map(|arg| arg.help_heading("Checks"))
}

fn addresses() -> impl Iterator<Item = Arg> {
    [
        value("unix-socket", "PATH")
            .conflicts_with_all(["source", "target"])
            .help("Connect to this Unix socket; the URL names what is requested there"),
        value("source", "ADDR|CIDR").action(ArgAction::Append).help(
            "Connect from this address, or from all of 127.0.0.0/24 in turn; may be repeated",
        ),
        value("target", "ADDR:PORT")
            .action(ArgAction::Append)
            .help("Connect to this address instead of the URL's; may be repeated"),
        switch("i-own-this-host").help("Allow load on other hosts than loopback"),
    ]
    .into_iter()
    .map(|arg| arg.help_heading("Addresses"))
}

fn tls() -> impl Iterator<Item = Arg> {
    [
        value("cacert", "FILE").help("Trust servers of these authorities, in PEM [the system's]"),
        switch("insecure").conflicts_with("cacert").help("Trust any certificate"),
        value("cert", "FILE").help("The client's certificate, in PEM, for servers that want one"),
        value("key", "FILE").requires("cert").help("Its key, in PEM [in the same file]"),
        switch("no-resumption").help("A full handshake for each connection"),
        value("tls-group", "NAME[,...]")
            .action(ArgAction::Append)
            .value_delimiter(',')
            .help("Offer these key exchanges alone, such as X25519MLKEM768 [all, X25519 first]"),
        value("tls-max", "VERSION").help("The newest version to offer: 1.2 or 1.3 [1.3]"),
    ]
    .into_iter()
    .map(|arg| arg.help_heading("TLS"))
}

fn results() -> impl Iterator<Item = Arg> {
    let place = |arg: Arg| arg.num_args(0..=1).require_equals(true).default_missing_value("-");
    [
        place(value("json", "=FILE")).help("One JSON object instead of the table, or into a file"),
        place(value("csv", "=FILE")).help("Percentiles as CSV instead, or into a file"),
        value("csv-line", "FILE").help("Append this run as one line of CSV to a file"),
        value("trace", "FILE").short('g').help("A line for each request, in ab's columns"),
        value("hgrm", "FILE").help("Latencies as a log of HdrHistogram V2, for merging"),
        switch("progress").help("Show progress every 5 seconds where there is no terminal"),
        switch("no-progress")
            .visible_alias("quiet")
            .conflicts_with("progress")
            .help("Show no progress"),
    ]
    .into_iter()
    .map(|arg| arg.help_heading("Results"))
}

fn value(name: &'static str, placeholder: &'static str) -> Arg {
    let placeholder = placeholder.trim_start_matches('=');
    Arg::new(name).long(name).value_name(placeholder).allow_hyphen_values(true)
}

fn switch(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue)
}
