//! What directives say of a server or a location: they are inherited from the outside in.

use std::path::PathBuf;

use gustnado_http::status::Status;

use super::LeftOuts;
use super::directives::{HARMLESS, PARAMETERS, WITHOUT};
use super::fields::{CACHE_CONTROL, NginxField};
use super::rewrites::NginxRewrite;
use super::route_settings::{NginxRouteSettings, SettingsConclusion};
use super::syntax::Directive;
use super::target::is_page;
use super::types::NginxTypes;
use super::value::{Taken, seconds};

/// What a server or a location says, with what it inherits.
#[derive(Clone, Debug, Default)]
pub(super) struct NginxScope {
    pub(super) root: Option<PathBuf>,
    pub(super) alias: Option<PathBuf>,
    pub(super) listing: Option<bool>,
    /// Names of the file of a folder, which may be none; `None` is the usual one.
    pub(super) index: Option<Vec<String>>,
    /// Where files are looked for; none is as usual.
    pub(super) try_files: Vec<String>,
    /// Fields of responses. A location with some of its own inherits none, as in nginx.
    pub(super) headers: Vec<NginxField>,
    pub(super) has_own_headers: bool,
    /// The value of `Cache-Control` by `expires`.
    pub(super) expires: Option<String>,
    pub(super) default_type: Option<String>,
    /// What `types` says of files that a browser runs.
    pub(super) types: NginxTypes,
    /// Pages for errors, by their paths beneath the root.
    pub(super) pages: Vec<(u16, String)>,
    pub(super) answer: Option<NginxAnswer>,
    /// What is redirected before anything is served.
    pub(super) rewrites: Vec<NginxRewrite>,
    /// What routes have of their own: who may come, compression, rates.
    pub(super) settings: NginxRouteSettings,
    /// Nothing of it may be served: a directive was not understood, or says so.
    pub(super) is_closed: bool,
    pub(super) closed_for: ClosedFor,
    /// It runs programs, whose sources lie about.
    pub(super) runs_programs: bool,
}

/// What a closed scope is closed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ClosedFor {
    #[default]
    All,
    /// By `internal`: pages for errors may be there.
    Requests,
}

/// A response by `return`.
#[derive(Clone, Debug)]
pub(super) enum NginxAnswer {
    /// A text.
    Text { status: u16, text: String },
    /// A redirect to a target with variables, for all paths.
    Redirect { status: u16, to: String },
}

impl NginxScope {
    /// Returns the scope of a location in this one.
    pub(super) fn inner(&self) -> Self {
        let (settings, types) = (self.settings.inner(), self.types.inner());
        let (answer, rewrites, alias) = (None, Vec::new(), None);
        Self { has_own_headers: false, answer, rewrites, alias, settings, types, ..self.clone() }
    }

    /// Returns whether it has responses that are no files.
    pub(super) fn responds(&self) -> bool {
        self.answer.is_some() || !self.rewrites.is_empty()
    }

    /// Returns whether both serve files from the same place.
    pub(super) fn is_folder_as(&self, other: &Self) -> bool {
        let is_open = |scope: &Self| !scope.is_closed && !scope.responds() && scope.alias.is_none();
        let is_alike = self.root == other.root && self.settings.admits_as(&other.settings);
        is_open(self) && is_open(other) && self.root.is_some() && is_alike
    }

    /// Returns whether it serves the files that another one finds at their own paths.
    pub(super) fn finds_files_of(&self, other: &Self) -> bool {
        let is_first = self.try_files.first().is_none_or(|first| first == "$uri");
        is_first || self.try_files == other.try_files
    }

    /// Returns whether it lists the folders that another one lists.
    pub(super) fn lists_folders_of(&self, other: &Self) -> bool {
        let has_folders = |one: &Self| {
            one.listing == Some(true)
                && (one.try_files.is_empty() || one.try_files.iter().any(|file| file == "$uri/"))
        };
        has_folders(self) || !has_folders(other)
    }

    /// Returns whether both serve them alike: with the same fields, and lists of folders.
    pub(super) fn is_dressed_as(&self, other: &Self) -> bool {
        self.headers == other.headers
            && self.expires == other.expires
            && self.listing == other.listing
            && self.index == other.index
            && self.try_files == other.try_files
            && self.settings.lines() == other.settings.lines()
    }

    /// Returns the value of `Cache-Control`: that of `expires`, then that of `add_header`.
    pub(super) fn cache_control(&self) -> Option<String> {
        let own = self.headers.iter().find(|field| field.is(CACHE_CONTROL));
        let own = own.map(|field| field.value.as_str());
        match (self.expires.as_deref(), own) {
            (Some(expires), Some(own)) => Some(format!("{expires}, {own}")),
            (one, other) => one.or(other).map(str::to_owned),
        }
    }

    /// Returns the type of a text, if it is given.
    pub(super) fn text_type(&self) -> Option<String> {
        let kind = self.default_type.as_ref().filter(|kind| kind.contains('/'))?;
        let charset = self.settings.charset().filter(|charset| !charset.is_empty());
        Some(match charset {
            Some(charset) if kind.starts_with("text/") && !kind.contains(';') => {
                format!("{kind}; charset={charset}")
            }
            _ => kind.clone(),
        })
    }

    /// Returns where the files of a folder are looked for, by their paths in it, and the page of an
    /// application: a fixed path that comes last.
    pub(super) fn try_files_beneath(&self, mount: &str) -> (Vec<String>, String) {
        let (mut all, mut spa) = (self.try_files.clone(), String::new());
        if let Some(last) = all.pop_if(|last| last.starts_with('/')) {
            let below = last.strip_prefix(mount).and_then(|below| below.strip_prefix('/'));
            let below = below.filter(|_| self.alias.is_none());
            below.unwrap_or_default().clone_into(&mut spa);
        }
        // A page that is the index of its folder is that of the root, too, for all clients.
        let is_of_page = all == ["$uri"] && !spa.is_empty() && self.listing != Some(true);
        if is_of_page || all == ["$uri", "$uri/"] {
            all.clear();
        }
        (all, spa)
    }

    /// Closes the scope if files would be run here that nginx shows as texts or lets be saved.
    ///
    /// - `of`: what has the directives.
    /// - `is_for`: whether it may be for files with an ending.
    pub(super) fn check_types(
        &mut self,
        of: &Directive,
        is_for: impl Fn(&str) -> bool,
        left: &mut LeftOuts,
    ) {
        if !self.is_closed && self.types.runs_more(self.default_type.as_deref(), is_for) {
            let of = self.types.own().unwrap_or(of).clone();
            self.close(&of, "files have the types of the server, pages among them", left);
        }
    }

    /// Takes a directive over, or notes that it was left out; then nothing may be served, unless
    /// the directive makes no difference to that.
    pub(super) fn apply(&mut self, one: &Directive, left: &mut LeftOuts) {
        let (name, args) = (&*one.name, one.args());
        match (name, &args[..]) {
            _ if HARMLESS.contains(&name) || self.take_setting(one, left) => {}
            ("root", [path]) => match path_of(path) {
                Some(path) => self.root = Some(path),
                None => self.close(one, "expected a whole path without variables", left),
            },
            ("alias", [path]) => match path_of(path) {
                Some(path) => self.alias = Some(path),
                None => self.close(one, "expected a whole path without variables", left),
            },
            ("autoindex", ["on"]) => self.listing = Some(true),
            ("autoindex", ["off"]) => self.listing = Some(false),
            ("add_header", [name, value] | [name, value, "always"]) => {
                self.add_header(one, (name, value), left);
            }
            ("expires", [time]) => self.expire(one, time, left),
            ("default_type", [kind]) => self.default_type = Some((*kind).to_owned()),
            ("error_page", [codes @ .., page]) if self.add_pages(codes, page) => {}
            ("index", names) => self.set_index(one, names, left),
            ("try_files", [files @ .., last]) => self.try_files(one, (files, last), left),
            ("satisfy", ["all"]) | ("access_log", ["off"]) => {}
            ("internal", []) => self.closed_for = ClosedFor::Requests,
            ("types", _) => {
                self.types.take(one);
                left.add(one, "it has no counterpart: left out");
            }
            ("return", args) => self.set_return(one, args, left),
            ("rewrite", args) => self.set_rewrite(one, args, left),
            ("include", [path]) => {
                if !is_known_include(path) {
                    self.close(one, "the file cannot be read", left);
                } else if path.ends_with("mime.types") {
                    self.types.take(one);
                }
            }
            ("access_log", _) => left.add(one, "--access-log names one file for all: left out"),
            ("limit_conn", _) => {
                left.add(one, "--connections-per-client limits all of the server's: left out");
            }
            _ if WITHOUT.contains(&name) => left.add(one, "it has no counterpart: left out"),
            _ if name.ends_with("_pass") => self.close_pass(one, left),
            _ if PARAMETERS.iter().any(|prefix| name.starts_with(prefix)) => {}
            _ => self.close(one, "it is not understood", left),
        }
    }

    /// Takes a directive that is a setting of routes; returns whether it is one.
    fn take_setting(&mut self, one: &Directive, left: &mut LeftOuts) -> bool {
        match self.settings.take(one) {
            Taken::Not => return false,
            Taken::Yes => {}
            Taken::Noted(why) => left.add(one, why),
            Taken::Closed(why) => self.close(one, &why, left),
        }
        true
    }

    /// Closes the scope if its directives together say what cannot be taken over. Is called when
    /// all of them were read.
    ///
    /// - `of`: what has the directives.
    /// - `all`: the directives.
    pub(super) fn finish(&mut self, of: &Directive, all: &[Directive], left: &mut LeftOuts) {
        match self.settings.conclusion() {
            SettingsConclusion::Open => {}
            SettingsConclusion::Unclear(why) if !self.is_closed => self.close(of, why, left),
            SettingsConclusion::Closed | SettingsConclusion::Unclear(_) => self.is_closed = true,
        }
        if self.is_closed {
            self.closed_for = ClosedFor::All;
        }
        self.is_closed |= self.closed_for == ClosedFor::Requests;
        let is_other = |one: &&Directive| {
            one.name == "default_type" && one.args != ["application/octet-stream"]
        };
        // It is the type of a text.
        let is_of_files = !self.is_closed && self.answer.is_none();
        for one in all.iter().filter(|one| is_of_files && is_other(one)) {
            left.add(one, "files without a known ending are application/octet-stream: left out");
        }
    }

    /// Closes the scope by a directive.
    pub(super) fn close(&mut self, one: &Directive, why: &str, left: &mut LeftOuts) {
        self.is_closed = true;
        left.add(one, &format!("{why}; what it stands in responds with 403"));
    }

    fn close_pass(&mut self, one: &Directive, left: &mut LeftOuts) {
        if one.name == "proxy_pass" || one.name == "grpc_pass" {
            self.close(one, "requests are not forwarded", left);
        } else {
            self.runs_programs = true;
            self.close(one, "programs are not run, and their sources are not served", left);
        }
    }

    fn add_header(&mut self, one: &Directive, (name, value): (&str, &str), left: &mut LeftOuts) {
        let is_always = one.args.len() == 3;
        let Some(field) = NginxField::of(name, value, is_always) else {
            return self.close(one, "a field with variables, or one that the server sets", left);
        };
        if !self.has_own_headers {
            self.headers.clear();
            self.has_own_headers = true;
        }
        if self.headers.iter().any(|known| known.is(name)) {
            left.add(one, "a field is sent once: the first one counts");
        } else {
            self.headers.push(field);
        }
    }

    fn expire(&mut self, one: &Directive, time: &str, left: &mut LeftOuts) {
        self.expires = match time {
            "off" => None,
            "epoch" => Some("no-cache".to_owned()),
            "max" => Some("max-age=315360000".to_owned()),
            _ if time.starts_with('-') => Some("no-cache".to_owned()),
            _ => {
                let age = seconds(time).map(|seconds| format!("max-age={seconds}"));
                if age.is_none() {
                    left.add(one, "expected a time without variables: left out");
                }
                age
            }
        };
    }

    /// Returns whether pages are files for statuses.
    fn add_pages(&mut self, codes: &[&str], page: &str) -> bool {
        let codes: Option<Vec<u16>> = codes.iter().map(|code| code.parse().ok()).collect();
        // Never the source of a program.
        let is_plain = page.strip_prefix('/').is_some_and(is_page);
        match codes {
            Some(codes) if is_plain && codes.iter().all(|code| is_error(*code)) => {
                for code in codes {
                    self.pages.retain(|(known, _)| *known != code);
                    self.pages.push((code, page.to_owned()));
                }
                true
            }
            _ => false,
        }
    }

    /// Takes the names of files over; programs are none.
    fn set_index(&mut self, one: &Directive, names: &[&str], left: &mut LeftOuts) {
        let (pages, others): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| is_page(name) && !name.contains('/'));
        if !others.is_empty() {
            left.add(one, &format!("no index of a folder: {}", others.join(" ")));
        }
        self.index = Some(pages.into_iter().map(str::to_owned).collect());
    }

    /// Files are looked for as nginx does; a fallback that is a program has no counterpart.
    fn try_files(&mut self, one: &Directive, (files, last): (&[&str], &str), left: &mut LeftOuts) {
        let is_known =
            |file: &&str| ["$uri", "$uri/", "$uri.html", "$uri/index.html"].contains(file);
        let has_uri = files.contains(&"$uri");
        // The index of a folder is looked for by its own path, as is a fallback.
        if files.is_empty() || !files.iter().all(is_known) || files.contains(&"$uri/") && !has_uri {
            self.close(one, "it looks for other files than those of the path", left);
            return;
        }
        let mut all = files.to_vec();
        match last {
            "=404" => {}
            "$uri.html" if has_uri => all.push(last),
            _ if last.starts_with('/') && is_page(&last[1..]) && has_uri => {
                let why = "taken over as spa: pages get it; a script or an image that is not there \
                           is 404 (try-files gives it to all)";
                left.add(one, why);
                all.push(last);
            }
            _ => left.add(one, "files are served; where there is none the response is 404"),
        }
        if all == ["$uri", "$uri/"] {
            all.clear(); // as usual
        }
        self.try_files = all.into_iter().map(str::to_owned).collect();
    }

    fn set_return(&mut self, one: &Directive, args: &[&str], left: &mut LeftOuts) {
        if self.answer.is_some() {
            return; // The first one counts.
        }
        let is_url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
        let code = args.first().and_then(|code| code.parse::<u16>().ok());
        self.answer = match (code, args) {
            (None, [url]) if is_url(url) || url.starts_with("$scheme") => {
                Some(NginxAnswer::Redirect { status: 302, to: (*url).to_owned() })
            }
            (Some(status @ (301 | 302 | 303 | 307 | 308)), [_, to]) => {
                Some(NginxAnswer::Redirect { status, to: (*to).to_owned() })
            }
            // It closes the connection without a response.
            (Some(444), [_]) => Some(NginxAnswer::Text { status: 403, text: String::new() }),
            (Some(status @ (200..=299 | 400..=599)), [_, text @ ..])
                if text.len() < 2 && !text.concat().contains('$') =>
            {
                let status = known_status(one, status, left);
                Some(NginxAnswer::Text { status, text: text.concat() })
            }
            _ => None,
        };
        if self.answer.is_none() {
            self.close(one, "it is not understood", left);
        }
    }

    fn set_rewrite(&mut self, one: &Directive, args: &[&str], left: &mut LeftOuts) {
        let status = match args.get(2) {
            Some(&"permanent") => 301,
            Some(&"redirect") => 302,
            _ => return self.close(one, "only redirects to other URLs are understood", left),
        };
        // What comes behind a `return` is never reached.
        if self.answer.is_none() {
            let (expression, to) = (args[0].to_owned(), args[1].to_owned());
            self.rewrites.push(NginxRewrite { status, expression, to });
        }
    }
}

/// Returns a status that the server has: that of a response, or one of its class.
fn known_status(one: &Directive, status: u16, left: &mut LeftOuts) -> u16 {
    if Status::from_code(status).is_some() {
        return status;
    }
    let known = if status < 300 { 200 } else { 403 };
    left.add(one, &format!("there is no status {status} here: {known}"));
    known
}

fn is_error(code: u16) -> bool {
    Status::from_code(code).is_some_and(Status::is_error)
}

/// Returns a whole path without variables or parts that lead upwards.
fn path_of(text: &str) -> Option<PathBuf> {
    let is_whole = text.starts_with('/') && !text.contains(['$', '\0', '\n']);
    let is_straight = !text.split('/').any(|part| part == "..");
    (is_whole && is_straight).then(|| PathBuf::from(text))
}

/// Returns whether an included file that cannot be read is known to change nothing.
fn is_known_include(path: &str) -> bool {
    const KNOWN: [&str; 9] = [
        "mime.types",
        "fastcgi_params",
        "fastcgi.conf",
        "proxy_params",
        "uwsgi_params",
        "scgi_params",
        "options-ssl-nginx.conf",
        "fastcgi-php.conf",
        "koi-utf",
    ];
    path.rsplit('/').next().is_some_and(|name| KNOWN.contains(&name))
}
