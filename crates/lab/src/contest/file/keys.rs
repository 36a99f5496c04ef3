//! The declaration of a key, and all that derives from it: its value is read, its default is set,
//! unknown keys are reported, and the reference has its row.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::{DeArray, DeValue};

use super::duration;
use super::raw::{KeyLines, Problems, RawTable};
use crate::notation;

/// A key of a table: its only declaration.
pub(super) struct FileKey<T> {
    pub(super) name: &'static str,
    pub(super) fallback: Fallback,
    /// Its meaning, in Markdown.
    pub(super) doc: &'static str,
    pub(super) takes: Takes<T>,
}

/// The value of a key that is left out.
pub(super) enum Fallback {
    /// There is none.
    None,
    /// This value, as a file would have it.
    Value(&'static str),
    /// It depends on others, as this text says; the checks fill it in.
    Depends(&'static str),
}

/// The kind of a value, and where it is kept.
pub(super) enum Takes<T> {
    Text(fn(&mut T, String)),
    Number(RangeInclusive<u64>, fn(&mut T, u64)),
    /// A list of numbers.
    Numbers(RangeInclusive<u64>, fn(&mut T, Vec<u64>)),
    /// A number or a list of them.
    Sweep(RangeInclusive<u64>, fn(&mut T, Vec<u64>)),
    Fraction(RangeInclusive<f64>, fn(&mut T, f64)),
    Length(RangeInclusive<Duration>, fn(&mut T, Duration)),
    Switch(fn(&mut T, bool)),
    /// One of several words; its index is kept.
    Choice(&'static [&'static str], fn(&mut T, usize)),
    /// Several of several words.
    Choices(&'static [&'static str], fn(&mut T, Vec<usize>)),
    Texts(fn(&mut T, Vec<String>)),
    /// Commands: lists of words.
    Commands(fn(&mut T, Vec<Vec<String>>)),
    /// A table of texts.
    Map(fn(&mut T, BTreeMap<String, String>)),
    /// A table of its own, or a list of them; `settle` reads it.
    Tables,
}

/// Sets all keys that have a default.
pub(super) fn set_defaults<T>(keys: &[FileKey<T>], target: &mut T) {
    for key in keys {
        if let Fallback::Value(text) = key.fallback {
            let value = DeValue::parse(text).expect("a test reads every default");
            key.takes.read(value.get_ref(), target).expect("a test reads every default");
        }
    }
}

/// Reads a table and reports all its mistakes. A key with a mistake keeps its default.
pub(super) fn read<T>(
    keys: &[FileKey<T>],
    table: RawTable<'_>,
    problems: &mut Problems,
    target: &mut T,
) -> KeyLines {
    let lines = table.lines();
    for (name, value) in table.entries() {
        let read = match keys.iter().find(|key| key.name == name) {
            Some(key) => key.takes.read(value, target),
            None => Err(unknown(name, &names(keys))),
        };
        if let Err(text) = read {
            problems.say(&lines, name, &text);
        }
    }
    lines
}

/// The names of all keys.
fn names<T>(keys: &[FileKey<T>]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

fn unknown(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("no such key here; did you mean {near}?"),
        None => format!("no such key here; there are {}", known.join(", ")),
    }
}

/// The known word that was probably meant.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let score = |word: &&&str| strsim::jaro_winkler(name, word);
    let best = known.iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(&best) > 0.8).then_some(*best)
}

impl<T> Takes<T> {
    /// Reads a value and keeps it.
    ///
    /// # Errors
    /// A sentence with what was expected and what was found.
    fn read(&self, value: &DeValue<'_>, target: &mut T) -> Result<(), String> {
        let wrong = || format!("expected {}, found {}; correct it", self.words(), shown(value));
        match self {
            Self::Text(set) => set(target, value.as_str().ok_or_else(wrong)?.to_owned()),
            Self::Number(range, set) => set(target, whole(value, range).ok_or_else(wrong)?),
            Self::Numbers(range, set) => set(target, wholes(value, range).ok_or_else(wrong)?),
            Self::Sweep(range, set) => {
                let one = whole(value, range).map(|number| vec![number]);
                let all = one.or_else(|| wholes(value, range)).filter(|all| !all.is_empty());
                set(target, all.ok_or_else(wrong)?);
            }
            Self::Fraction(range, set) => {
                let number = value.as_str().map_or_else(|| real(value), notation::real);
                let number = number.filter(|number| range.contains(number));
                set(target, number.ok_or_else(wrong)?);
            }
            Self::Length(range, set) => {
                let length = length(value).filter(|length| range.contains(length));
                set(target, length.ok_or_else(wrong)?);
            }
            Self::Switch(set) => set(target, value.as_bool().ok_or_else(wrong)?),
            Self::Choice(words, set) => set(target, place(value, words).ok_or_else(wrong)?),
            Self::Choices(words, set) => {
                let places = each(value, |item| place(item, words));
                set(target, places.ok_or_else(wrong)?);
            }
            Self::Texts(set) => set(target, texts(value).ok_or_else(wrong)?),
            Self::Commands(set) => set(target, each(value, texts).ok_or_else(wrong)?),
            Self::Map(set) => {
                let table = value.as_table().ok_or_else(wrong)?;
                let pairs = table.iter().map(|(key, value)| {
                    let text = value.get_ref().as_str()?;
                    Some((key.get_ref().to_string(), text.to_owned()))
                });
                set(target, pairs.collect::<Option<_>>().ok_or_else(wrong)?);
            }
            Self::Tables => {
                let is_table = |item: &DeValue<'_>| item.is_table().then_some(());
                if !value.is_table() {
                    each(value, is_table).ok_or_else(wrong)?;
                }
            }
        }
        Ok(())
    }

    /// Describes the values that it takes.
    fn words(&self) -> String {
        match self {
            Self::Text(_) => "a text".to_owned(),
            Self::Number(range, _) => format!("{} to {}", range.start(), range.end()),
            Self::Numbers(range, _) => {
                format!("a list of numbers from {} to {}", range.start(), range.end())
            }
            Self::Sweep(range, _) => {
                let (from, to) = (range.start(), range.end());
                format!("a number such as 1000, or a list such as [100, 1000], from {from} to {to}")
            }
            Self::Fraction(range, _) => format!("{} to {}", range.start(), range.end()),
            Self::Length(range, _) => {
                let (from, to) = (duration::written(*range.start()), range.end());
                format!("a length of time from {from} to {}", duration::written(*to))
            }
            Self::Switch(_) => "true or false".to_owned(),
            Self::Choice(words, _) => one_of(words),
            Self::Choices(words, _) => format!("a list of {}", one_of(words)),
            Self::Texts(_) => "a list of texts".to_owned(),
            Self::Commands(_) => "a list of commands, each a list of words".to_owned(),
            Self::Map(_) => "a table of texts".to_owned(),
            Self::Tables => "a table, or a list of them".to_owned(),
        }
    }
}

/// `a, b or c`
fn one_of(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// Shows a value in a message.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(switch) => switch.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| shown(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(_) => "a table".to_owned(),
    }
}

fn whole(value: &DeValue<'_>, range: &RangeInclusive<u64>) -> Option<u64> {
    let number = if let Some(text) = value.as_str() {
        notation::whole(text)?
    } else {
        let number = value.as_integer()?;
        u64::from_str_radix(number.as_str(), number.radix()).ok()?
    };
    range.contains(&number).then_some(number)
}

fn wholes(value: &DeValue<'_>, range: &RangeInclusive<u64>) -> Option<Vec<u64>> {
    each(value, |item| whole(item, range))
}

fn real(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

fn length(value: &DeValue<'_>) -> Option<Duration> {
    match value.as_str() {
        Some(text) => duration::of_text(text),
        None => duration::of_seconds(real(value)?),
    }
}

fn place(value: &DeValue<'_>, words: &[&str]) -> Option<usize> {
    let word = value.as_str()?;
    words.iter().position(|known| *known == word)
}

fn texts(value: &DeValue<'_>) -> Option<Vec<String>> {
    each(value, |item| item.as_str().map(str::to_owned))
}

/// Reads each item of a list.
fn each<V>(value: &DeValue<'_>, read: impl Fn(&DeValue<'_>) -> Option<V>) -> Option<Vec<V>> {
    let items: &DeArray<'_> = value.as_array()?;
    items.iter().map(|item| read(item.get_ref())).collect()
}

/// Returns the rows of a table of the reference.
pub(super) fn rows<T>(keys: &[FileKey<T>]) -> String {
    let mut page = "| key | default | takes | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for key in keys {
        let default = match key.fallback {
            Fallback::None => "none".to_owned(),
            Fallback::Value(text) => format!("`{text}`"),
            Fallback::Depends(text) => text.to_owned(),
        };
        let (name, takes, doc) = (key.name, key.takes.words(), key.doc);
        let _ = writeln!(page, "| `{name}` | {default} | {takes} | {doc} |");
    }
    page
}
