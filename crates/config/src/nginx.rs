//! Import of nginx's configuration: the part that serves files, redirects and fixed texts.
//!
//! It fails closed. A location with a directive that is not understood becomes 403, and so do those
//! that run programs or forward requests. A regular expression that could match beneath a folder
//! leaves out at least what it matches (`forbidden`), and what is not served alike for all
//! listeners is not served.

mod caches;
mod directives;
mod fields;
mod imported;
mod limits;
mod location;
mod mounts;
mod pages;
mod pattern;
mod real_ip;
mod rewrites;
mod route_settings;
mod routes;
mod scope;
mod server;
mod settings;
mod syntax;
mod target;
mod together;
mod types;
mod value;
mod write;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config_file::{ConfigFile, ValueChecks, files_of, read_text};
use crate::file_settings::FilePlace;
use scope::NginxScope;
use server::NginxServer;
use syntax::Directive;

/// The most files that are read, and how deep they may include each other.
const FILES_MAX: usize = 1_000;
const DEPTH_MAX: usize = 8;
/// The most directives, so that files which include each other do not grow without bound.
const DIRECTIVES_MAX: usize = 100_000;

/// Returns the text of a file, or why it cannot be read.
type ReadFile<'a> = &'a dyn Fn(&Path) -> Result<String, String>;

/// The file that closes everything: what was made of the configuration could not be read.
const CLOSED: &str = "[[route]]\npath = \"/{*rest}\"\nanswer = \"403 Forbidden\"\nstatus = 403\n";

/// The result of an import.
#[derive(Debug, Clone)]
pub struct NginxImport {
    /// The configuration file.
    pub text: String,
    /// What could not be taken over, in the order of the files.
    pub left: Vec<LeftOut>,
}

/// A directive that could not be taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The line of the directive.
    pub place: FilePlace,
    /// The directive with its arguments.
    pub directive: String,
    /// Why not, and what happens in its place.
    pub why: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.directive, self.why)
    }
}

/// What is left out, as it is found.
#[derive(Default)]
struct LeftOuts {
    all: Vec<LeftOut>,
    /// Folders that are served, each with what says so.
    folders: Vec<(Directive, PathBuf)>,
}

impl LeftOuts {
    fn add(&mut self, directive: &Directive, why: &str) {
        let (place, why) = (directive.place.clone(), why.to_owned());
        self.all.push(LeftOut { place, directive: directive.shown(), why });
    }

    /// Returns all of it in the order of the files, with the folders that are not there: another
    /// machine may have them.
    fn settled(mut self, is_folder: &dyn Fn(&Path) -> bool) -> Vec<LeftOut> {
        for (of, folder) in std::mem::take(&mut self.folders) {
            if !is_folder(&folder) {
                let shown = folder.display();
                let why = format!("there is no folder {shown} here; without it no server starts");
                self.add(&of, &why);
            }
        }
        self.all.sort_by_key(|one| (Arc::clone(&one.place.file), one.place.line));
        self.all.dedup();
        self.all
    }
}

/// Imports a configuration of nginx from the disk, with the files that it includes.
///
/// # Errors
/// It cannot be read, or is not in nginx's syntax: the place, and why.
pub fn import_file(path: &Path) -> Result<NginxImport, String> {
    let read = |path: &Path| read_text(path, usize::MAX);
    let text = read(path).map_err(|why| format!("{}: {why}", path.display()))?;
    imported(path, &text, &read, &Path::is_dir)
}

/// Imports a configuration of nginx.
///
/// - `path`: its path, which included files and relative paths begin at.
/// - `read`: returns the text of another file, or why it cannot be read.
///
/// # Errors
/// It is not in nginx's syntax: the place, and why.
pub fn import(path: &Path, text: &str, read: ReadFile<'_>) -> Result<NginxImport, String> {
    imported(path, text, read, &|_| true)
}

/// - `is_folder`: returns whether a folder is there, which a server needs to start.
fn imported(
    path: &Path,
    text: &str,
    read: ReadFile<'_>,
    is_folder: &dyn Fn(&Path) -> bool,
) -> Result<NginxImport, String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut files =
        IncludedFiles { folder, read, files: 0, directives: 0, left: LeftOuts::default() };
    let main = files.parse(path, text, 0)?;
    let mut left = files.left;
    // A file of `conf.d` has servers at its top.
    let is_whole = main.iter().any(|one| one.name == "http");
    let http: Vec<Directive> = if is_whole {
        main.iter().filter(|one| one.name == "http").flat_map(block_of).collect()
    } else {
        main.clone()
    };
    let mut settings = settings::GlobalSettings::default();
    let mut scope = NginxScope::default();
    for one in main.iter().filter(|one| is_whole && one.name != "http") {
        settings.take_main(one, &mut left);
    }
    for one in http.iter().filter(|one| one.name != "server") {
        if !settings.take(one, &mut left) {
            scope.apply(one, &mut left);
        }
    }
    if let Some(proxies) = scope.settings.settle_real_ip(&mut left) {
        settings.trust(proxies);
    }
    if let Some(first) = http.first() {
        scope.check_types(first, |_| true, &mut left);
        scope.finish(first, &http, &mut left);
    }
    let mut servers: Vec<NginxServer> = Vec::new();
    for one in http.iter().filter(|one| one.name == "server") {
        servers.push(NginxServer::read(one, &scope, &mut settings, &mut left));
    }
    if servers.is_empty() {
        return Err(format!(
            "{}: expected a server, found none; name another file",
            path.display()
        ));
    }
    let chosen = together::chosen(servers, &mut settings, &mut left);
    let text = chosen.map_or_else(
        || CLOSED.to_owned(),
        |servers| write::text(path, &servers, &settings, (read, &mut left)),
    );
    let text = match http.first() {
        Some(first) => checked(text, first, &mut left),
        None => text,
    };
    Ok(NginxImport { text, left: left.settled(is_folder) })
}

/// Returns a file, or the one that closes everything if it cannot be read.
fn checked(text: String, of: &Directive, left: &mut LeftOuts) -> String {
    let Some(problem) = problem_of(&text) else { return text };
    left.add(of, &format!("what was made of all is not well, so all is 403: {problem}"));
    CLOSED.to_owned()
}

/// Returns why a file cannot be read, but for files and folders that it names.
fn problem_of(text: &str) -> Option<String> {
    let checked = ConfigFile::parse(Path::new("imported.toml"), text, ValueChecks::NONE);
    let is_of_file = |text: &str| text.starts_with("error-page.file");
    let error = checked.err()?;
    let mut problems = error.problems().iter().filter(|problem| !is_of_file(&problem.text));
    problems.next().map(|problem| problem.text.clone())
}

fn block_of(directive: &Directive) -> Vec<Directive> {
    directive.block.clone().unwrap_or_default()
}

/// Reads files with those that they include.
struct IncludedFiles<'a> {
    /// The folder of the main file, which all includes are relative to.
    folder: &'a Path,
    read: ReadFile<'a>,
    files: usize,
    directives: usize,
    left: LeftOuts,
}

impl IncludedFiles<'_> {
    fn parse(&mut self, path: &Path, text: &str, depth: usize) -> Result<Vec<Directive>, String> {
        let file: Arc<Path> = path.into();
        let all = syntax::parse(&file, text)
            .map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))?;
        self.expand(all, depth)
    }

    /// Puts the directives of included files in the place of `include`.
    fn expand(&mut self, all: Vec<Directive>, depth: usize) -> Result<Vec<Directive>, String> {
        let mut expanded = Vec::new();
        for mut one in all {
            self.directives += 1;
            if self.directives > DIRECTIVES_MAX {
                return Err(format!(
                    "{}: expected at most {DIRECTIVES_MAX} directives with those of included \
                     files, found more",
                    one.place
                ));
            }
            if let Some(block) = one.block.take() {
                one.block = Some(self.expand(block, depth)?);
            }
            match &one.args[..] {
                [file] if one.name == "auth_basic_user_file" => {
                    let path = self.folder.join(file);
                    one.problem = match (self.read)(&path) {
                        _ if file.contains('$') => Some("a path with variables".to_owned()),
                        Ok(text) => route_settings::problem_of_users(&text),
                        Err(why) => Some(why),
                    };
                    one.args = vec![path.to_string_lossy().into_owned()];
                    expanded.push(one);
                }
                [pattern] if one.name == "include" && one.block.is_none() => {
                    let pattern = pattern.clone();
                    self.include(one, &pattern, depth, &mut expanded)?;
                }
                _ => expanded.push(one),
            }
        }
        Ok(expanded)
    }

    fn include(
        &mut self,
        one: Directive,
        pattern: &str,
        depth: usize,
        expanded: &mut Vec<Directive>,
    ) -> Result<(), String> {
        // What cannot be read stays, and closes what it stands in.
        let Some(all) = self.included(pattern) else {
            expanded.push(one);
            return Ok(());
        };
        for path in all {
            self.files += 1;
            if depth == DEPTH_MAX || self.files > FILES_MAX {
                return Err(format!(
                    "{}: expected at most {FILES_MAX} files, {DEPTH_MAX} deep, found more",
                    one.place
                ));
            }
            match (self.read)(&path) {
                Ok(text) => expanded.extend(self.parse(&path, &text, depth + 1)?),
                Err(_) => expanded.push(one.clone()),
            }
        }
        Ok(())
    }

    /// Returns the files of a pattern. There may be none, but each one that is there is known.
    fn included(&self, pattern: &str) -> Option<Vec<PathBuf>> {
        let is_pattern = pattern.contains(['*', '?']);
        // A class, or a letter that is none of a pattern.
        if pattern.contains(['[', '\\', '$']) {
            return None;
        }
        let mut pattern = pattern.to_owned();
        while pattern.contains("**") {
            // As glob(3) reads it.
            pattern = pattern.replace("**", "*");
        }
        let found = files_of(self.folder, &pattern).ok()?;
        (is_pattern || !found.is_empty()).then_some(found)
    }
}

#[cfg(test)]
mod tests;
