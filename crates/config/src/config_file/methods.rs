//! Methods that a file names.

use gustnado_http::method::Method;

use super::value::{ValueReader, ValueTable, named};
use crate::nearest::nearest;

/// The methods that a file may name. The server handles CONNECT and TRACE itself.
pub(super) const METHODS: [Method; 7] = [
    Method::Get,
    Method::Head,
    Method::Post,
    Method::Put,
    Method::Patch,
    Method::Delete,
    Method::Options,
];

/// Reads the methods of a route or a rule.
pub(super) fn read_methods(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
) -> Option<Vec<Method>> {
    let with_line = reader.texts(table, "methods")?;
    if with_line.is_empty() {
        let place = named(table, "methods");
        reader.problem(table.line, format!("{place}: expected a method, found none; leave it out"));
    }
    let mut methods = Vec::new();
    for with_line in with_line {
        let found = with_line.value;
        if let Some(method) = METHODS.iter().find(|method| method.as_str() == Some(found)) {
            methods.retain(|known| known != method);
            methods.push(*method);
            continue;
        }
        let names = METHODS.iter().filter_map(|method| method.as_str());
        let remedy = match nearest(found, names.clone()) {
            Some(near) => format!("did you mean {near}?"),
            None => "name one of them".to_owned(),
        };
        let all = names.collect::<Vec<_>>().join(", ");
        let place = named(table, "methods");
        let text = format!("{place}: expected one of {all}, found {found:?}; {remedy}");
        reader.problem(with_line.line, text);
    }
    Some(methods)
}
