//! A page to upload files with: they go to a folder as they come, and the page lists them.
//!
//! Run it with `cargo run --release --example upload -- 127.0.0.1:3456 ./uploads` (without a folder
//! it takes a temporary one), open `http://127.0.0.1:3456/`, or ask
//! `curl -F file=@README.md http://127.0.0.1:3456/`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use gustnado::forms::{FormError, FormLimits};
use gustnado::{Request, Response, Routes, Server, Status, blocking, route};

/// Largest upload, all files of it together.
const UPLOAD_BYTES_MAX: u64 = 100 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    let folder = match arguments.next() {
        Some(folder) => PathBuf::from(folder),
        None => std::env::temp_dir().join("gustnado-uploads"),
    };
    fs::create_dir_all(&folder)?;
    println!("uploads go to {}", folder.display());
    Ok(Server::new().routes(routes(&folder)).listen(&address)?.run()?)
}

/// The page at `/`, and the files at `/files/`.
pub(crate) fn routes(folder: &Path) -> Routes {
    let (shown, kept) = (folder.to_path_buf(), folder.to_path_buf());
    let take = move |request: Request| take(request, kept.clone());
    let upload = route()
        .get(blocking(move |_: Request| page(&shown).map(Response::html).map_err(failed)))
        .post(take)
        .limit_body_bytes(UPLOAD_BYTES_MAX);
    // What somebody has uploaded is not to run as a page of ours.
    let inert = gustnado::Middleware::after(|_: &Request, response: &mut Response| {
        response.try_header("Content-Security-Policy", "sandbox").expect("a good field");
    });
    let inert = inert.only_if(|request| request.raw_path().starts_with("/files/"));
    Routes::new().route("/", upload).files("/files", folder).middleware(inert)
}

/// Keeps the files of a form, and sends the browser back to the page.
async fn take(mut request: Request, folder: PathBuf) -> Result<Response, FormError> {
    // Beside the files that are kept, so that keeping one is only a new name for it.
    let limits = FormLimits { folder: Some(folder.clone()), ..FormLimits::default() };
    let form = request.read_form_data(&limits).await?;
    for file in form.into_files() {
        if let Some(name) = file.safe_file_name() {
            file.save(folder.join(name)).await?;
        }
    }
    Ok(Response::redirect(Status::SEE_OTHER, "/"))
}

/// The form, and what is in the folder.
fn page(folder: &Path) -> io::Result<String> {
    let mut list = String::new();
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, bytes) = (entry.file_name(), entry.metadata()?.len());
        let Some(name) = name.to_str().filter(|name| !name.starts_with("upload-")) else {
            continue; // still on its way
        };
        let (name, link) = (escaped(name), encoded(name));
        writeln!(list, "<li><a href=\"/files/{link}\">{name}</a> {bytes} bytes")
            .expect("a string takes everything");
    }
    Ok(format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Uploads</title>\n\
         <form method=post enctype=multipart/form-data>\n\
         <input type=file name=file multiple required> <button>Upload</button>\n\
         </form>\n<ul>\n{list}</ul>\n"
    ))
}

fn failed(_: io::Error) -> Status {
    Status::INTERNAL_SERVER_ERROR
}

/// Text in a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// A name in a link.
fn encoded(name: &str) -> String {
    let mut link = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            link.push(char::from(byte));
        } else {
            write!(link, "%{byte:02X}").expect("a string takes everything");
        }
    }
    link
}
