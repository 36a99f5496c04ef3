//! What a request asks of a listing: its order, its page, its format.

use gustnado_http::content_coding::weight_of;
use gustnado_http::fields::HeaderId;
use gustnado_http::request::RequestView;

/// What entries are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SortBy {
    #[default]
    Name,
    Size,
    Date,
}

impl SortBy {
    pub(super) const ALL: [Self; 3] = [Self::Name, Self::Size, Self::Date];

    /// Returns its name in a query.
    pub(super) fn name(self) -> &'static str {
        ["name", "size", "date"][self as usize]
    }
}

/// The direction of the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Ascending,
    Descending,
}

impl Order {
    /// Returns its name in a query.
    pub(super) fn name(self) -> &'static str {
        ["asc", "desc"][self as usize]
    }

    /// Returns the other direction.
    pub(super) fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }
}

/// The format of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListingFormat {
    Html,
    Json,
}

/// What a request asks of a listing. Values that are none are as if they were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListingQuery {
    pub(super) by: SortBy,
    pub(super) order: Order,
    /// From 1 on.
    pub(super) page: usize,
    pub(super) format: ListingFormat,
}

impl ListingQuery {
    /// Reads a request's query: `sort`, `order`, `page`, `format`, of which the first of each
    /// counts. Without `format`, the field `Accept` decides.
    pub(super) fn of(request: RequestView<'_>) -> Self {
        let query = request.query().unwrap_or_default();
        let by = value(query, b"sort").unwrap_or_default();
        let page = value(query, b"page").and_then(|page| std::str::from_utf8(page).ok());
        let format = match value(query, b"format") {
            Some(b"json") => ListingFormat::Json,
            Some(b"html") => ListingFormat::Html,
            _ if request.known(HeaderId::Accept).is_some_and(prefers_json) => ListingFormat::Json,
            _ => ListingFormat::Html,
        };
        Self {
            by: SortBy::ALL
                .into_iter()
                .find(|known| known.name().as_bytes() == by)
                .unwrap_or_default(),
            order: match value(query, b"order") {
                Some(b"desc") => Order::Descending,
                _ => Order::Ascending,
            },
            // (A page beyond the last is the last; this bound keeps products of it in range.)
            page: page.and_then(|page| page.parse::<u32>().ok()).unwrap_or(1).max(1) as usize,
            format,
        }
    }
}

/// Returns the first value of a name in a query; names and values are compared as they were sent.
pub(crate) fn value<'q>(query: &'q [u8], name: &[u8]) -> Option<&'q [u8]> {
    query.split(|byte| *byte == b'&').find_map(|pair| {
        let value = pair.strip_prefix(name)?;
        value.strip_prefix(b"=")
    })
}

/// Returns whether a value of `Accept` (RFC 9110 §12.5.1) names JSON and wants it more than HTML.
fn prefers_json(accept: &[u8]) -> bool {
    let (mut json, mut html) = (0, 0);
    for range in accept.split(|byte| *byte == b',') {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let place = match parts.next() {
            Some(name) if name.eq_ignore_ascii_case(b"application/json") => &mut json,
            Some(name) if name.eq_ignore_ascii_case(b"text/html") => &mut html,
            _ => continue,
        };
        let quality = parts.find_map(|part| part.strip_prefix(b"q=").or(part.strip_prefix(b"Q=")));
        *place = quality.map_or(1_000, |quality| weight_of(quality).unwrap_or(0));
    }
    json > html
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_http::head::{Decoded, Head};
    use gustnado_http::limits::Limits;

    fn query(target: &str, accept: &str) -> ListingQuery {
        let input = format!("GET {target} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n");
        let outcome = Head::decode(input.as_bytes(), &mut 0, &Limits::default());
        let Ok(Decoded::Done(head)) = outcome else { panic!("{input}: {outcome:?}") };
        ListingQuery::of(head.on(input.as_bytes()))
    }

    #[test]
    fn the_query_says_what_is_wanted() {
        let plain = query("/", "*/*");
        let usual = ListingQuery {
            by: SortBy::Name,
            order: Order::Ascending,
            page: 1,
            format: ListingFormat::Html,
        };
        assert_eq!(plain, usual);
        let other = query("/?sort=size&order=desc&page=3&format=json", "text/html");
        let expected = ListingQuery {
            by: SortBy::Size,
            order: Order::Descending,
            page: 3,
            format: ListingFormat::Json,
        };
        assert_eq!(other, expected);
        for odd in ["/?sort=colour&order=up&page=-1&format=xml", "/?page=0&sort=", "/?&&=&page"] {
            assert_eq!(query(odd, "*/*"), usual, "{odd}");
        }
        assert_eq!(query("/?page=99999999999999999999", "*/*").page, 1);
    }

    #[test]
    fn json_is_for_those_who_want_it_more() {
        for (accept, is_json) in [
            ("application/json", true),
            ("Application/JSON;q=0.5, text/html;q=0.4", true),
            ("text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8", false),
            ("application/json, text/html", false),
            ("application/json;q=0", false),
            ("application/json;q=2", false),
            ("application/*", false),
            ("", false),
        ] {
            assert_eq!(query("/", accept).format == ListingFormat::Json, is_json, "{accept}");
        }
        assert_eq!(query("/?format=html", "application/json").format, ListingFormat::Html);
    }
}
