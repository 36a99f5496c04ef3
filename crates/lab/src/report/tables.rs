//! The tables of a report's page.

use super::view::{View, fate, is_unequal};
use crate::figures::grouped;
use crate::markup::Markup;
use crate::plot::units::{ValueUnit, interval_text, range, times};
use crate::record::{ContenderRecord, Environment, Fate, ScenarioRecord};
use crate::statistics::{Column, ContenderFigures, Figure, Ratio, Significance};

/// Writes a table in a scrollable box, also for the keyboard.
pub(super) fn boxed(page: &mut Markup, id: &str, caption: &str, content: impl FnOnce(&mut Markup)) {
    let attributes =
        [("class", "scroll"), ("role", "region"), ("tabindex", "0"), ("aria-labelledby", id)];
    page.open("div", &attributes);
    page.open("table", &[]);
    page.open("caption", &[("id", id)]);
    page.element("span", &[], caption);
    page.close();
    content(page);
    page.close();
    page.close();
}

fn heads(page: &mut Markup, names: &[(&str, &str)]) {
    page.open("thead", &[]);
    page.open("tr", &[]);
    for (name, unit) in names {
        page.open("th", &[("scope", "col")]);
        page.text(name);
        if !unit.is_empty() {
            page.empty("br", &[]);
            page.element("small", &[], unit);
        }
        page.close();
    }
    page.close();
    page.close();
}

/// Writes the figures of one scenario: a row for each contender.
pub(super) fn figures(page: &mut Markup, view: &View<'_>, place: usize, scenario: &ScenarioRecord) {
    let sentence = scenario.sentence.trim();
    let pipelining = view.pipelining(&[scenario]);
    let caption = format!("Model: {} – {sentence} {pipelining}", scenario.model);
    boxed(page, &format!("figures-{place}"), &caption, |page| {
        let mut names = vec![("contender", "")];
        names.extend(Column::ALL.map(|column| (heading(column), below(column))));
        heads(page, &names);
        let (above, below): (Vec<_>, Vec<_>) =
            view.contenders().partition(|(_, one)| view.is_compared(scenario, one));
        page.open("tbody", &[]);
        for (_, contender) in above {
            figures_of(page, view, scenario, contender);
        }
        if !below.is_empty() {
            line(page);
        }
        for (_, contender) in below {
            figures_of(page, view, scenario, contender);
        }
        page.close();
    });
    notes(page, view, scenario);
}

/// Writes the line above the rows that are compared with nothing.
fn line(page: &mut Markup) {
    let columns = (Column::ALL.len() + 1).to_string();
    page.open("tr", &[("class", "line")]);
    let attributes = [("colspan", columns.as_str()), ("scope", "colgroup")];
    page.element("th", &attributes, "Not comparable, or not measured");
    page.close();
}

pub(super) fn heading(column: Column) -> &'static str {
    match column {
        Column::CpuPerRequest => "server CPU per request",
        Column::Rate => "rate",
        Column::BytesPerResponse => "bytes per response",
        Column::MemoryPerConnection => "memory per connection",
        other => other.title(),
    }
}

fn below(column: Column) -> &'static str {
    match column {
        Column::Rate => "more is better",
        Column::Failures => "in all rounds",
        Column::BytesPerResponse => "head and body",
        _ => "less is better",
    }
}

fn figures_of(
    page: &mut Markup,
    view: &View<'_>,
    scenario: &ScenarioRecord,
    contender: &ContenderRecord,
) {
    let row = view.row(scenario, contender);
    let class = if is_unequal(contender) { "unequal" } else { "" };
    page.open("tr", &[("class", class)]);
    page.open("th", &[("scope", "row")]);
    page.text(&contender.name);
    let mut tags = Vec::new();
    if contender.name == view.reference {
        tags.push("reference");
    }
    if !contender.tuning.is_empty() {
        tags.push(&contender.tuning);
    }
    if is_unequal(contender) {
        tags.push("not the same work");
    }
    let unfit = row.filter(|row| row.missing.is_none()).and_then(|row| row.unfit.as_ref());
    let unfit = unfit.map(|why| format!("not comparable: {why}"));
    tags.extend(unfit.as_deref());
    if !tags.is_empty() {
        page.empty("br", &[]);
        page.element("small", &[], &tags.join(", "));
    }
    page.close();
    match row {
        Some(row) if row.missing.is_none() => {
            for column in Column::ALL {
                figure(page, view, scenario, contender, row, column);
            }
        }
        _ => {
            let why = row.and_then(|row| row.missing.as_deref()).unwrap_or("not measured");
            let columns = Column::ALL.len().to_string();
            page.element("td", &[("colspan", &columns), ("class", "missing")], &format!("× {why}"));
        }
    }
    page.close();
}

fn figure(
    page: &mut Markup,
    view: &View<'_>,
    scenario: &ScenarioRecord,
    contender: &ContenderRecord,
    row: &ContenderFigures,
    column: Column,
) {
    if column == Column::Failures {
        match view.failed(scenario, contender) {
            Some(failed) => {
                page.open("td", &[("class", "failed")]);
                page.element("b", &[], &format!("× {}", grouped(failed.count)));
                small(page, &failed.rest());
                page.close();
            }
            None => page.element("td", &[], "0"),
        }
        return;
    }
    let Some(figure) = row.figure(column) else {
        page.element("td", &[], "–");
        return;
    };
    page.open("td", &[]);
    page.element("b", &[], &unit(column).write(figure.median));
    small(page, &spread(figure, unit(column)));
    if let Some(ratio) = figure.ratio {
        small(page, &said(ratio));
        if ratio.verdict == Significance::Noise {
            small(page, "within the noise");
        }
    }
    page.close();
}

/// Writes small text on a line of its own, if there is any.
pub(super) fn small(page: &mut Markup, text: &str) {
    if !text.is_empty() {
        page.empty("br", &[]);
        page.element("small", &[], text);
    }
}

pub(super) fn unit(column: Column) -> ValueUnit {
    match column {
        Column::Rate => ValueUnit::PerSecond,
        Column::MemoryPerConnection => ValueUnit::Bytes,
        Column::BytesPerResponse | Column::Failures => ValueUnit::Number,
        _ => ValueUnit::Microseconds,
    }
}

/// `11.8–12.4 µs`; empty for a single round.
fn spread(figure: &Figure, unit: ValueUnit) -> String {
    if figure.n < 2 {
        return String::new();
    }
    range(unit, figure.low, figure.high)
}

/// `1.32 ×`, or `≈ 1.01 ×` within the noise.
pub(super) fn ratio_text(ratio: Ratio) -> String {
    let sign = if ratio.verdict == Significance::Noise { "≈ " } else { "" };
    format!("{sign}{} ×", times(ratio.value))
}

/// `1.32 × (1.28–1.36)`, or that it is noise, or that the rounds are too few.
fn said(ratio: Ratio) -> String {
    let value = times(ratio.value);
    let interval =
        ratio.interval.map_or_else(String::new, |ends| format!(" ({})", interval_text(ends)));
    match ratio.verdict {
        Significance::Unknown => format!("{value} × (too few rounds)"),
        Significance::Less | Significance::More | Significance::Noise => {
            format!("{value} ×{interval}")
        }
    }
}

/// Caveats of a table's figures.
fn notes(page: &mut Markup, view: &View<'_>, scenario: &ScenarioRecord) {
    let rows = view.rows.iter().filter(|row| row.scenario == scenario.name);
    let all =
        rows.flat_map(|row| row.notes.iter().map(|note| format!("{}: {note}", row.contender)));
    items(page, &all.collect::<Vec<_>>());
}

/// Writes a list of sentences, if there are any.
pub(super) fn items(page: &mut Markup, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    page.open("ul", &[("class", "notes")]);
    for sentence in sentences {
        page.element("li", &[], sentence);
    }
    page.close();
}

/// Writes the contenders and how each was started.
pub(super) fn contenders(page: &mut Markup, view: &View<'_>) {
    boxed(page, "who", "Each server, how it was started, and what became of it", |page| {
        heads(
            page,
            &[("contender", ""), ("version", ""), ("command", ""), ("what became of it", "")],
        );
        page.open("tbody", &[]);
        for (_, contender) in view.contenders() {
            page.open("tr", &[]);
            page.open("th", &[("scope", "row")]);
            page.text(&contender.name);
            small(page, &contender.tuning);
            page.close();
            page.element("td", &[], contender.version.as_deref().unwrap_or("–"));
            page.open("td", &[("class", "prose")]);
            page.element("code", &[], &command(&contender.command));
            small(page, &contender.about);
            page.close();
            let (words, why) = fate(contender);
            let class = if contender.fate == Fate::Ran { "prose" } else { "prose missing" };
            page.open("td", &[("class", class)]);
            page.text(words);
            small(page, why);
            page.close();
            page.close();
        }
        page.close();
    });
}

/// A command line in shell syntax.
fn command(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+{}".contains(c);
    let quoted: Vec<String> = words
        .iter()
        .map(|word| match word {
            word if !word.is_empty() && word.chars().all(plain) => word.clone(),
            word => format!("'{}'", word.replace('\'', r"'\''")),
        })
        .collect();
    quoted.join(" ")
}

/// Writes the table of the machine.
pub(super) fn environment(page: &mut Markup, view: &View<'_>) {
    let machine = &view.record.environment;
    boxed(page, "where", "The machine and its settings", |page| {
        page.open("tbody", &[]);
        for (name, value) in machine_lines(machine, &view.record.tool) {
            page.open("tr", &[]);
            page.element("th", &[("scope", "row")], &name);
            page.element("td", &[("class", "prose")], &value);
            page.close();
        }
        page.close();
    });
}

fn machine_lines(machine: &Environment, tool: &str) -> Vec<(String, String)> {
    let unknown = || "unknown".to_owned();
    let (soft, hard) = machine.descriptors;
    let apart = if machine.server_cpus == machine.generator_cpus {
        " (the same as the generator's: they take CPU from each other)"
    } else {
        ""
    };
    let memory = crate::plot::units::float(machine.memory_bytes);
    let mut lines: Vec<(String, String)> = [
        ("CPU", format!("{}, {} that may be used", machine.cpu, machine.cpus)),
        ("memory", ValueUnit::Bytes.write(memory)),
        ("system", machine.system.clone().unwrap_or_else(unknown)),
        ("kernel", machine.kernel.clone()),
        ("CPU governor", machine.governor.clone().unwrap_or_else(unknown)),
        ("CPUs of the servers", format!("{}{apart}", list(&machine.server_cpus))),
        ("CPUs of the generator", list(&machine.generator_cpus)),
        ("descriptors a process may have", format!("{soft}, at most {hard}")),
        ("measured with", tool.to_owned()),
        ("commit of its sources", machine.commit.clone().unwrap_or_else(unknown)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    lines.extend(machine.sysctls.iter().map(|(name, value)| (name.clone(), value.clone())));
    lines
}

fn list(cpus: &[u32]) -> String {
    let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
    if names.is_empty() { "any".to_owned() } else { names.join(", ") }
}
