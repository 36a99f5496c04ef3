use super::*;
use crate::handler_limits::LimitContext;
use crate::middleware::Runnable;
use crate::request::Request;
use gustnado_config::Config;
use gustnado_files::FileOptions;
use gustnado_tasks::BlockingPool;
use std::hint::black_box;
use std::time::Instant;

const ROUTES: usize = 1_000;

/// Half of the paths are exact, half have a named part.
fn path_of(at: usize, name: &str) -> String {
    match at % 2 {
        0 => format!("/area/{}/section/page{at}", at % 50),
        _ => format!("/area/{}/section{at}/{name}/detail", at % 50),
    }
}

fn thousand_routes() -> Tables {
    let routes = (0..ROUTES).fold(Routes::new(), |routes, at| {
        routes.get(&path_of(at, "{id}"), move |_: &Request| at.to_string())
    });
    let files = FileOptions::default();
    let limits = LimitContext::new(&Arc::default(), &Config::default());
    let build = BuildContext::new(BlockingPool::new(1, 1), limits, files);
    Tables::new(&routes, &build).expect("no two paths are alike")
}

fn find<'t>(table: &'t RouteTable, path: &str, recent: &Cell<usize>) -> &'t RouteEndpoint {
    let exact = table.find_exact(Method::Get, path.as_bytes(), recent);
    let walked = || {
        let path = CanonicalPath::of(path.as_bytes()).expect("a path that is served");
        table.find(Method::Get, &path).endpoint
    };
    exact.unwrap_or_else(walked)
}

#[test]
fn each_of_a_thousand_routes_is_found() {
    let (tables, recent) = (thousand_routes(), Cell::new(0));
    for at in 0..ROUTES {
        let endpoint = find(&tables.rest, &path_of(at, "7"), &recent);
        let EndpointKind::Run(Runnable::Inline(handler)) = &endpoint.kind else {
            panic!("all are inline");
        };
        let mut request = crate::request::tests::of("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(
            handler(&mut request).content().map(|all| all.to_vec()),
            Some(at.to_string().into_bytes())
        );
    }
}

/// `cargo test --release -p gustnado --lib -- --ignored --nocapture a_thousand_routes`
#[test]
#[ignore = "it measures: no test asserts a time"]
fn how_long_it_takes_to_find_one_of_a_thousand_routes() {
    const ROUNDS: usize = 2_000;
    let (tables, recent) = (thousand_routes(), Cell::new(0));
    for (what, first) in [("exact", 0), ("with a named part", 1)] {
        let paths: Vec<String> = (first..ROUTES).step_by(2).map(|at| path_of(at, "1234")).collect();
        let began = Instant::now();
        for path in (0..ROUNDS).flat_map(|_| &paths) {
            black_box(find(&tables.rest, black_box(path), &recent));
        }
        let each = began.elapsed() / u32::try_from(ROUNDS * paths.len()).expect("a million");
        println!("{what}: {each:?}");
    }
}
