//! Colours, dashes and marks of contenders.
//!
//! The colours are those of Okabe and Ito, which remain distinct for the colour-blind. Their yellow
//! is left out, because it is invisible on white paper. The three lists have 7, 5 and 8 entries, so
//! 280 contenders differ, and dashes and marks still do in a grey print.

use std::fmt::Write as _;

use super::drawing::{ColourRole, Point, Shape};

/// Red, green and blue.
pub type Colour = (u8, u8, u8);

/// Each with its colour on a dark page, which is lighter where the first would be too dark.
const CONTENDERS: [(Colour, Colour); 7] = [
    ((0x00, 0x72, 0xB2), (0x3D, 0xA5, 0xE0)),
    ((0xD5, 0x5E, 0x00), (0xF0, 0x7B, 0x28)),
    ((0x00, 0x9E, 0x73), (0x1F, 0xBF, 0x93)),
    ((0xCC, 0x79, 0xA7), (0xDB, 0x90, 0xBA)),
    ((0xE6, 0x9F, 0x00), (0xE6, 0x9F, 0x00)),
    ((0x56, 0xB4, 0xE9), (0x86, 0xCC, 0xF5)),
    ((0x00, 0x00, 0x00), (0xF2, 0xF2, 0xF2)),
];

const DASHES: [&[f64]; 5] = [&[], &[8.0, 4.0], &[2.0, 3.0], &[10.0, 3.0, 2.0, 3.0], &[14.0, 5.0]];

/// Text, secondary text, grid and background, each in light and dark.
const PLAIN: [(&str, Colour, Colour); 4] = [
    ("text", (0x1A, 0x1A, 0x1A), (0xEC, 0xEC, 0xEC)),
    ("faint", (0x55, 0x55, 0x55), (0xB4, 0xB4, 0xB4)),
    ("grid", (0xDD, 0xDD, 0xDD), (0x3A, 0x3F, 0x45)),
    ("paper", (0xFF, 0xFF, 0xFF), (0x16, 0x19, 0x1D)),
];

/// White.
pub const PAPER: Colour = PLAIN[3].1;

/// The colour of a role on white paper.
pub fn on_paper(ink: ColourRole) -> Colour {
    match ink {
        ColourRole::Contender(place) => CONTENDERS[place % CONTENDERS.len()].0,
        ColourRole::Text => PLAIN[0].1,
        ColourRole::Faint => PLAIN[1].1,
        ColourRole::Grid => PLAIN[2].1,
    }
}

/// The CSS class of a role.
pub fn class(ink: ColourRole) -> String {
    match ink {
        ColourRole::Contender(place) => format!("i{}", place % CONTENDERS.len()),
        ColourRole::Text => "it".to_owned(),
        ColourRole::Faint => "if".to_owned(),
        ColourRole::Grid => "ig".to_owned(),
    }
}

/// The colours as a style sheet: light, dark, and light again for print.
pub fn style_sheet() -> String {
    let light = variables(|pair| pair.0);
    let dark = variables(|pair| pair.1);
    let mut sheet = format!(
        ":root{{color-scheme:light dark;{light}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    );
    for place in 0..CONTENDERS.len() {
        let _ = writeln!(sheet, ".i{place}{{--ink:var(--i{place})}}");
    }
    sheet.push_str(
        ".it{--ink:var(--text)}\n.if{--ink:var(--faint)}\n.ig{--ink:var(--grid)}\n\
         .plot{background:var(--paper)}\n\
         .plot text{fill:var(--ink);font-family:\"DejaVu Sans\",Verdana,system-ui,sans-serif}\n\
         .l{fill:none;stroke:var(--ink);stroke-linejoin:round}\n\
         .a{fill:var(--ink);fill-opacity:.16}\n.f{fill:var(--ink)}\n\
         .h{fill:var(--paper);stroke:var(--ink);stroke-width:1.6}\n",
    );
    sheet
}

fn variables(shade: impl Fn((Colour, Colour)) -> Colour) -> String {
    let mut list = String::new();
    for (place, pair) in CONTENDERS.iter().enumerate() {
        let (red, green, blue) = shade(*pair);
        let _ = write!(list, "--i{place}:#{red:02x}{green:02x}{blue:02x};");
    }
    for (name, light, dark) in PLAIN {
        let (red, green, blue) = shade((light, dark));
        let _ = write!(list, "--{name}:#{red:02x}{green:02x}{blue:02x};");
    }
    list
}

/// The dashes of a contender's lines.
pub fn dashes(place: usize) -> &'static [f64] {
    DASHES[place % DASHES.len()]
}

/// The mark of a contender around `centre`.
pub fn mark(place: usize, centre: Point, hollow: bool) -> Shape {
    let polygon = |points| Shape::Polygon { points, hollow };
    match place % 8 {
        0 => Shape::Circle { centre, radius: 4.0, hollow },
        1 => polygon(star(centre, 4, 5.2, 1.0, 0.125)),
        2 => polygon(star(centre, 3, 5.4, 1.0, 0.0)),
        3 => polygon(star(centre, 4, 5.4, 1.0, 0.0)),
        4 => polygon(star(centre, 3, 5.4, 1.0, 0.5)),
        5 => polygon(star(centre, 5, 6.4, 0.45, 0.0)),
        6 => polygon(star(centre, 4, 6.4, 0.38, 0.0)),
        _ => polygon(star(centre, 6, 5.0, 1.0, 0.0)),
    }
}

/// The two strokes of the cross that marks a failure.
pub fn cross(centre: Point) -> [Shape; 2] {
    let (x, y) = centre;
    let arm = 6.0;
    let stroke = |points| Shape::Line { points, width: 2.2, dashes: &[] };
    [
        stroke(vec![(x - arm, y - arm), (x + arm, y + arm)]),
        stroke(vec![(x - arm, y + arm), (x + arm, y - arm)]),
    ]
}

/// A regular star. `waist` is the inner radius as a share of `radius`, 1 for a polygon. `turn` is
/// in whole turns from the top.
fn star(centre: Point, points: u32, radius: f64, waist: f64, turn: f64) -> Vec<Point> {
    let steps = if waist < 1.0 { points * 2 } else { points };
    (0..steps)
        .map(|step| {
            let inner = waist < 1.0 && step % 2 == 1;
            let reach = if inner { radius * waist } else { radius };
            let angle = (f64::from(step) / f64::from(steps) + turn) * std::f64::consts::TAU;
            (centre.0 + reach * angle.sin(), centre.1 - reach * angle.cos())
        })
        .collect()
}
