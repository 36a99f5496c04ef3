use std::collections::BTreeSet;
use std::fs;

use roxmltree::Document;

use super::*;
use crate as lab;
use crate::outcome::Outcome;
use crate::plot::chart::Chart;
use crate::record::Fate;

mod drawing;
mod publishing;
mod specimen;

/// Every plot of a record.
fn charts(record: &Record) -> Vec<Chart> {
    figures::all(&View::of(record)).into_iter().map(|plot| plot.chart).collect()
}

fn page_of(record: &Record) -> String {
    let view = View::of(record);
    page::write(&view, &figures::all(&view))
}

/// The page parsed: it is written so that it is XML as well, but for its first line and for the
/// style sheet and script, whose text HTML does not escape.
fn parsed<R>(page: &str, look: impl FnOnce(&Document<'_>) -> R) -> R {
    let mut xml = page.trim_start_matches("<!doctype html>\n").to_owned();
    for (begin, end) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let from = xml.find(begin).expect("there is one");
        let to = from + xml[from..].find(end).expect("it ends");
        xml.replace_range(from + begin.len()..to, "");
    }
    look(&Document::parse(&xml).expect("the page is well formed"))
}

fn text_of(document: &Document<'_>) -> String {
    let texts = document.descendants().filter(roxmltree::Node::is_text);
    texts.filter_map(|node| node.text()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_verdict_and_the_picture_come_first_and_the_rest_is_folded() {
    parsed(&page_of(&specimen::record()), |page| {
        let main = page.descendants().find(|node| node.has_tag_name("main")).expect("one");
        let first = main.first_element_child().expect("it has content");
        let verdicts = first.children().filter(|node| node.attribute("class") == Some("verdict"));
        assert!((1..=3).contains(&verdicts.count()));
        let tables = first.descendants().filter(|node| node.has_tag_name("table"));
        let classes: Vec<_> = tables.map(|node| node.attribute("class")).collect();
        let (last, pictures) = classes.split_last().expect("there are tables");
        assert!(!pictures.is_empty() && pictures.iter().all(|class| *class == Some("bars")));
        assert_eq!(*last, None, "the one table");
        let others = main.children().filter(roxmltree::Node::is_element).skip(1);
        for other in others {
            assert!(other.has_tag_name("details"), "{:?}", other.tag_name());
            assert_eq!(other.attribute("open"), None);
        }
    });
}

#[test]
fn a_bar_is_as_long_as_its_figure_and_what_is_not_compared_has_none() {
    parsed(&page_of(&specimen::record()), |page| {
        let has_title = |node: &roxmltree::Node<'_, '_>| {
            text_of_node(*node).starts_with("1 KiB page, 10000 connections")
        };
        let mut tables = page.descendants().filter(|node| node.attribute("class") == Some("bars"));
        let table = tables.find(has_title).expect("the sweep's last point");
        let rows = table.descendants().filter(|node| node.has_tag_name("tr"));
        let widths: Vec<(String, Option<f64>)> = rows
            .map(|row| {
                let name = row.descendants().find(|node| node.has_tag_name("th")).expect("a name");
                let bar = row.descendants().find(|node| node.attribute("class") == Some("bar"));
                let style = bar.and_then(|bar| bar.attribute("style"));
                let width = style.map(|style| style[6..style.len() - 1].parse().expect("%"));
                (text_of_node(name), width)
            })
            .collect();
        let names: Vec<&str> = widths.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["gustnado", "nginx", "Python http.server", "Caddy", "lighttpd"]);
        let (ours, nginx) = (widths[0].1.expect("a bar"), widths[1].1.expect("a bar"));
        assert!((nginx / ours - 17.5 / 11.0).abs() < 0.1, "{ours} {nginx}");
        assert!(widths[2..].iter().all(|(_, width)| width.is_none()), "{widths:?}");
        assert!(text_of_node(table).contains("405 failures"));
    });
}

#[test]
fn a_line_says_its_model_and_pipelining_on_every_plot() {
    for chart in charts(&specimen::record()) {
        assert!(chart.subtitle.to_lowercase().contains("model:"), "{}", chart.title);
        assert!(chart.subtitle.contains("pipelining"), "{}", chart.title);
    }
    let mut record = specimen::record();
    for run in &mut record.runs {
        run.outcome.iter_mut().for_each(|outcome| outcome.model.pipeline = 16);
    }
    assert!(page_of(&record).contains("PIPELINED: 16 requests at once"));
}

#[test]
fn what_cannot_be_compared_is_on_no_plot_and_is_named_below_it() {
    let record = specimen::record();
    for chart in charts(&record) {
        let said = chart.undrawn.as_deref().expect("some cannot");
        assert!(said.contains("Caddy (not installed)"), "{}: {said}", chart.title);
        assert!(said.contains("lighttpd (not the same work)"), "{}: {said}", chart.title);
        let drawn: Vec<usize> = chart.lines.iter().map(|line| line.owner).collect();
        assert!(!drawn.contains(&3) && !drawn.contains(&4), "{}", chart.title);
        if chart.title.contains("10000 connections") {
            assert!(said.contains("Python http.server (405 failures)"), "{said}");
            assert!(!drawn.contains(&2), "{}", chart.title);
        }
        if chart.title.contains("over connections") {
            let python = chart.lines.iter().find(|line| line.owner == 2).expect("three points");
            let known: Vec<bool> = python.spots.iter().map(|spot| spot.y.is_some()).collect();
            assert_eq!(known, [true, true, true, false], "{}", chart.title);
        }
    }
}

#[test]
fn a_record_without_failures_compares_all() {
    let mut record = specimen::record();
    record.contenders.truncate(2);
    record.runs.retain(|run| ["gustnado", "nginx"].contains(&run.contender.as_str()));
    record.scenarios.truncate(4);
    record.runs.retain(|run| run.scenario != "hold");
    assert!(charts(&record).iter().all(|chart| chart.undrawn.is_none()));
    let page = page_of(&record);
    assert!(!page.contains("requests failed") && !page.contains("Not compared"));
}

#[test]
fn one_two_and_sixteen_contenders_are_all_drawn() {
    for count in [1, 2, 16] {
        let mut record = specimen::record();
        let of_one = |run: &&lab::record::RunRecord| run.contender == "gustnado";
        let runs: Vec<_> = record.runs.iter().filter(of_one).cloned().collect();
        let one = record.contenders[0].clone();
        (record.contenders, record.runs) = (Vec::new(), Vec::new());
        for place in 0..count {
            let name = format!("server {place}");
            record
                .contenders
                .push(lab::record::ContenderRecord { name: name.clone(), ..one.clone() });
            let named = runs
                .iter()
                .cloned()
                .map(|run| lab::record::RunRecord { contender: name.clone(), ..run });
            record.runs.extend(named);
        }
        record.reference = "server 0".to_owned();
        for chart in charts(&record) {
            assert_eq!(chart.lines.len(), count, "{}", chart.title);
        }
        parsed(&page_of(&record), |page| {
            let of_class = |class| {
                page.descendants().filter(|node| node.attribute("class") == Some(class)).count()
            };
            assert_eq!(of_class("bar"), 2 * count, "the sweep's last point, and the idle ones");
            assert_eq!(of_class("bars"), 2);
        });
    }
}

#[test]
fn ratios_refer_to_a_contender_without_failures() {
    let mut record = specimen::record();
    record.reference = "Python http.server".to_owned();
    assert_eq!(lab::statistics::reference::choose(&record), "gustnado");
    let page = page_of(&record);
    assert!(page.contains("ratio to gustnado, because Python http.server cannot be compared"));
    record.reference = "nginx".to_owned();
    assert_eq!(lab::statistics::reference::choose(&record), "nginx", "as the file says");
    record.runs.clear();
    assert_eq!(lab::statistics::reference::choose(&record), "nginx", "nothing else is better");
}

#[test]
fn every_contender_is_in_every_table_with_what_became_of_it() {
    let record = specimen::record();
    parsed(&page_of(&record), |page| {
        let tables = page.descendants().filter(|node| node.has_tag_name("table"));
        let mut figures = 0;
        for table in tables.filter(|table| text_of_node(*table).contains("in all rounds")) {
            figures += 1;
            let text = text_of_node(table);
            for contender in &record.contenders {
                assert!(text.contains(&contender.name), "{}: {text}", contender.name);
            }
            assert!(text.contains("not installed: no program"), "{text}");
        }
        assert_eq!(figures, record.scenarios.len());
        let text = text_of(page);
        for words in ["interrupted (Ctrl-C) in round 3", "390ba31", "net.core.somaxconn", "caddy"] {
            assert!(text.contains(words), "{words}");
        }
    });
}

fn text_of_node(node: roxmltree::Node<'_, '_>) -> String {
    let texts = node.descendants().filter(roxmltree::Node::is_text);
    texts.filter_map(|node| node.text()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_can_be_used_without_eyes_mouse_or_network() {
    parsed(&page_of(&specimen::record()), |page| {
        let mut ids = BTreeSet::new();
        let mut level = 0;
        for node in page.descendants() {
            if let Some(id) = node.attribute("id") {
                assert!(ids.insert(id.to_owned()), "two of {id}");
            }
            for fetched in ["src", "srcset", "data", "xlink:href"] {
                assert_eq!(node.attribute(fetched), None);
            }
            let name = node.tag_name().name();
            assert_ne!(name, "link", "a page that needs nothing links to no style sheet");
            if let Some(href) = node.attribute("href") {
                assert!(!href.contains("//"), "{href}");
            }
            if let Some(found) = name.strip_prefix('h').and_then(|level| level.parse::<u32>().ok())
            {
                assert!(found <= level + 1, "a heading is left out before h{found}");
                level = found;
            }
            if name == "table" {
                let caption = node.first_element_child().expect("a table has content");
                assert!(caption.has_tag_name("caption"));
            }
            if name == "th" {
                assert!(node.attribute("scope").is_some());
            }
            if node.attribute("class") == Some("scroll") {
                assert_eq!(node.attribute("tabindex"), Some("0"));
            }
        }
        for node in page.descendants() {
            let labels = node.attribute("aria-labelledby").unwrap_or_default();
            for label in labels.split_whitespace() {
                assert!(ids.contains(label), "{label}");
            }
            if let Some(target) = node.attribute("href").and_then(|href| href.strip_prefix('#')) {
                assert!(ids.contains(target), "{target}");
            }
        }
        assert_eq!(level, 2);
    });
}

#[test]
fn hostile_names_stay_text() {
    let mut record = specimen::record();
    let name = "<script>alert(1)</script>\u{0}\"' onload='\t&amp;";
    for run in &mut record.runs {
        run.contender.insert_str(0, name);
        run.scenario = name.to_owned();
        run.failure = Some(name.to_owned());
    }
    for contender in &mut record.contenders {
        contender.name.insert_str(0, name);
        contender.command = vec![name.to_owned()];
        contender.fate = Fate::Failed(name.to_owned());
    }
    for scenario in &mut record.scenarios {
        (scenario.name, scenario.title) = (name.to_owned(), name.to_owned());
        (scenario.sentence, scenario.sweep) = (name.to_owned(), Some(name.to_owned()));
    }
    (record.title, record.file, record.reference) = (name.into(), name.into(), name.into());
    let page = page_of(&record);
    assert_eq!(page.matches("<script>").count(), 1, "our own alone");
    parsed(&page, |page| {
        assert!(text_of(page).contains("<script>alert(1)</script>"));
        assert!(page.descendants().all(|node| node.attribute("onload").is_none()));
    });
    let view = View::of(&record);
    let stems: Vec<String> = figures::all(&view).into_iter().map(|plot| plot.stem).collect();
    let plain = |stem: &String| stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    assert!(stems.iter().all(plain), "{stems:?}");
    assert_eq!(stems.iter().collect::<BTreeSet<_>>().len(), stems.len());
    assert_columns_agree(&tsv::rounds(&view));
    assert_columns_agree(&tsv::percentiles(&view));
}

fn assert_columns_agree(table: &str) {
    let mut lines = table.lines().map(|line| line.split('\t').count());
    let heading = lines.next().expect("a heading");
    assert!(lines.all(|line| line == heading), "{table}");
}

#[test]
fn every_run_is_a_line_of_the_table() {
    let record = specimen::record();
    let view = View::of(&record);
    let rounds = tsv::rounds(&view);
    assert_eq!(rounds.lines().count(), 1 + record.runs.len());
    assert!(rounds.lines().skip(1).any(|line| line.contains("Python http.server")));
    let percentiles = tsv::percentiles(&view);
    let outcomes = record.runs.iter().filter_map(|run| run.outcome.as_ref());
    // Of eleven percentiles 99.9 and 99.99 need 10,000 and 100,000 responses.
    let told = |outcome: &Outcome| match outcome.latency_us.count {
        1_000..10_000 => 9,
        10_000..100_000 => 10,
        100_000.. => 11,
        few => panic!("{few} responses are fewer than any run of the specimen has"),
    };
    assert_eq!(percentiles.lines().count(), 1 + outcomes.map(told).sum::<usize>());
}

#[test]
fn a_single_round_shows_no_spread_and_no_interval() {
    let mut record = specimen::record();
    record.runs.retain(|run| run.round == 1);
    let page = page_of(&record);
    assert!(page.contains("no spread and no interval can be given"));
    assert!(page.contains("(too few rounds)"));
    parsed(&page, |page| {
        let is_cell = |node: &roxmltree::Node<'_, '_>| {
            node.has_tag_name("small") && node.parent().is_some_and(|of| of.has_tag_name("td"))
        };
        for small in page.descendants().filter(is_cell) {
            assert!(!text_of_node(small).contains('–'), "{}", text_of_node(small));
        }
    });
    let spots = |chart: &Chart| chart.lines.iter().flat_map(|line| line.spots.clone()).collect();
    for chart in charts(&record) {
        let spots: Vec<_> = spots(&chart);
        assert!(spots.iter().all(|spot| spot.spread.is_none()), "{}", chart.title);
    }
}

#[test]
fn the_verdict_names_noise_as_noise() {
    let mut record = specimen::record();
    record.cut = None;
    let cpu: Vec<f64> = record
        .runs
        .iter()
        .filter(|run| run.contender == "gustnado")
        .map(|run| run.usage.cpu_user_s + run.usage.cpu_system_s)
        .collect();
    // Give nginx the figures of gustnado, a little more in one round and less in another.
    let ours: Vec<_> =
        record.runs.iter().filter(|run| run.contender == "gustnado").cloned().collect();
    let nginx = record.runs.iter_mut().filter(|run| run.contender == "nginx");
    for ((run, same), cpu_s) in nginx.zip(ours).zip(cpu) {
        run.outcome = same.outcome;
        let factor = if run.round == 1 { 1.05 } else { 0.97 };
        (run.usage.cpu_user_s, run.usage.cpu_system_s) = (cpu_s * factor, 0.0);
    }
    let said = verdict::winners(&View::of(&record)).join(" ");
    assert!(said.contains("within the noise"), "{said}");
}

#[test]
fn empty_and_nearly_empty_records_have_a_page() {
    let mut without_runs = specimen::record();
    without_runs.runs.clear();
    let mut without_outcomes = specimen::record();
    without_outcomes.runs.iter_mut().for_each(|run| run.outcome = None);
    let mut odd = specimen::record();
    for run in &mut odd.runs {
        run.usage.samples.clear();
        if let Some(outcome) = &mut run.outcome {
            outcome.histogram = "not a histogram".to_owned();
            outcome.latency_us = lab::outcome::Latency::default();
            outcome.requests = 0;
            outcome.requests_per_s = f64::NAN;
            outcome.series.truncate(1);
        }
    }
    for record in [specimen::empty(), without_runs, without_outcomes, odd] {
        parsed(&page_of(&record), |page| assert!(text_of(page).contains("Environment")));
        let section = markdown::section(&record);
        assert!(section.starts_with("## "), "{section}");
    }
}

#[test]
fn files_are_written_where_the_page_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut record = specimen::record();
    record.scenarios.truncate(1);
    let written = write(&record, folder.path()).expect("a report");
    assert_eq!(written[0], folder.path().join("index.html"));
    let page = fs::read_to_string(&written[0]).expect("a page");
    for link in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let beside = !link.starts_with('#') && link != lab::contest::RECORD;
        assert!(!beside || folder.path().join(link).is_file(), "{link}");
    }
    let error = write(&record, &written[0]).expect_err("a file is no folder");
    assert!(error.to_string().contains("cannot write"), "{error}");
}
