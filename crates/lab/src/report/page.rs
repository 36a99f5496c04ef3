//! The page of a report: a self-contained `index.html`.

use std::time::{Duration, UNIX_EPOCH};

use super::figures::{Plot, ReportSection};
use super::view::View;
use super::{tables, verdict};
use crate::markup::Markup;
use crate::plot::drawing::{ColourRole, Size};
use crate::plot::{palette, svg};

/// Content security policy: the page fetches and sends nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Number of plots in a section from which on they are collapsed.
const OPEN_MAX: usize = 6;

/// Renders the page.
pub(super) fn write(view: &View<'_>, plots: &[Plot]) -> String {
    let mut page = Markup::default();
    page.trusted("<!doctype html>\n");
    page.open("html", &[("lang", "en")]);
    head(&mut page, view);
    page.open("body", &[]);
    page.element("a", &[("class", "skip"), ("href", "#verdict")], "Skip to the verdict");
    banner(&mut page, view);
    page.open("main", &[]);
    findings(&mut page, view);
    figures(&mut page, view);
    pictures(&mut page, view, plots);
    section(&mut page, "contenders", "Contenders", |page| tables::contenders(page, view));
    section(&mut page, "environment", "Environment", |page| tables::environment(page, view));
    section(&mut page, "method", "Method", |page| method(page, view));
    section(&mut page, "data", "Raw data", |page| data(page, plots));
    section(&mut page, "file", "The contest’s file", |page| file(page, view));
    page.close();
    page.open("footer", &[]);
    page.element("p", &[], &format!("Made by {}.", view.record.tool));
    page.close();
    page.open("script", &[]);
    page.trusted(include_str!("behaviour.js"));
    page.close();
    page.close();
    page.close();
    page.finish()
}

fn head(page: &mut Markup, view: &View<'_>) {
    page.open("head", &[]);
    page.empty("meta", &[("charset", "utf-8")]);
    page.empty("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
    let viewport = "width=device-width, initial-scale=1";
    page.empty("meta", &[("name", "viewport"), ("content", viewport)]);
    page.element("title", &[], &format!("{} – contest of servers", view.record.title));
    page.open("style", &[]);
    page.trusted(&palette::style_sheet());
    page.trusted(include_str!("style.css"));
    page.close();
    page.close();
}

fn banner(page: &mut Markup, view: &View<'_>) {
    let record = view.record;
    page.open("header", &[]);
    page.element("h1", &[], &record.title);
    for paragraph in record.about.split("\n\n").filter(|text| !text.trim().is_empty()) {
        page.element("p", &[], paragraph.trim());
    }
    let rounds = match view.rounds() {
        1 => "one round".to_owned(),
        many => format!("{many} rounds"),
    };
    let minutes = (record.took_s / 60.0).max(0.0);
    let line = format!(
        "{}, {rounds} in {minutes:.0} min, by {}",
        date(record.started_unix_s),
        record.tool
    );
    page.element("p", &[("class", "faint")], &line);
    page.open("nav", &[("aria-label", "Sections")]);
    for (id, name) in [
        ("figures", "Figures"),
        ("plots", "Plots"),
        ("contenders", "Contenders"),
        ("environment", "Environment"),
        ("method", "Method"),
        ("data", "Raw data"),
        ("file", "File"),
    ] {
        page.element("a", &[("href", &format!("#{id}"))], name);
        page.text(" ");
    }
    page.close();
    page.close();
}

/// A date in HTTP's form (RFC 9110 §5.6.7), in UTC, clamped to the years it can represent.
fn date(unix_s: f64) -> String {
    const END_S: f64 = 253_402_300_799.0;
    let since =
        Duration::from_secs_f64(if unix_s.is_finite() { unix_s } else { 0.0 }.clamp(0.0, END_S));
    httpdate::fmt_http_date(UNIX_EPOCH + since)
}

fn section(page: &mut Markup, id: &str, title: &str, content: impl FnOnce(&mut Markup)) {
    let heading = format!("{id}-h");
    page.open("section", &[("id", id), ("aria-labelledby", &heading)]);
    page.element("h2", &[("id", &heading)], title);
    content(page);
    page.close();
}

fn findings(page: &mut Markup, view: &View<'_>) {
    page.open("section", &[("id", "verdict"), ("tabindex", "-1"), ("aria-label", "Verdict")]);
    if let Some(why) = &view.record.cut {
        let text = format!("This contest ended early: {why}. What follows is what was measured.");
        page.element("p", &[("class", "alarm")], &text);
    }
    page.element("p", &[("class", "verdict")], &verdict::winners(view));
    tables::items(page, &verdict::troubles(view));
    page.close();
}

fn figures(page: &mut Markup, view: &View<'_>) {
    section(page, "figures", "Figures", |page| {
        let reference = &view.record.reference;
        let rounds = match view.rounds() {
            0 | 1 => "There was one round, so that no spread and no interval can be given.".into(),
            many => format!(
                "Each figure is the median of {many} rounds; below it stand the least and the \
                 greatest round, and how many times as much it is as with {reference}, with the \
                 95 % interval of that."
            ),
        };
        page.element("p", &[], &rounds);
        for (place, scenario) in view.record.scenarios.iter().enumerate() {
            page.element("h3", &[], &scenario.title);
            tables::figures(page, view, place, scenario);
        }
        if view.record.scenarios.is_empty() {
            page.element("p", &[], "There is no scenario.");
        }
    });
}

fn pictures(page: &mut Markup, view: &View<'_>, plots: &[Plot]) {
    section(page, "plots", "Plots", |page| {
        let text = "Each contender has its own colour, dashes and mark. A cross (×) is a failure, \
                    a hollow mark is work that is not the same.";
        page.element("p", &[], text);
        page.open("div", &[("id", "choice"), ("hidden", "")]);
        for (owner, contender) in view.contenders() {
            let ink = palette::class(ColourRole::Contender(owner));
            let attributes = [("data-owner", owner.to_string()), ("class", ink)];
            let attributes = attributes.each_ref().map(|(name, value)| (*name, value.as_str()));
            page.element("span", &attributes, &contender.name);
        }
        page.close();
        for part in ReportSection::ALL {
            let of_part: Vec<&Plot> = plots.iter().filter(|plot| plot.part == part).collect();
            if of_part.is_empty() {
                continue;
            }
            page.element("h3", &[], part.heading());
            page.element("p", &[], part.explanation());
            let folded = of_part.len() > OPEN_MAX;
            if folded {
                page.open("details", &[]);
                let count = of_part.len();
                page.element("summary", &[], &format!("{}: {count} plots", part.heading()));
            }
            for plot in of_part {
                picture(page, plot);
            }
            if folded {
                page.close();
            }
        }
        if plots.is_empty() {
            page.element("p", &[], "Nothing was measured that could be drawn.");
        }
    });
}

/// One plot, drawn for wide and for narrow windows; the style sheet shows one of them.
fn picture(page: &mut Markup, plot: &Plot) {
    let stem = plot.stem.as_str();
    page.open("figure", &[("id", stem)]);
    for (class, size) in [("wide", Size::Wide), ("narrow", Size::Narrow)] {
        page.open("div", &[("class", class)]);
        svg::element(page, &plot.kind.draw(size), &format!("{stem}-{class}"));
        page.close();
    }
    page.open("figcaption", &[]);
    page.text(plot.kind.summary());
    page.text(" ");
    for kind in ["png", "svg"] {
        let label = format!("{} of “{}”", kind.to_uppercase(), plot.kind.title());
        let href = format!("plots/{stem}.{kind}");
        page.element("a", &[("href", &href), ("aria-label", &label)], &kind.to_uppercase());
        page.text(" ");
    }
    page.close();
    page.close();
}

fn method(page: &mut Markup, view: &View<'_>) {
    page.open("ul", &[]);
    for sentence in &view.record.method {
        page.element("li", &[], sentence);
    }
    for sentence in [
        "A figure is the median over rounds. A ratio is the geometric mean of the ratios within \
         each round; its 95 % interval is Student’s t over their logarithms.",
        "A difference whose interval includes 1, or that is less than 1 %, is called noise.",
        "Server CPU is that of all the server’s processes while the load ran, user and system, \
         divided by the successful responses. Memory is the proportional set size of all its \
         processes; for each connection it is the peak less what there was before the first one.",
        "Only successful and complete responses count as requests and have a latency. Everything \
         else is shown as a failure.",
    ] {
        page.element("li", &[], sentence);
    }
    page.close();
}

fn data(page: &mut Markup, plots: &[Plot]) {
    page.open("ul", &[]);
    for (name, what) in [
        ("contest.json", "everything that was measured, and what this page was made from"),
        ("rounds.tsv", "a line for each contender, scenario and round"),
        ("percentiles.tsv", "the percentiles of each of them"),
    ] {
        page.open("li", &[]);
        page.element("a", &[("href", name)], name);
        page.text(&format!(": {what}."));
        page.close();
    }
    page.close();
    if plots.is_empty() {
        return;
    }
    page.open("details", &[]);
    page.element("summary", &[], &format!("{} plots, each as PNG and as SVG", plots.len()));
    page.open("ul", &[]);
    for plot in plots {
        page.open("li", &[]);
        page.text(&format!("{}: ", plot.kind.title()));
        for kind in ["png", "svg"] {
            let name = format!("plots/{}.{kind}", plot.stem);
            page.element("a", &[("href", &name)], &name);
            page.text(" ");
        }
        page.close();
    }
    page.close();
    page.close();
}

fn file(page: &mut Markup, view: &View<'_>) {
    let attributes = [
        ("class", "scroll"),
        ("tabindex", "0"),
        ("role", "region"),
        ("aria-label", "The text of the contest’s file"),
    ];
    page.open("pre", &attributes);
    page.text(&view.record.file);
    page.close();
}
