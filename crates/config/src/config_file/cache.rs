//! Rules for the `Cache-Control` of files: `[[cache]]`, `[[site.cache]]`, `[[route.cache]]`.

use gustnado_http::fields::check_field;

use super::value::{ValueReader, ValueTable};
use crate::deploys::CacheRule;
use crate::path_pattern::is_path_pattern;

/// The keys of a rule.
const KEYS: [&str; 2] = ["path", "value"];

/// Reads the rules of the file, of a site or of a route, in their order.
pub(super) fn read_cache(reader: &mut ValueReader<'_>, table: ValueTable<'_>) -> Vec<CacheRule> {
    let mut rules = Vec::new();
    for table in reader.tables(table, "cache") {
        reader.only(table, &KEYS);
        let (path, value) = (reader.required(table, "path"), reader.required(table, "value"));
        let (Some(path), Some(value)) = (path, value) else { continue };
        if !is_path_pattern(path.value) {
            let found = path.value;
            let text = format!(
                "cache.path: expected the path of files below the folder, such as \
                 /downloads/** or /*.pdf, found {found:?}; begin it with /, where * is anything \
                 within a segment and ** is anything"
            );
            reader.problem(path.line, text);
        }
        if value.value.is_empty() || check_field("Cache-Control", value.value.as_bytes()).is_err() {
            let found = value.value;
            let text = format!(
                "cache.value: expected a value of Cache-Control such as \"public, max-age=3600\", \
                 found {found:?}; write one"
            );
            reader.problem(value.line, text);
        }
        rules.push(CacheRule::new(path.value, value.value));
    }
    rules
}
