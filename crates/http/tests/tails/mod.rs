//! What can still follow bytes of which a decoder says that it needs more: tails, of which one must
//! make a whole of them, or pass a limit. They are kept apart from what the decoders themselves
//! try: a tail that is missing here fails a test, and lets nothing pass.
#![expect(dead_code, reason = "each test and fuzz target uses its own part")]

/// Ends of hosts, addresses, numbers and words that decide something.
const VALUE_ENDS: [&str; 13] =
    ["", "0", "a", "00", "5", "15", "]", "::]", ":]", ":0]", "0]", "0.0.0]", ".0]"];

/// Fields that a head may still lack.
const FIELDS: [&str; 4] = [
    "\r\n",
    "Host: a\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n",
    "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n",
];

fn suffixes(text: &str) -> impl Iterator<Item = &str> {
    (0..=text.len()).map(|from| &text[from..])
}

/// All of these, one behind the other.
fn product(firsts: &[String], seconds: &[&str]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for first in firsts {
        all.extend(seconds.iter().map(|second| format!("{first}{second}").into_bytes()));
    }
    all
}

fn value_ends() -> Vec<String> {
    let more = [":0:0]", "0:0]", ".0.0]", "0.0]", ".0.0.0]"];
    let words = suffixes("100-continue").chain(suffixes("chunked"));
    VALUE_ENDS.into_iter().chain(more).chain(words).map(str::to_owned).collect()
}

/// Tails of request heads.
pub(crate) fn of_heads() -> Vec<Vec<u8>> {
    let mut firsts: Vec<String> = ["", "\n", "\r\n", "\n\r\n", ": x\r\n"].map(str::to_owned).into();
    firsts.extend(suffixes("\nGET / HTTP/1.1\r\n").map(str::to_owned));
    firsts.extend(value_ends().iter().map(|end| format!("{end}\r\n")));
    let schemes = suffixes("http://a").chain(suffixes("https://a")).map(str::to_owned);
    let targets = value_ends().into_iter().chain(schemes);
    firsts.extend(suffixes(" HTTP/2.0\r\n").map(str::to_owned));
    for target in targets.flat_map(|end| [format!("{end}:0"), end]).chain(["/".to_owned()]) {
        firsts.push(format!("{target} HTTP/1.1\r\n"));
    }
    let mut tails = product(&firsts, &FIELDS);
    tails.extend(firsts.into_iter().map(String::into_bytes));
    tails
}

/// Tails of response heads.
pub(crate) fn of_responses() -> Vec<Vec<u8>> {
    let mut firsts: Vec<String> = ["", "\n", "\r\n", "\n\r\n", ": x\r\n"].map(str::to_owned).into();
    firsts.extend(suffixes("HTTP/1.1 200\r\n").map(str::to_owned));
    firsts.extend(value_ends().iter().map(|end| format!("{end}\r\n")));
    product(&firsts, &["\r\n", ""])
}

/// Tails of bodies in chunks of at most `bytes_max`.
pub(crate) fn of_bodies(bytes_max: usize) -> Vec<Vec<u8>> {
    let trailers = ["\n", "\r\n", "\n\r\n", "\r\n\r\n", ": b\r\n\r\n", "0\r\n\r\n", "\n0\r\n\r\n"];
    let mut tails: Vec<Vec<u8>> = trailers.map(|text| text.as_bytes().to_vec()).into();
    for line in ["", "\n", "\r\n", "a\r\n", "=a\r\n", "\"\r\n", "a\"\r\n", ";a\r\n"] {
        tails.push(format!("{line}\r\n").into_bytes());
        for bytes in 0..=bytes_max {
            tails.push(format!("{line}{}\r\n0\r\n\r\n", "a".repeat(bytes)).into_bytes());
        }
    }
    tails
}

/// Tails of PROXY headers.
pub(crate) fn of_proxies() -> Vec<Vec<u8>> {
    let four = ["", " 0.0.0.0 0.0.0.0 0 0", " 0.0.0.0 0 0", " 0 0", " 0"];
    let six = [" :: :: 0 0", " :: 0 0"];
    let families = suffixes("PROXY TCP4").chain(suffixes("PROXY UNKNOWN"));
    let more = ["::", ":", ":0", "0:0", ":0:0", ".0", "0.0", ".0.0", "0.0.0", ".0.0.0", "0.0.0.0"];
    let words: Vec<_> = families.chain(more).chain(["0"]).map(str::to_owned).collect();
    let behind = four.into_iter().chain(six).flat_map(|rest| ["\r\n", "\n"].map(|end| (rest, end)));
    let behind: Vec<_> = behind.map(|(rest, end)| format!("{rest}{end}")).collect();
    let mut tails = product(&words, &behind.iter().map(String::as_str).collect::<Vec<_>>());
    for from in 0..12 {
        let start = &b"\r\n\r\n\0\r\nQUIT\n"[from..];
        tails.push([start, &[0x20, 0, 0, 0]].concat());
    }
    for fixed in [&[][..], &[0], &[36], &[0, 36], &[216], &[0, 216]] {
        tails.push([fixed, &[0; 5_000]].concat());
    }
    tails
}
