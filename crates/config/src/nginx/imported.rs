//! Routes that locations become.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::fields::RouteFields;
use super::value::SettingValue;

/// Routes by their paths.
pub(super) type ImportedRoutes = BTreeMap<String, ImportedRoute>;

/// What a route does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ImportedAction {
    Folder(PathBuf),
    Redirect { to: String, status: u16 },
    Text { text: String, status: u16, kind: Option<String> },
}

/// A route.
#[derive(Clone, Debug)]
pub(super) struct ImportedRoute {
    pub(super) action: ImportedAction,
    pub(super) fields: RouteFields,
    pub(super) listing: Option<bool>,
    pub(super) index: Option<Vec<String>>,
    pub(super) try_files: Vec<String>,
    /// The page of an application; empty is none.
    pub(super) spa: String,
    /// Other settings with their values.
    pub(super) settings: Vec<(&'static str, SettingValue)>,
    /// Values of `Cache-Control` by patterns of paths.
    pub(super) cache: Vec<(String, String)>,
    /// Names and paths that are not served from its folder.
    pub(super) forbidden: Vec<String>,
}

impl ImportedRoute {
    pub(super) fn is_folder(&self) -> bool {
        matches!(self.action, ImportedAction::Folder(_))
    }

    pub(super) fn of(action: ImportedAction, fields: RouteFields) -> Self {
        Self {
            action,
            fields,
            listing: None,
            index: None,
            try_files: Vec::new(),
            spa: String::new(),
            settings: Vec::new(),
            cache: Vec::new(),
            forbidden: Vec::new(),
        }
    }
}
