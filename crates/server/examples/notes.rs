//! Notes over JSON: values of a program's own types in bodies, in queries and in paths.
//!
//! Run it with `cargo run --release --features json --example notes -- 127.0.0.1:3456`, and ask
//! `curl --json '{"text":"Buy milk"}' http://127.0.0.1:3456/notes` and
//! `curl 'http://127.0.0.1:3456/notes?contains=milk'`.

use std::sync::{Arc, Mutex, PoisonError};

use gustnado::{
    JsonError, ParamError, QueryError, Request, Response, Routes, Server, Status, route,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Note {
    text: String,
}

/// What the query of a list may say.
#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    contains: String,
}

type Notes = Arc<Mutex<Vec<Note>>>;

fn main() -> gustnado::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl --json '{{\"text\":\"Buy milk\"}}' http://{address}/notes");
    Server::new().routes(routes()).listen(&address)?.run()
}

/// `/notes` lists and adds, `/notes/{number}` shows one.
pub(crate) fn routes() -> Routes {
    let notes = Notes::default();
    let (all, one) = (Arc::clone(&notes), Arc::clone(&notes));
    let list = route()
        .get(move |request: &Request| list(request, &all))
        .post(move |request: &Request| add(request, &notes));
    Routes::new()
        .route("/notes", list)
        .get("/notes/{number}", move |request: &Request| show(request, &one))
}

fn list(request: &Request, notes: &Notes) -> Result<Response, QueryError> {
    let wanted: Wanted = request.query_as()?;
    let notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    let found: Vec<&Note> =
        notes.iter().filter(|note| note.text.contains(&wanted.contains)).collect();
    Ok(Response::json(&found))
}

fn add(request: &Request, notes: &Notes) -> Result<Response, JsonError> {
    let note: Note = request.json()?;
    let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    notes.push(note);
    let location = format!("/notes/{}", notes.len() - 1);
    Ok(Response::new(Status::CREATED).header("Location", location))
}

fn show(request: &Request, notes: &Notes) -> Result<Option<Response>, ParamError> {
    let number: usize = request.param_as("number")?;
    let notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(notes.get(number).map(Response::json))
}
