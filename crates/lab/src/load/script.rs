//! Prepared requests: addresses resolved, requests encoded, weights spread.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

use gustnado_http::fields::FieldName;
use gustnado_http::h2::hpack::Encoder;
use gustnado_http::method::Method;
use gustnado_http::request_writer::RequestWriter as Writer;
use gustnado_tasks::Endpoint;

use super::secure::LoadTls;
use crate::plan::{HttpVersion, LoadPlan, PlanError, RequestSpec, UrlParts, greatest_common};

/// Everything that the connections of a run request.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) kinds: Vec<RequestKind>,
    /// A connection stays in its group.
    pub(super) groups: Vec<HostGroup>,
    /// Groups of connections, assigned in turn.
    turns: Vec<u32>,
    /// Of the groups that are asked by TLS.
    pub(super) tls: Option<LoadTls>,
}

/// One kind of request.
#[derive(Debug)]
pub(super) struct RequestKind {
    /// All its bytes by HTTP/1, body included.
    pub(super) bytes: Vec<u8>,
    /// Its parts by HTTP/2. Empty where that is not spoken.
    pub(super) http2: Http2Request,
    pub(super) method: Method,
    /// The first successful response.
    pub(super) expected: OnceLock<ExpectedResponse>,
}

impl RequestKind {
    /// Returns whether its response has no body.
    pub(super) fn is_head(&self) -> bool {
        self.method == Method::Head
    }
}

/// The parts of a request by HTTP/2.
#[derive(Debug, Default)]
pub(super) struct Http2Request {
    method: String,
    is_tls: bool,
    authority: String,
    path: String,
    fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Http2Request {
    /// Writes its fields.
    ///
    /// - `keeps_path`: as for [`Encoder::request_line`].
    pub(super) fn encode(&self, keeps_path: bool, encoder: &mut Encoder, out: &mut Vec<u8>) {
        let line = (self.method.as_str(), self.is_tls);
        let place = (self.authority.as_bytes(), self.path.as_bytes());
        encoder.request_line(line, place, keeps_path, out);
        for (name, value) in &self.fields {
            encoder.field(FieldName::from(name.as_str()), value.as_bytes(), out);
        }
    }
}

/// Properties of the first successful response of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedResponse {
    pub(super) status: u16,
    pub(super) length: u64,
    pub(super) hash: u64,
}

/// Requests that can share a connection: those to one host and port.
#[derive(Debug)]
pub(super) struct HostGroup {
    host: String,
    /// The name for TLS; `None` is plain HTTP.
    pub(super) tls_host: Option<String>,
    /// Servers, assigned to its connections in turn.
    pub(super) servers: Vec<ServerAddrs>,
    /// Indices into the kinds, each as often as its weight says, well mixed.
    pub(super) round: Vec<u32>,
}

/// The addresses of one server, which are equivalent.
#[derive(Debug)]
pub(super) struct ServerAddrs {
    pub(super) all: Vec<Endpoint>,
    /// The address that last accepted a connection.
    pub(super) good: AtomicUsize,
}

impl ServerAddrs {
    pub(super) fn of(all: Vec<Endpoint>) -> Self {
        Self { all, good: AtomicUsize::new(0) }
    }
}

impl Script {
    /// All TCP addresses that connections may use.
    pub(super) fn servers(&self) -> Vec<SocketAddr> {
        let all = self.groups.iter().flat_map(|group| &group.servers).flat_map(|addrs| &addrs.all);
        let tcp =
            |to: &Endpoint| if let Endpoint::Tcp(address) = to { Some(*address) } else { None };
        all.filter_map(tcp).collect()
    }

    /// The only server of the run, if there is just one.
    pub(super) fn only_way(&self) -> Option<&ServerAddrs> {
        match &self.groups[..] {
            [HostGroup { servers, .. }] if servers.len() == 1 => servers.first(),
            _ => None,
        }
    }

    /// Resolves names and encodes requests.
    ///
    /// # Errors
    /// [`PlanError`]: a URL or field that cannot be sent, or an unknown name.
    pub(super) fn prepare(plan: &LoadPlan) -> Result<Self, PlanError> {
        let mut kinds = Vec::new();
        let mut groups: Vec<(HostGroup, Vec<(u32, u32)>)> = Vec::new();
        for (index, ask) in (0_u32..).zip(&plan.requests) {
            let url = UrlParts::parse(&ask.url)?;
            kinds.push(kind(plan, index as usize, &url)?);
            let host = format!("{} {} {:?}", url.is_tls(), url.authority(), ask.targets);
            let tls_host = url.is_tls().then(|| url.host().to_owned());
            let member = (index, ask.weight);
            if let Some((_, members)) = groups.iter_mut().find(|(group, _)| group.host == host) {
                members.push(member);
                continue;
            }
            let servers = servers(plan, &url, &ask.targets)?;
            groups.push((HostGroup { host, tls_host, servers, round: Vec::new() }, vec![member]));
        }
        let weights = |members: &[(u32, u32)]| members.iter().map(|(_, weight)| *weight).sum();
        let sums: Vec<(u32, u32)> =
            (0..).zip(&groups).map(|(at, (_, members))| (at, weights(members))).collect();
        let turns = round(&sums);
        let fill = |(mut group, members): (HostGroup, Vec<(u32, u32)>)| {
            group.round = round(&members);
            group
        };
        let groups: Vec<HostGroup> = groups.into_iter().map(fill).collect();
        let is_tls = groups.iter().any(|group| group.tls_host.is_some());
        let tls = is_tls.then(|| LoadTls::new(plan)).transpose().map_err(PlanError::Tls)?;
        Ok(Self { kinds, groups, turns, tls })
    }

    /// Returns the request that opens the WebSocket of a connection.
    pub(super) fn opening_kind(&self, group: u32, connection: u64) -> u32 {
        let round = &self.groups[group as usize].round;
        let turn = connection / (self.turns.len() as u64).max(1);
        round[usize::try_from(turn % round.len() as u64).expect("below a length")]
    }

    /// Returns the group of a connection.
    pub(super) fn group_of(&self, connection: u64) -> u32 {
        let turns = self.turns.len() as u64;
        self.turns[usize::try_from(connection % turns).expect("below a length")]
    }
}

/// Encodes one request.
fn kind(plan: &LoadPlan, index: usize, url: &UrlParts<'_>) -> Result<RequestKind, PlanError> {
    let ask = &plan.requests[index];
    let wrong = |why: String| PlanError::Request { url: ask.url.clone(), why };
    let method =
        Method::ALL.into_iter().find(|method| method.as_str() == Some(ask.method.as_str()));
    let method = method.filter(|method| *method != Method::Connect);
    let method = method.ok_or_else(|| {
        wrong(format!("the method {:?} is none of GET, HEAD, POST, PUT, DELETE, …", ask.method))
    })?;
    let mut bytes = Vec::new();
    let (target, host) = (url.target(), url.authority());
    let mut writer = Writer::start(&mut bytes, method, target.as_bytes(), host.as_bytes())
        .map_err(|error| wrong(error.to_string()))?;
    match (plan.http == HttpVersion::Http10, plan.keep_alive) {
        (false, true) => {}
        (false, false) => writer.close(),
        (true, keep_alive) => {
            writer.old();
            if keep_alive {
                writer.keep_alive();
            }
        }
    }
    if plan.websocket.is_some() {
        // A key as good as another: nothing here checks the answer to it (RFC 6455 §4.1).
        writer.upgrade("websocket").map_err(|error| wrong(error.to_string()))?;
        for (name, value) in WEBSOCKET_FIELDS {
            writer.field(name, value).map_err(|error| wrong(error.to_string()))?;
        }
    }
    for (name, value) in &ask.fields {
        writer
            .field(name, value.as_bytes())
            .map_err(|error| wrong(format!("the field {name}: {error}")))?;
    }
    let means_body = matches!(method, Method::Post | Method::Put | Method::Patch);
    let has_length = means_body || !ask.body.is_empty();
    if has_length {
        writer.content_length(ask.body.len() as u64);
    }
    writer.finish();
    let mut http2 = Http2Request::default();
    if plan.http == HttpVersion::Http2 {
        http2 = http2_request(ask, url, has_length).map_err(wrong)?;
    } else {
        bytes.extend_from_slice(&ask.body);
    }
    Ok(RequestKind { bytes, http2, method, expected: OnceLock::new() })
}

/// Returns the parts of a request whose fields have been checked.
fn http2_request(
    ask: &RequestSpec,
    url: &UrlParts<'_>,
    has_length: bool,
) -> Result<Http2Request, String> {
    let is_foreign = |name: &str| FOREIGN_FIELDS.iter().any(|of| name.eq_ignore_ascii_case(of));
    if let Some((name, _)) = ask.fields.iter().find(|(name, _)| is_foreign(name)) {
        return Err(format!("the field {name} is about an HTTP/1 connection: leave it out"));
    }
    let mut fields = ask.fields.clone();
    if has_length {
        fields.push(("content-length".to_owned(), ask.body.len().to_string()));
    }
    Ok(Http2Request {
        method: ask.method.clone(),
        is_tls: url.is_tls(),
        authority: url.authority(),
        path: url.target(),
        fields,
        body: ask.body.clone(),
    })
}

const WEBSOCKET_FIELDS: [(&str, &[u8]); 2] =
    [("Sec-WebSocket-Version", b"13"), ("Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ==")];

/// Fields that no request of HTTP/2 has (RFC 9113 §8.2.2), apart from those that the writer
/// refuses.
const FOREIGN_FIELDS: [&str; 3] = ["keep-alive", "proxy-connection", "upgrade"];

/// Resolves the addresses to connect to. Each target is a server of its own. All addresses of a
/// name are one server, of the family of the sources, if there are any.
fn servers(
    plan: &LoadPlan,
    url: &UrlParts<'_>,
    targets: &[SocketAddr],
) -> Result<Vec<ServerAddrs>, PlanError> {
    if let Some(path) = &plan.unix_socket {
        return Ok(vec![ServerAddrs::of(vec![Endpoint::Unix(path.clone())])]);
    }
    if !targets.is_empty() {
        return Ok(targets
            .iter()
            .map(|target| ServerAddrs::of(vec![Endpoint::Tcp(*target)]))
            .collect());
    }
    let host = url.host();
    let found = (host, url.port()).to_socket_addrs();
    let found = found.map_err(|error| PlanError::Unknown { host: host.to_owned(), error })?;
    let family = plan.sources.first().map(IpAddr::is_ipv4);
    let fits = |address: &SocketAddr| family.is_none_or(|is_ipv4| address.is_ipv4() == is_ipv4);
    let all: Vec<Endpoint> = found.into_iter().filter(fits).map(Endpoint::Tcp).collect();
    if all.is_empty() {
        return Err(PlanError::Family { host: host.to_owned() });
    }
    Ok(vec![ServerAddrs::of(all)])
}

/// Spreads members evenly by their weights, deterministically: each turn of a member belongs into
/// the middle of its share of the round.
fn round(members: &[(u32, u32)]) -> Vec<u32> {
    let divisor = members.iter().fold(0, |divisor, (_, weight)| greatest_common(divisor, *weight));
    let turns_of = |&(index, weight): &(u32, u32)| {
        let weight = u64::from(weight / divisor.max(1));
        (0..weight).map(move |turn| (2 * turn + 1, weight, index))
    };
    let mut turns: Vec<(u64, u64, u32)> = members.iter().flat_map(turns_of).collect();
    // Places are fractions of a round; members at one place keep their order.
    turns.sort_by(|(at, of, _), (other_at, other_of, _)| (at * other_of).cmp(&(other_at * of)));
    turns.into_iter().map(|(_, _, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::{Script, round};
    use crate::plan::{HttpVersion, LoadPlan};

    #[test]
    fn weights_are_spread_evenly() {
        assert_eq!(round(&[(7, 1)]), [7]);
        assert_eq!(round(&[(0, 20), (1, 10)]), [0, 1, 0]);
        assert_eq!(round(&[(0, 2), (1, 1), (2, 1)]), [0, 1, 2, 0]);
        assert_eq!(round(&[(0, 6), (1, 2)]), [0, 0, 1, 0]);
        let many: Vec<(u32, u32)> = (0..100_000).map(|index| (index, 5)).collect();
        assert!(round(&many).into_iter().eq(0..100_000), "equal weights keep their order");
    }

    #[test]
    fn requests_are_written_as_the_plan_says() {
        let mut plan = LoadPlan::closed("http://127.0.0.1:81/a?b", 1);
        plan.requests[0].method = "POST".to_owned();
        plan.requests[0].body = b"hello".to_vec();
        plan.requests[0].fields.push(("X-Y".to_owned(), "z".to_owned()));
        plan.http = HttpVersion::Http10;
        let script = Script::prepare(&plan).expect("a good plan");
        let want = "POST /a?b HTTP/1.0\r\nHost: 127.0.0.1:81\r\nConnection: keep-alive\r\n\
            X-Y: z\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(String::from_utf8_lossy(&script.kinds[0].bytes), want);
        plan.requests[0].method = "FETCH".to_owned();
        let refused = Script::prepare(&plan).expect_err("no such method").to_string();
        assert!(refused.contains("FETCH"), "{refused}");
    }

    #[test]
    fn connections_are_shared_out_among_hosts_by_weight() {
        let mut plan = LoadPlan::closed("http://127.0.0.1:81/", 3);
        let mut other = plan.requests[0].clone();
        other.url = "http://127.0.0.1:82/".to_owned();
        other.weight = 2;
        plan.requests.push(other);
        let script = Script::prepare(&plan).expect("a good plan");
        let groups: Vec<u32> = (0..6).map(|connection| script.group_of(connection)).collect();
        assert_eq!(groups, [1, 0, 1, 1, 0, 1]);
    }
}
