//! The page of a report: a self-contained `index.html`.

use super::figures::{Plot, ReportSection};
use super::view::View;
use super::{bars, overview, tables, verdict};
use crate::contest::RECORD;
use crate::markup::Markup;
use crate::plot;
use crate::plot::chart::Chart;

/// Content security policy: the page fetches and sends nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// What the bars show.
const PICTURE: &str = "Its CPU time, user and system, by successful response: unlike a rate it \
                       does not depend on the generator. Less is better. A whisker spans the \
                       rounds; a bar with an open end is longer than there is room for.";

/// Renders the page: the verdict, the picture and one table; everything else is folded.
pub(super) fn write(view: &View<'_>, plots: &[Plot]) -> String {
    let mut page = Markup::default();
    page.trusted("<!doctype html>\n");
    page.open("html", &[("lang", "en")]);
    head(&mut page, view);
    page.open("body", &[]);
    banner(&mut page, view);
    page.open("main", &[]);
    findings(&mut page, view);
    section(&mut page, "figures", "All figures", |page| figures(page, view));
    pictures(&mut page, plots);
    section(&mut page, "contenders", "Contenders", |page| tables::contenders(page, view));
    section(&mut page, "environment", "Environment", |page| tables::environment(page, view));
    section(&mut page, "method", "Method", |page| method(page, view));
    section(&mut page, "data", "Raw data", data);
    section(&mut page, "file", "The contest’s file", |page| file(page, view));
    page.close();
    page.open("footer", &[]);
    page.element("p", &[], &format!("Made by {}.", view.record.tool));
    page.close();
    scripts(&mut page, view, plots);
    page.close();
    page.close();
    page.finish()
}

/// Writes the data of the plots and the scripts that draw them.
fn scripts(page: &mut Markup, view: &View<'_>, plots: &[Plot]) {
    let names: Vec<&str> = view.contenders().map(|(_, one)| one.name.as_str()).collect();
    let charts: Vec<&Chart> = plots.iter().map(|plot| &plot.chart).collect();
    let data = serde_json::json!({ "names": names, "charts": charts }).to_string();
    // Nothing in a script is escaped, so that no name may end it or look like markup.
    let data = data.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    page.open("script", &[("id", "plot-data"), ("type", "application/json")]);
    page.trusted(&data);
    page.close();
    page.open("script", &[]);
    page.trusted(plot::SCRIPT);
    page.trusted(include_str!("behaviour.js"));
    page.close();
}

fn head(page: &mut Markup, view: &View<'_>) {
    page.open("head", &[]);
    page.empty("meta", &[("charset", "utf-8")]);
    page.empty("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
    let viewport = "width=device-width, initial-scale=1";
    page.empty("meta", &[("name", "viewport"), ("content", viewport)]);
    page.element("title", &[], &format!("{} – contest of servers", view.record.title));
    page.open("style", &[]);
    page.trusted(include_str!("style.css"));
    page.close();
    page.close();
}

fn banner(page: &mut Markup, view: &View<'_>) {
    page.open("header", &[]);
    page.element("h1", &[], &view.record.title);
    page.element("p", &[("class", "faint")], &format!("{}.", overview::conditions(view)));
    page.close();
}

/// Writes a folded section.
fn section(page: &mut Markup, id: &str, title: &str, content: impl FnOnce(&mut Markup)) {
    page.open("details", &[("id", id)]);
    page.open("summary", &[]);
    page.element("h2", &[], title);
    page.close();
    content(page);
    page.close();
}

fn findings(page: &mut Markup, view: &View<'_>) {
    page.open("section", &[("aria-label", "Verdict")]);
    if let Some(why) = &view.record.cut {
        let text = format!("This contest ended early: {why}. What follows is what was measured.");
        page.element("p", &[("class", "alarm")], &text);
    }
    for line in verdict::lines(view) {
        page.element("p", &[("class", "verdict")], &line);
    }
    page.element("h2", &[], "Server CPU for each request");
    page.element("p", &[("class", "faint")], PICTURE);
    bars::write(page, view);
    page.element("h2", &[], "At a glance");
    overview::write(page, &overview::of(view));
    page.close();
}

fn figures(page: &mut Markup, view: &View<'_>) {
    tables::items(page, &verdict::troubles(view));
    let reference = view.reference;
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
}

/// Writes the plots, a folded section for each kind of them.
fn pictures(page: &mut Markup, plots: &[Plot]) {
    section(page, "plots", "Plots", |page| {
        page.element(
            "noscript",
            &[],
            "Drawing the plots takes JavaScript. Their figures are in the tables, and each second \
             and percentile in the raw data.",
        );
        if plots.is_empty() {
            page.element("p", &[], "Nothing was measured that could be drawn.");
        }
        page.element("div", &[("id", "choice"), ("hidden", "")], "");
        for (at, part) in ReportSection::ALL.into_iter().enumerate() {
            let of_part: Vec<(usize, &Plot)> =
                plots.iter().enumerate().filter(|(_, plot)| plot.part == part).collect();
            if of_part.is_empty() {
                continue;
            }
            let open = [("open", "")];
            page.open("details", if at == 0 { &open } else { &[] });
            page.open("summary", &[]);
            page.element("h3", &[], part.heading());
            page.close();
            page.element("p", &[], part.explanation());
            page.open("div", &[("class", "plots")]);
            for (place, plot) in of_part {
                picture(page, place, plot);
            }
            page.close();
            page.close();
        }
    });
}

/// Writes the place of one plot, which the script fills as wide as it is.
fn picture(page: &mut Markup, place: usize, plot: &Plot) {
    let (stem, chart) = (plot.stem.as_str(), &plot.chart);
    let caption = format!("{stem}-c");
    page.open("figure", &[("id", stem), ("data-plot", &place.to_string())]);
    page.open("figcaption", &[("id", &caption)]);
    page.element("b", &[], &chart.title);
    page.text(" ");
    page.element("small", &[], &chart.subtitle);
    page.close();
    let drawn = [("class", "drawn"), ("role", "group"), ("tabindex", "0")];
    let labelled = [("aria-labelledby", caption.as_str()), ("aria-description", &chart.summary)];
    page.element("div", &[drawn.as_slice(), &labelled].concat(), "");
    page.element("p", &[("class", "legend")], "");
    page.element("p", &[("class", "faint")], &chart.summary);
    if let Some(undrawn) = &chart.undrawn {
        page.element("p", &[("class", "faint")], undrawn);
    }
    page.close();
}

fn method(page: &mut Markup, view: &View<'_>) {
    for paragraph in view.record.about.split("\n\n").filter(|text| !text.trim().is_empty()) {
        page.element("p", &[], paragraph.trim());
    }
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

fn data(page: &mut Markup) {
    page.open("ul", &[]);
    for (name, what) in [
        (RECORD, "everything that was measured, and what this page was made from"),
        ("rounds.tsv", "a line for each contender, scenario and round"),
        ("percentiles.tsv", "the percentiles of each of them"),
    ] {
        page.open("li", &[]);
        page.element("a", &[("href", name)], name);
        page.text(&format!(": {what}."));
        page.close();
    }
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
