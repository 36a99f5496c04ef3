//! Renders a drawing as PNG (W3C PNG, 2nd edition): on white, at twice its size, text as outlines.

use std::io::Write as _;

use flate2::{Compression, Crc, write::ZlibEncoder};
use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash,
    Transform,
};
use ttf_parser::OutlineBuilder;

use super::drawing::{Anchor, ColourRole, Drawing, Point, Shape};
use super::{font, palette};

/// Pixels of the picture for one of the drawing.
const SCALE: f32 = 2.0;

/// Error of a picture.
#[derive(Debug)]
#[non_exhaustive]
pub enum PngError {
    /// It exceeds the maximum size.
    TooLarge {
        /// Width in pixels.
        width: f64,
        /// Height in pixels.
        height: f64,
    },
}

impl std::fmt::Display for PngError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PngError::TooLarge { width, height } => {
                write!(f, "a picture of {width} by {height} pixels is too large")
            }
        }
    }
}

impl std::error::Error for PngError {}

/// Renders `drawing` as a PNG file.
pub fn file(drawing: &Drawing) -> Result<Vec<u8>, PngError> {
    let (width, height) = (pixels(drawing.width), pixels(drawing.height));
    let mut picture = Pixmap::new(width, height)
        .ok_or(PngError::TooLarge { width: drawing.width, height: drawing.height })?;
    picture.fill(solid(palette::PAPER));
    for part in &drawing.parts {
        draw(&mut picture, &part.shape, part.ink);
    }
    Ok(encode(&picture))
}

/// Encodes an opaque picture: three bytes for each pixel, each row as the difference to the one
/// above, which compresses well.
fn encode(picture: &Pixmap) -> Vec<u8> {
    const UP: u8 = 2;
    /// The place of the byte, among the four of a pixel, that is left out.
    const ALPHA: usize = 3;
    let (width, height) = (picture.width(), picture.height());
    let row_bytes = usize::try_from(width * 4).expect("a row lies in memory");
    let mut pack = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut above = vec![0; row_bytes];
    let mut line = Vec::with_capacity(1 + row_bytes);
    for row in picture.data().chunks_exact(row_bytes) {
        line.clear();
        line.push(UP);
        // (A plain loop: the debug builds of the tests encode many pictures.)
        for at in 0..row_bytes {
            if at % 4 != ALPHA {
                line.push(row[at].wrapping_sub(above[at]));
            }
        }
        pack.write_all(&line).expect("memory takes everything");
        above.copy_from_slice(row);
    }
    let packed = pack.finish().expect("memory takes everything");
    let mut head = Vec::from(width.to_be_bytes());
    head.extend(height.to_be_bytes());
    // Eight bits for each of three colours; the only compression, filter method and interlacing.
    head.extend([8, 2, 0, 0, 0]);
    let mut file = Vec::from(*b"\x89PNG\r\n\x1a\n");
    chunk(&mut file, *b"IHDR", &head);
    chunk(&mut file, *b"IDAT", &packed);
    chunk(&mut file, *b"IEND", &[]);
    file
}

fn chunk(file: &mut Vec<u8>, name: [u8; 4], content: &[u8]) {
    let length = u32::try_from(content.len()).expect("a picture packs into less than 4 GiB");
    let mut sum = Crc::new();
    sum.update(&name);
    sum.update(content);
    file.extend(length.to_be_bytes());
    file.extend(name);
    file.extend(content);
    file.extend(sum.sum().to_be_bytes());
}

fn draw(picture: &mut Pixmap, shape: &Shape, ink: ColourRole) {
    let colour = solid(palette::on_paper(ink));
    match shape {
        Shape::Line { points, width, dashes } => {
            if let Some(path) = path_through(points, false) {
                stroke(picture, &path, colour, *width, dashes);
            }
        }
        Shape::Area(points) => {
            let mut faint = colour;
            faint.set_alpha(0.16);
            fill(picture, path_through(points, true), faint);
        }
        Shape::Polygon { points, hollow } => {
            shape_in(picture, path_through(points, true), colour, *hollow);
        }
        Shape::Circle { centre, radius, hollow } => {
            let circle = PathBuilder::from_circle(pixel(centre.0), pixel(centre.1), pixel(*radius));
            shape_in(picture, circle, colour, *hollow);
        }
        Shape::Text { at, text, size, anchor, bold } => {
            let width = font::width(text, *size);
            let from = match anchor {
                Anchor::Start => at.0,
                Anchor::Middle => at.0 - width / 2.0,
                Anchor::End => at.0 - width,
            };
            let letters = letters(text, *size, (from, at.1));
            if let (true, Some(path)) = (*bold, &letters) {
                // The font has no bold letters, so outlines are thickened.
                stroke(picture, path, colour, *size / 22.0, &[]);
            }
            fill(picture, letters, colour);
        }
    }
}

fn shape_in(picture: &mut Pixmap, path: Option<Path>, colour: Color, hollow: bool) {
    if !hollow {
        fill(picture, path, colour);
    } else if let Some(path) = path {
        fill(picture, Some(path.clone()), solid(palette::PAPER));
        stroke(picture, &path, colour, 1.6, &[]);
    }
}

fn fill(picture: &mut Pixmap, path: Option<Path>, colour: Color) {
    if let Some(path) = path {
        let scale = Transform::from_scale(SCALE, SCALE);
        picture.fill_path(&path, &paint(colour), FillRule::Winding, scale, None);
    }
}

fn stroke(picture: &mut Pixmap, path: &Path, colour: Color, width: f64, dashes: &[f64]) {
    let dash = StrokeDash::new(dashes.iter().map(|length| pixel(*length)).collect(), 0.0);
    let stroke = Stroke {
        width: pixel(width),
        line_cap: LineCap::Butt,
        line_join: LineJoin::Round,
        dash,
        ..Stroke::default()
    };
    let scale = Transform::from_scale(SCALE, SCALE);
    picture.stroke_path(path, &paint(colour), &stroke, scale, None);
}

fn paint(colour: Color) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color(colour);
    paint.anti_alias = true;
    paint
}

fn solid((red, green, blue): palette::Colour) -> Color {
    Color::from_rgba8(red, green, blue, 255)
}

/// `None` if there is nothing to draw.
fn path_through(points: &[Point], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (at, (x, y)) in points.iter().enumerate() {
        if at == 0 {
            path.move_to(pixel(*x), pixel(*y));
        } else {
            path.line_to(pixel(*x), pixel(*y));
        }
    }
    if closed {
        path.close();
    }
    path.finish()
}

fn letters(text: &str, size: f64, at: Point) -> Option<Path> {
    let mut whole = PathBuilder::new();
    font::outline(
        text,
        size,
        |x, scale| GlyphOutline { path: PathBuilder::new(), at: (at.0 + x, at.1), scale },
        |letter| {
            if let Some(path) = letter.path.finish() {
                whole.push_path(&path);
            }
        },
    );
    whole.finish()
}

/// Takes the outline of a letter, whose y axis points up.
struct GlyphOutline {
    path: PathBuilder,
    at: Point,
    scale: f64,
}

impl GlyphOutline {
    fn put(&self, x: f32, y: f32) -> (f32, f32) {
        let across = self.at.0 + f64::from(x) * self.scale;
        let down = self.at.1 - f64::from(y) * self.scale;
        (pixel(across), pixel(down))
    }
}

impl OutlineBuilder for GlyphOutline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.put(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.put(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, bend_x: f32, bend_y: f32, x: f32, y: f32) {
        let ((bend_x, bend_y), (x, y)) = (self.put(bend_x, bend_y), self.put(x, y));
        self.path.quad_to(bend_x, bend_y, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.put(x1, y1), self.put(x2, y2), self.put(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[expect(clippy::cast_possible_truncation, reason = "pixels are small numbers")]
fn pixel(value: f64) -> f32 {
    value as f32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and a picture too large is refused"
)]
fn pixels(value: f64) -> u32 {
    (value * f64::from(SCALE)).ceil() as u32
}
