//! Whether the schema takes what the reader takes: a small validator of what it is made of.

use super::*;
use crate::config_file::{ConfigFile, ValueChecks};
use toml::de::{DeTable, DeValue};

/// Checks a value, and says where it is against the schema.
fn check(value: &DeValue<'_>, schema: &Json, place: &str) -> Result<(), String> {
    let Json::Map(rules) = schema else { return Err(format!("{place}: no schema")) };
    let rule = |name: &str| rules.iter().find(|(known, _)| known == name).map(|(_, rule)| rule);
    for (name, rule_of) in rules {
        let holds = match (name.as_str(), rule_of) {
            ("$schema" | "title" | "description" | "default" | "$defs", _) => true,
            ("type", Json::Text(kind)) => is_of(value, kind),
            ("minimum", Json::Number(min)) => number(value).is_none_or(|number| number >= *min),
            ("maximum", Json::Number(max)) => number(value).is_none_or(|number| number <= *max),
            ("enum", Json::List(all)) => match value {
                DeValue::String(found) => all.contains(&text(found)),
                other => number(other).is_some_and(|found| all.contains(&Json::Number(found))),
            },
            ("pattern", Json::Text(pattern)) => {
                value.as_str().is_none_or(|found| matches(pattern, found))
            }
            ("anyOf", Json::List(all)) => all.iter().any(|one| check(value, one, place).is_ok()),
            ("oneOf", Json::List(all)) => {
                all.iter().filter(|one| check(value, one, place).is_ok()).count() == 1
            }
            ("$ref", Json::Text(path)) => {
                let name = path.strip_prefix("#/$defs/").expect("a definition");
                let Json::Map(all) = definitions() else { unreachable!("they are a map") };
                let (_, definition) =
                    all.iter().find(|(known, _)| known == name).expect("it is defined");
                check(value, definition, place)?;
                true
            }
            ("required", Json::List(names)) => names.iter().all(|name| {
                let Json::Text(name) = name else { return false };
                value.as_table().is_some_and(|table| table.contains_key(name.as_str()))
            }),
            ("items", item) => {
                let DeValue::Array(items) = value else { return Err(format!("{place}: items")) };
                for one in items {
                    check(one.get_ref(), item, place)?;
                }
                true
            }
            ("properties", Json::Map(keys)) => {
                let table = value.as_table().ok_or_else(|| format!("{place}: no table"))?;
                for (name, one) in table {
                    if let Some((_, schema)) = keys.iter().find(|(key, _)| key == name.get_ref()) {
                        check(one.get_ref(), schema, &format!("{place}.{}", name.get_ref()))?;
                    }
                }
                true
            }
            ("additionalProperties", Json::Switch(false)) => {
                let Some(Json::Map(keys)) = rule("properties") else { return Err("keys".into()) };
                let table = value.as_table().ok_or_else(|| format!("{place}: no table"))?;
                let is_known = |name: &str| keys.iter().any(|(key, _)| key == name);
                table.keys().all(|name| is_known(name.get_ref()))
            }
            ("additionalProperties", schema) => {
                let table = value.as_table().ok_or_else(|| format!("{place}: no table"))?;
                for one in table.values() {
                    check(one.get_ref(), schema, place)?;
                }
                true
            }
            other => return Err(format!("{place}: what is {other:?}?")),
        };
        if !holds {
            return Err(format!("{place}: against {name}"));
        }
    }
    Ok(())
}

fn is_of(value: &DeValue<'_>, kind: &str) -> bool {
    match kind {
        "object" => value.is_table(),
        "array" => value.is_array(),
        "string" => value.is_str(),
        "integer" => value.is_integer(),
        "boolean" => value.is_bool(),
        _ => false,
    }
}

fn number(value: &DeValue<'_>) -> Option<u64> {
    value.as_integer()?.as_str().parse().ok()
}

/// Digits and one of the suffixes, or the word behind the last bar: what the patterns mean.
fn matches(pattern: &str, found: &str) -> bool {
    if pattern == VARIABLE {
        return found.contains("${") && found.contains('}');
    }
    let inner = pattern.trim_start_matches("^(").trim_end_matches(")$");
    let suffix = found.trim_start_matches(|letter: char| letter.is_ascii_digit());
    if suffix.len() == found.len() {
        return inner.rsplit('|').next() == Some(found);
    }
    let unit = suffix.trim_start().to_ascii_lowercase();
    match pattern {
        _ if unit.is_empty() => true,
        _ if pattern.contains("ms|s") => ["ms", "s", "m", "h", "d"].contains(&unit.as_str()),
        _ if pattern.contains("kmgt") => {
            ["k", "m", "g", "t", "b", "/"].iter().any(|start| unit.starts_with(start))
        }
        _ => false,
    }
}

fn against(text: &str) -> Result<(), String> {
    let (document, errors) = DeTable::parse_recoverable(text);
    assert!(errors.is_empty(), "{errors:?}");
    check(&DeValue::Table(document.into_inner()), &whole(), "file")
}

fn sample() -> (std::path::PathBuf, String) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sample/site.toml");
    let text = std::fs::read_to_string(&path).expect("the sample is there");
    (path, text)
}

#[test]
fn the_sample_is_read_and_is_by_the_schema() {
    let (path, text) = sample();
    ConfigFile::parse(&path, &text, ValueChecks::NONE).expect("nothing is wrong with it");
    against(&text).expect("the schema takes it");
}

#[test]
fn what_is_in_effect_is_by_the_schema_and_reads_the_same() {
    let (path, text) = sample();
    let file =
        ConfigFile::parse(&path, &text, ValueChecks::NONE).expect("nothing is wrong with it");
    let effective = ConfigFile::effective(Some(&file), &file.over_defaults());
    against(&effective).unwrap_or_else(|error| panic!("{error}\n{effective}"));
    let elsewhere = std::path::Path::new("/elsewhere/site.toml");
    let again = ConfigFile::parse(elsewhere, &effective, ValueChecks::NONE)
        .unwrap_or_else(|error| panic!("{error}\n{effective}"));
    assert_eq!(again.over_defaults().config, file.over_defaults().config);
    let plain = |file: &ConfigFile| {
        let text = ConfigFile::effective(Some(file), &file.over_defaults());
        let lines = text.lines().map(|line| line.split("  #").next().unwrap_or("").to_owned());
        lines.collect::<Vec<_>>()
    };
    assert_eq!(plain(&again), plain(&file));
}

#[test]
fn what_the_reader_refuses_the_schema_refuses() {
    for text in [
        "prot = 1",
        "port = 70000",
        "port = \"eighty\"",
        "hidden = \"yes\"",
        "scheduler = \"pol\"",
        "header-timeout = true",
        "[headers]\nX = 1",
        "[[route]]\nfolder = \"/\"",
        "[[route]]\npath = \"/\"",
        "[[route]]\npath = \"/\"\nanswer = \"x\"\nredirect = \"/y\"",
        "[[route]]\npath = \"/\"\nredirect = \"/y\"\nstatus = 200",
        "[[route]]\npath = \"/\"\nanswer = \"x\"\nmethods = [\"GOT\"]",
        "[[site]]\nroot = \"/\"",
        "[[error-page]]\nstatus = 404",
    ] {
        assert!(against(text).is_err(), "the schema takes {text}");
        let read = ConfigFile::parse(std::path::Path::new("site.toml"), text, ValueChecks::NONE);
        assert!(read.is_err(), "the reader takes {text}");
    }
}

#[test]
fn a_variable_may_stand_for_each_kind_of_setting() {
    let text = "workers = \"${N:-2}\"\nhidden = \"${H:-true}\"\nscheduler = \"${S:-pool}\"\n\
        header-timeout = \"${T:-5}s\"\ninclude = \"${D:-none}/*.toml\"\n";
    against(text).expect("the schema takes them");
    let path = std::path::Path::new("/nowhere/site.toml");
    let file =
        ConfigFile::parse_with(path, text, ValueChecks::NONE, &|_| None).expect("they are read");
    let config = file.over_defaults().config;
    assert_eq!(
        (config.workers, config.routes.hidden, config.scheduler.as_str()),
        (2, true, "pool")
    );
}

#[test]
fn every_default_is_by_the_schema() {
    for tunable in TUNABLES.iter().filter(|tunable| !tunable.default.is_empty()) {
        let value = match tunable.field {
            Field::Switch { .. } => tunable.default.to_owned(),
            _ => format!("{:?}", tunable.default),
        };
        against(&format!("{} = {value}", tunable.name)).expect("it is");
    }
}
