//! The script that draws plots, run by Node where that is installed.

use std::io::Write as _;
use std::process::{Command, Stdio};

use roxmltree::Document;

use crate::plot::SCRIPT;
use crate::plot::chart::{Axis, Chart, Scale, Series, Spot};
use crate::plot::units::ValueUnit;

use super::specimen;

/// Draws every chart in every width, and describes each of its places.
const HARNESS: &str = r"
const { names, charts } = JSON.parse(process.argv[2]);
const all = charts.flatMap((chart) => [320, 599, 1200].map((width) => {
  const drawn = plot.draw(chart, names, width);
  const tips = drawn.stops.map(({ value }) => plot.describe(chart, names, value));
  const places = drawn.stops.map(({ across }) => across);
  return { width, svg: drawn.svg, legend: drawn.legend, tips, places };
}));
console.log(JSON.stringify(all));
";

#[derive(serde::Deserialize)]
struct Drawn {
    width: f64,
    svg: String,
    legend: String,
    tips: Vec<String>,
    places: Vec<f64>,
}

/// Draws charts of contenders with these names; `None`, and a line that says so, without Node.
fn drawn(names: &[&str], charts: &[Chart]) -> Option<Vec<Drawn>> {
    let data = serde_json::json!({ "names": names, "charts": charts }).to_string();
    let mut node = Command::new("node");
    node.args(["-", &data]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = node.spawn() else {
        println!("skipped: there is no node");
        return None;
    };
    let mut input = child.stdin.take().expect("piped");
    input.write_all([SCRIPT, HARNESS].concat().as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("our child");
    assert!(output.status.success(), "the script failed");
    Some(serde_json::from_slice(&output.stdout).expect("what the harness prints"))
}

/// Checks that a drawing is well formed, and that nothing in it is outside or no number.
fn check(drawn: &Drawn) {
    let Drawn { width, svg, .. } = drawn;
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let height = document.root_element().attribute("height").expect("it has one");
    let height: f64 = height.parse().expect("a number");
    assert!((200.0..1_000.0).contains(&height), "{height}");
    for node in document.descendants() {
        for (name, most) in [("x", *width), ("cx", *width), ("y", height), ("cy", height)] {
            let Some(value) = node.attribute(name) else { continue };
            let value: f64 = value.parse().expect("a number");
            assert!((0.0..=most).contains(&value), "{name}={value} of {most}: {svg}");
        }
        assert!(!node.attribute("d").is_some_and(|path| path.contains(['N', 'I'])), "{svg}");
    }
    assert!(drawn.places.iter().all(|place| (0.0..=*width).contains(place)), "{:?}", drawn.places);
    let texts = [&drawn.legend].into_iter().chain(&drawn.tips);
    for text in texts.filter(|text| !text.is_empty()) {
        Document::parse(&format!("<p>{text}</p>"))
            .unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(!text.contains("NaN") && !text.contains("undefined"), "{text}");
    }
}

/// A chart of so many lines with a few points each.
fn chart(lines: usize, scale: Scale, unit: ValueUnit) -> Chart {
    let line = |owner: usize| Series {
        owner,
        name: format!("server {owner}"),
        spots: (1..=4)
            .map(|at| {
                let y = f64::from(at) * crate::plot::units::index(owner + 1) * 10.0;
                let x = 10f64.powi(at);
                Spot { x, y: Some(y), spread: Some((y * 0.9, y * 1.1)) }
            })
            .collect(),
    };
    Chart {
        title: "Title".to_owned(),
        subtitle: String::new(),
        summary: String::new(),
        undrawn: None,
        x: Axis::new("connections", ValueUnit::Number, Scale::Log),
        y: Axis::new("value", unit, scale),
        step: false,
        lines: (0..lines).map(line).collect(),
    }
}

#[test]
fn every_plot_of_a_report_is_drawn_within_its_bounds() {
    let record = specimen::record();
    let names: Vec<&str> = record.contenders.iter().map(|one| one.name.as_str()).collect();
    let charts = super::charts(&record);
    assert!(charts.len() >= 4 + 5 + 5 + 20, "{}", charts.len());
    let Some(all) = drawn(&names, &charts) else { return };
    assert_eq!(all.len(), charts.len() * 3);
    for (place, one) in all.iter().enumerate() {
        check(one);
        let chart = &charts[place / 3];
        assert_eq!(one.svg.matches("<path class=\"l\"").count(), chart.lines.len(), "{}", one.svg);
        assert!(one.legend.is_empty() == (one.width >= 600.0));
    }
}

#[test]
fn one_two_and_sixteen_contenders_and_none_are_drawn() {
    let names: Vec<String> = (0..16).map(|place| format!("server {place}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut charts = Vec::new();
    for lines in [0, 1, 2, 16] {
        for scale in [Scale::Zero, Scale::Fit, Scale::Log, Scale::Share] {
            for unit in [ValueUnit::Bytes, ValueUnit::Microseconds, ValueUnit::PerSecond] {
                charts.push(chart(lines, scale, unit));
            }
        }
    }
    let Some(all) = drawn(&names, &charts) else { return };
    for (place, one) in all.iter().enumerate() {
        check(one);
        let chart = &charts[place / 3];
        assert_eq!(one.svg.matches("<circle").count(), chart.lines.len() * 4);
        assert_eq!(one.tips.len(), if chart.lines.is_empty() { 0 } else { 4 });
        for name in chart.lines.iter().map(|line| &line.name) {
            let places = [&one.svg, &one.legend];
            assert!(places.iter().any(|text| text.contains(&format!("{name}<"))), "{name}");
        }
    }
}

#[test]
fn odd_values_are_drawn_as_what_they_are() {
    let mut charts = Vec::new();
    for y in [Some(0.0), Some(f64::NAN), Some(1e-9), Some(1e15), None] {
        let mut one = chart(1, Scale::Fit, ValueUnit::Microseconds);
        one.lines[0].spots = vec![Spot { x: 1.0, y, spread: None }];
        charts.push(one);
    }
    let mut named = chart(1, Scale::Zero, ValueUnit::Microseconds);
    named.x =
        Axis { names: vec!["50".to_owned()], ..Axis::new("%", ValueUnit::Number, Scale::Named) };
    named.lines[0].spots = vec![Spot { x: 0.0, y: Some(5.0), spread: None }];
    charts.push(named);
    let Some(all) = drawn(&["<b>&\"'"], &charts) else { return };
    all.iter().for_each(check);
    // What is no number is left out, as what was not measured.
    for (place, marks) in [(0, 1), (1, 0), (2, 1), (3, 1), (4, 0), (5, 1)] {
        assert_eq!(all[place * 3].svg.matches("<circle").count(), marks, "{place}");
    }
    assert!(all[0].legend.contains("&#60;b&#62;"), "{}", all[0].legend);
}

#[test]
fn ticks_are_round_and_values_have_three_digits() {
    let mut chart = chart(1, Scale::Zero, ValueUnit::Microseconds);
    chart.lines[0].spots = vec![
        Spot { x: 100.0, y: Some(1_234.5), spread: Some((900.0, 2_000.0)) },
        Spot { x: 10_000.0, y: Some(9.0), spread: None },
    ];
    let Some(all) = drawn(&["a"], &[chart]) else { return };
    let svg = &all[2].svg;
    for label in [">0<", ">500 µs<", ">1 ms<", ">1.5 ms<", ">2 ms<", ">100<", ">10,000<"] {
        assert!(svg.contains(label), "{label} in {svg}");
    }
    assert!(all[2].tips[0].contains("1.23 ms (900 µs – 2.00 ms)"), "{}", all[2].tips[0]);
}
