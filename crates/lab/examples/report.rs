//! Writes the report of a contest again:
//! `cargo run -p gustnado-lab --example report -- FILE FOLDER`
//! with the `contest.jsonl` of a contest. With a folder alone it writes that of a made-up one, to
//! look at the page itself.

use std::error::Error;
use std::path::Path;

use gustnado_lab as lab;

#[path = "../src/report/tests/specimen.rs"]
mod specimen;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (record, folder) = match arguments.as_slice() {
        [folder] => (specimen::record(), folder),
        [file, folder] => (lab::contest::store::read(Path::new(file))?, folder),
        _ => return Err("expected: [contest.jsonl] FOLDER".into()),
    };
    let written = lab::report::write(&record, Path::new(folder))?;
    println!("{} files, first {}", written.len(), written[0].display());
    Ok(())
}
