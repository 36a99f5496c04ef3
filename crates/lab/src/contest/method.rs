//! The method of measurement in sentences, for readers of a report. The code enforces each of them.

use super::cpus::CpuSplit;
use super::file::{ContestSpec, GeneratorKind, PageSpec};

/// What counts.
const COUNTED: &str = "Only successful responses (2xx unless the scenario names other statuses, \
    complete, of the right length) count as requests. Everything else is a failure, and shown. \
    The rate is that of the responses in the measured time.";

/// What is compared.
const COMPARABLE: &str = "Measuring began once every connection had a response, or once no \
    further one had. A row is not comparable if requests failed, if a round had no result, if \
    fewer than 99 % of the connections had a response within the measured time or were held to \
    its end, if more than 1 % of the requests had no response in it, if a fixed rate was not \
    reached, or if TLS agreed on something else than the reference did. It stands below the line \
    with its reason, has no ratio, and is in no plot.";

/// What CPU is.
const CPU: &str = "CPU is what the kernel charged to all processes of the server, those that \
    ended included. Without a warm-up it is exact, from before the first connection to after the \
    last, and divided by all responses of that time. With one, and where idle connections are \
    held, it is that of the measured time, between readings 0.15 s apart.";

/// What memory is.
const MEMORY: &str = "Memory is the proportional set size of all processes of the server. \
    Buffers of its sockets in the kernel are not in it. Memory for each connection is the peak \
    less what it had before the first one, divided by the connections.";

/// The sentences of a contest.
pub(super) fn sentences(contest: &ContestSpec, division: &CpuSplit) -> Vec<String> {
    let page = match &contest.page {
        PageSpec::Bytes(bytes) => format!("a page of {bytes} bytes"),
        PageSpec::File(path) => format!("the file {}", path.display()),
        PageSpec::Path(path) | PageSpec::Post(path, _) => format!("what each has at /{path}"),
        PageSpec::Messages(messages) => format!("WebSockets at /{}", messages.path),
    };
    let fresh = if contest.fresh {
        "Every run started the server, waited for a correct response, loaded the server, \
         and stopped it."
    } else {
        "All servers kept running between the rounds of a scenario; memory before the \
         first connection is therefore that before each round."
    };
    let unequal: Vec<String> = contest
        .contenders
        .iter()
        .filter_map(|one| {
            let why = one.allow_unequal.as_ref()?;
            Some(format!("{} was admitted although its response may differ: {why}.", one.name))
        })
        .collect();
    let mut sentences = vec![
        format!(
            "Every contender served {page}. Before each run its response was compared byte by \
             byte; a server that responds differently is not measured."
        ),
        format!(
            "Every scenario was measured in rounds, {} unless it says otherwise, and in each round \
             all contenders took their turn, so that what changes on the machine over time meets \
             all of them.",
            contest.rounds
        ),
        fresh.to_owned(),
        division.sentence.clone(),
        COUNTED.to_owned(),
        COMPARABLE.to_owned(),
        "A round in which the hypervisor took 5 % of the machine's CPU time is void and left out \
         where others remain. From 1 % on, CPU is counted in clock ticks, which do not hold stolen \
         time, with a note."
            .to_owned(),
        CPU.to_owned(),
        MEMORY.to_owned(),
        "A figure is the median over rounds, with the least and the greatest. A ratio is the \
         geometric mean of the ratios within each round; its 95 % interval is Student's t over \
         their logarithms. If the interval includes 1, or the ratio is within 1 % of it, the \
         difference is called noise. Fewer than three rounds have no interval and no verdict. A \
         percentile is given if ten responses lie beyond it. Intervals are not corrected for \
         how many there are."
            .to_owned(),
    ];
    sentences.extend(by_coding(contest));
    sentences.extend(by_messages(contest));
    sentences.extend(by_other_programs(contest));
    sentences.extend(unequal);
    sentences
}

/// What content codings have to do with the figures.
fn by_coding(contest: &ContestSpec) -> Option<String> {
    let most = crate::figures::decimal(contest.size_tolerance * 100.0);
    contest.scenarios.iter().any(|one| one.coding.is_some()).then(|| {
        format!(
            "Where requests accept one content coding alone, the response had to be in it and was \
             compared decoded, byte by byte. As it is sent it was at most {most} % longer than the \
             first one, which is the reference's where it takes part."
        )
    })
}

/// What messages over a `WebSocket` have to do with the figures.
fn by_messages(contest: &ContestSpec) -> Option<String> {
    let mut pages = contest.scenarios.iter().filter_map(|one| one.page.as_ref());
    let has_messages = pages.any(|page| matches!(page, PageSpec::Messages(_)));
    has_messages.then(|| {
        "Where requests are messages over WebSockets, a message that comes back is a response. \
         Before each run one message had to come back whole, and in the run one in a hundred \
         was compared."
            .to_owned()
    })
}

/// What generators and tools of others have to do with the figures.
fn by_other_programs(contest: &ContestSpec) -> Vec<String> {
    let mut sentences = Vec::new();
    if contest.scenarios.iter().any(|one| one.generator != GeneratorKind::Own) {
        sentences.push(
            "Where ab, wrk or h2load made the load, percentiles are its own, over all responses; \
             it has no finer ones (h2load none), no distribution, no time series, and no bytes \
             sent."
                .to_owned(),
        );
    }
    if contest.scenarios.iter().any(|one| !one.counts.is_empty()) {
        sentences.push(
            "Instructions are those of the server in user space (callgrind): the difference \
             between two servers' lives, one with ten times the requests of the other, for each \
             request between. System calls are those of all its threads (strace), for each \
             request. The least of all rounds counts."
                .to_owned(),
        );
    }
    sentences
}
