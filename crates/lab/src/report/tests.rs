use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use roxmltree::Document;

use super::*;
use crate as lab;
use crate::plot::drawing::Drawing;
use crate::record::Fate;

mod specimen;

/// Every plot of a record in both sizes.
fn drawings(record: &Record) -> Vec<Drawing> {
    let view = View::of(record);
    let plots = figures::all(&view);
    plots
        .iter()
        .flat_map(|plot| [Size::Wide, Size::Narrow].map(|size| plot.kind.draw(size)))
        .collect()
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
        let (from, to) = (xml.find(begin).expect("there is one"), xml.find(end).expect("it ends"));
        xml.replace_range(from + begin.len()..to, "");
    }
    look(&Document::parse(&xml).expect("the page is well formed"))
}

fn text_of(document: &Document<'_>) -> String {
    let texts = document.descendants().filter(roxmltree::Node::is_text);
    texts.filter_map(|node| node.text()).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_plot_is_well_formed_and_all_its_numbers_are_finite() {
    let drawings = drawings(&specimen::record());
    assert!(drawings.len() >= 2 * (1 + 3 + 5 + 5 + 20), "{}", drawings.len());
    for drawing in drawings {
        let svg = svg::file(&drawing);
        let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
        for node in document.descendants() {
            for attribute in node.attributes() {
                let numeric = ["points", "x", "y", "cx", "cy", "r", "width", "height"];
                if !numeric.contains(&attribute.name()) {
                    continue;
                }
                for number in attribute.value().split([' ', ',']) {
                    let value: f64 = number.parse().expect("a number");
                    assert!(value.is_finite(), "{}: {number}", drawing.title);
                    assert!((-1.0..10_000.0).contains(&value), "{}: {number}", drawing.title);
                }
            }
        }
    }
}

#[test]
fn nothing_is_drawn_outside_of_its_drawing() {
    for drawing in drawings(&specimen::record()) {
        for part in &drawing.parts {
            let points = match &part.shape {
                lab::plot::drawing::Shape::Line { points, .. }
                | lab::plot::drawing::Shape::Polygon { points, .. }
                | lab::plot::drawing::Shape::Area(points) => points.clone(),
                lab::plot::drawing::Shape::Circle { centre, .. } => vec![*centre],
                lab::plot::drawing::Shape::Text { at, text, size, anchor, .. } => {
                    let width = lab::plot::font::width(text, *size);
                    match anchor {
                        lab::plot::drawing::Anchor::Start => vec![*at, (at.0 + width, at.1)],
                        lab::plot::drawing::Anchor::Middle => {
                            vec![(at.0 - width / 2.0, at.1), (at.0 + width / 2.0, at.1)]
                        }
                        lab::plot::drawing::Anchor::End => vec![(at.0 - width, at.1), *at],
                    }
                }
            };
            for (x, y) in points {
                assert!((0.0..=drawing.width).contains(&x), "{}: {part:?}", drawing.title);
                assert!((0.0..=drawing.height).contains(&y), "{}: {part:?}", drawing.title);
            }
        }
    }
}

#[test]
fn a_line_says_its_model_and_pipelining_on_every_plot() {
    for drawing in drawings(&specimen::record()) {
        let svg = svg::file(&drawing);
        let document = Document::parse(&svg).expect("well formed");
        let text = text_of(&document);
        assert!(text.to_lowercase().contains("model:"), "{}", drawing.title);
        assert!(text.contains("pipelining"), "{}: {text}", drawing.title);
    }
    let mut record = specimen::record();
    for run in &mut record.runs {
        run.outcome.iter_mut().for_each(|outcome| outcome.model.pipeline = 16);
    }
    assert!(page_of(&record).contains("PIPELINED: 16 requests at once"));
}

#[test]
fn failures_and_absences_are_said_on_every_plot_they_concern() {
    let record = specimen::record();
    for drawing in drawings(&record) {
        let text = text_of(&Document::parse(&svg::file(&drawing)).expect("well formed"));
        assert!(text.contains("Not installed here: Caddy."), "{}", drawing.title);
        assert!(text.contains("lighttpd did not do the same work"), "{}", drawing.title);
        if drawing.title.contains("10000 connections") {
            assert!(text.contains("405 of"), "{}: {text}", drawing.title);
            assert!(text.contains("not comparable: 405 failures"), "{}: {text}", drawing.title);
            // It did other work than the others, so it is no line next to theirs.
            let is_python = |part: &lab::plot::drawing::DrawingPart| part.owner == Some(2);
            assert!(!drawing.parts.iter().any(is_python), "{}", drawing.title);
        }
    }
}

/// Returns whether a cross is on a drawing: two strokes of a contender in the colour of text.
fn has_cross(drawing: &Drawing) -> bool {
    let crosses = drawing.parts.iter().filter(|part| {
        let is_text = part.ink == lab::plot::drawing::ColourRole::Text && part.owner.is_some();
        is_text && part.tip.is_some()
    });
    crosses.count() >= 2
}

#[test]
fn a_record_without_failures_has_no_cross() {
    let mut record = specimen::record();
    record.contenders.truncate(2);
    record.runs.retain(|run| ["gustnado", "nginx"].contains(&run.contender.as_str()));
    assert!(drawings(&record).iter().all(|drawing| !has_cross(drawing)));
    assert!(!page_of(&record).contains("requests failed"));
}

#[test]
fn every_contender_is_in_every_table_with_what_became_of_it() {
    let record = specimen::record();
    parsed(&page_of(&record), |page| {
        let tables = page.descendants().filter(|node| node.has_tag_name("table"));
        let mut figures = 0;
        for table in tables.filter(|table| text_of_node(*table).contains("server CPU per request"))
        {
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
    for drawing in drawings(&record) {
        Document::parse(&svg::file(&drawing)).expect("well formed");
    }
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
    let measured = record.runs.iter().filter(|run| run.outcome.is_some()).count();
    assert_eq!(percentiles.lines().count(), 1 + 11 * measured);
}

#[test]
fn a_single_round_shows_no_spread_and_no_interval() {
    let mut record = specimen::record();
    record.runs.retain(|run| run.round == 1);
    let page = page_of(&record);
    assert!(page.contains("no spread and no interval can be given"));
    assert!(page.contains("(too few rounds)"));
    parsed(&page, |page| {
        for small in page.descendants().filter(|node| node.has_tag_name("small")) {
            assert!(!text_of_node(small).contains('–'), "{}", text_of_node(small));
        }
    });
    for drawing in drawings(&record) {
        let is_area = |shape: &_| matches!(shape, lab::plot::drawing::Shape::Area(_));
        assert!(!drawing.parts.iter().any(|part| is_area(&part.shape)), "{}", drawing.title);
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
    let said = verdict::winners(&View::of(&record));
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
        for (place, drawing) in drawings(&record).iter().enumerate() {
            Document::parse(&svg::file(drawing)).expect("well formed");
            if place < 2 {
                png::file(drawing).expect("a picture");
            }
        }
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
        let beside = !link.starts_with('#') && link != "contest.json";
        assert!(!beside || folder.path().join(link).is_file(), "{link}");
    }
    let error = write(&record, &written[0]).expect_err("a file is no folder");
    assert!(error.to_string().contains("cannot write"), "{error}");
}

#[test]
fn a_picture_decodes_and_is_not_blank() {
    let drawing = &drawings(&specimen::record())[0];
    let file = png::file(drawing).expect("a picture");
    assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
    let (mut rest, mut packed, mut size) = (&file[8..], Vec::new(), (0, 0));
    while !rest.is_empty() {
        let length = usize::try_from(number(rest)).expect("small");
        let (name, content) = (&rest[4..8], &rest[8..8 + length]);
        let mut sum = flate2::Crc::new();
        sum.update(&rest[4..8 + length]);
        assert_eq!(sum.sum(), number(&rest[8 + length..]));
        match name {
            b"IHDR" => size = (number(content), number(&content[4..])),
            b"IDAT" => packed.extend(content),
            _ => assert_eq!(name, b"IEND"),
        }
        rest = &rest[12 + length..];
    }
    assert!((f64::from(size.0) - drawing.width * 2.0).abs() < 1.0);
    let mut lines = Vec::new();
    ZlibDecoder::new(packed.as_slice()).read_to_end(&mut lines).expect("it unpacks");
    let row = 1 + 3 * usize::try_from(size.0).expect("small");
    assert_eq!(lines.len(), row * usize::try_from(size.1).expect("small"));
    let inked = lines.chunks(row).filter(|line| line[1..].iter().any(|byte| *byte != 0)).count();
    assert!(inked > 100, "{inked} rows differ from the one above");
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"))
}
