//! Modules: which uses which. Two siblings that use each other, directly or round a corner, are
//! one module in two files. (A parent and its own children may.)

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, UseTree};

/// A name as it is written, piece by piece: `["super", "body", "Body"]`.
type Name = Vec<String>;

/// A module with its children. Tests are none of it.
#[derive(Default)]
pub(crate) struct Module {
    children: BTreeMap<String, Module>,
    /// The path that each imported name means.
    imports: BTreeMap<String, Name>,
    /// Modules of which everything is imported.
    globs: Vec<Name>,
    /// Names that are declared here.
    declared: BTreeSet<String>,
    /// Types that are declared here, those inside of functions too.
    types: Vec<String>,
    /// All names of other modules that stand here, imported or spelled out.
    named: Vec<Name>,
}

/// Siblings of one parent that are in cycles, and how they use each other.
#[derive(Debug, Default)]
pub(crate) struct Cyclic {
    pub(crate) siblings: BTreeSet<String>,
    /// `body uses request: crate::request::Request in crate::body::exchange`
    pub(crate) uses: Vec<String>,
}

/// Modules in cycles, by the path of the parent.
pub(crate) fn cycles(of: &Module) -> BTreeMap<String, Cyclic> {
    let mut uses: BTreeMap<Name, BTreeMap<(String, String), String>> = BTreeMap::new();
    for (place, named) in of.names_with_their_places() {
        let Some(found) = of.find(&place, &named, 0) else { continue };
        let parent = common(&place, &found);
        if let (Some(from), Some(to)) = (place.get(parent), found.get(parent)) {
            let how = format!("{} in {}", named.join("::"), place.join("::"));
            let edge = (from.clone(), to.clone());
            uses.entry(place[..parent].to_vec()).or_default().insert(edge, how);
        }
    }
    let cyclic = uses.iter().map(|(parent, uses)| (parent.join("::"), in_cycles(uses)));
    cyclic.filter(|(_, cyclic)| !cyclic.siblings.is_empty()).collect()
}

fn in_cycles(uses: &BTreeMap<(String, String), String>) -> Cyclic {
    let mut found = Cyclic::default();
    for ((from, to), how) in uses {
        if reached_from(to, uses).contains(from) {
            found.siblings.extend([from.clone(), to.clone()]);
            found.uses.push(format!("{from} uses {to}: {how}"));
        }
    }
    found
}

fn reached_from<'u>(
    start: &'u String,
    uses: &'u BTreeMap<(String, String), String>,
) -> BTreeSet<&'u String> {
    let (mut reached, mut ahead) = (BTreeSet::new(), vec![start]);
    while let Some(at) = ahead.pop() {
        let next = uses.keys().filter(|(from, _)| from == at).map(|(_, to)| to);
        ahead.extend(next.filter(|to| reached.insert(*to)));
    }
    reached
}

fn common(one: &[String], other: &[String]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

impl Module {
    /// Reads a crate from its root file.
    pub(crate) fn of_crate(root: &Path) -> Self {
        let folder = root.parent().expect("a file lies in a folder");
        Self::of_file(root, folder)
    }

    /// - `folder`: where the files of its children lie.
    fn of_file(file: &Path, folder: &Path) -> Self {
        let name = file.display();
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self::of_items(&parsed.items, folder)
    }

    pub(crate) fn of_items(items: &[Item], folder: &Path) -> Self {
        let mut reader = Reader { module: Self::default(), folder };
        for item in items {
            reader.visit_item(item);
        }
        reader.module
    }

    /// Returns the types of this module and those below, each with the path of its module.
    pub(crate) fn types(&self) -> Vec<(Name, String)> {
        let mut found: Vec<_> = self.types.iter().map(|name| (Vec::new(), name.clone())).collect();
        for (child, module) in &self.children {
            let below = module.types().into_iter();
            found.extend(below.map(|(place, name)| ([vec![child.clone()], place].concat(), name)));
        }
        found
    }

    fn names_with_their_places(&self) -> Vec<(Name, Name)> {
        let mut found: Vec<_> = self.named.iter().map(|name| (Vec::new(), name.clone())).collect();
        for (child, module) in &self.children {
            let below = module.names_with_their_places().into_iter();
            found.extend(below.map(|(place, name)| ([vec![child.clone()], place].concat(), name)));
        }
        found
    }

    fn at(&self, place: &[String]) -> Option<&Self> {
        place.iter().try_fold(self, |module, name| module.children.get(name))
    }

    /// The module that declares what is meant by a name at a place; `None` for other crates'.
    fn find(&self, place: &[String], name: &[String], depth: u32) -> Option<Name> {
        let (first, mut rest) = name.split_first()?;
        let mut here = match first.as_str() {
            "crate" => Vec::new(),
            "self" => place.to_vec(),
            "super" => place.split_last()?.1.to_vec(),
            _ => {
                rest = name;
                let module = self.at(place)?;
                let is_known =
                    module.children.contains_key(first) || module.imports.contains_key(first);
                is_known.then(|| place.to_vec())?
            }
        };
        while let Some((next, behind)) = rest.split_first() {
            let module = self.at(&here)?;
            if next == "super" {
                here.pop();
            } else if module.children.contains_key(next) {
                here.push(next.clone());
            } else if module.declared.contains(next) || depth > 8 {
                break;
            } else if let Some(import) = module.imports.get(next) {
                return self.find(&here, &[import, behind].concat(), depth + 1);
            } else {
                let through = module.globs.iter().find_map(|glob| {
                    let found = self.find(&here, glob, depth + 1)?;
                    let of = self.at(&found)?;
                    let has = of.declared.contains(next) || of.imports.contains_key(next);
                    (has && found != here).then_some(found)
                });
                let Some(found) = through else { break };
                return self.find(&found, &[&["self".to_owned()], rest].concat(), depth + 1);
            }
            rest = behind;
        }
        Some(here)
    }
}

struct Reader<'a> {
    module: Module,
    folder: &'a Path,
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        self.module.declared.extend(declared(item));
        self.module.types.extend(declared(item).filter(|_| is_type(item)));
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let name = item.ident.to_string();
        let below = self.folder.join(&name);
        let child = if let Some((_, items)) = &item.content {
            Module::of_items(items, &below)
        } else {
            let files = [self.folder.join(format!("{name}.rs")), below.join("mod.rs")];
            let file = files.iter().find(|file| file.exists());
            Module::of_file(file.unwrap_or_else(|| panic!("{name}: no file")), &below)
        };
        self.module.children.insert(name, child);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.note(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let text = call.tokens.to_string();
        let words: Vec<&str> = text.split_whitespace().collect();
        for at in 0..words.len() {
            let mut name =
                vec![words[at].trim_start_matches(|c: char| !c.is_alphabetic()).to_owned()];
            let behind = words[at + 1..].chunks_exact(2).take_while(|pair| pair[0] == "::");
            name.extend(behind.map(|pair| pair[1].to_owned()));
            self.note(name);
        }
        visit::visit_macro(self, call);
    }
}

impl Reader<'_> {
    /// Takes note of a name that may be another module's.
    fn note(&mut self, name: Name) {
        if name.len() > 1 && ["crate", "super", "self"].contains(&name[0].as_str()) {
            self.module.named.push(name);
        }
    }

    fn import(&mut self, mut before: Name, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(before, &path.tree);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(before.clone(), tree));
            }
            UseTree::Glob(_) => {
                self.module.named.push(before.clone());
                self.module.globs.push(before);
            }
            UseTree::Name(name) => self.import_as(before, &name.ident.to_string(), None),
            UseTree::Rename(name) => {
                let known_as = name.rename.to_string();
                self.import_as(before, &name.ident.to_string(), Some(known_as));
            }
        }
    }

    fn import_as(&mut self, mut path: Name, name: &str, known_as: Option<String>) {
        let last = path.last().cloned();
        if name != "self" {
            path.push(name.to_owned());
        }
        let own = if name == "self" { last.unwrap_or_default() } else { name.to_owned() };
        self.module.named.push(path.clone());
        // (A name that means itself is another crate's.)
        if path.len() > 1 {
            self.module.imports.insert(known_as.unwrap_or(own), path);
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns whether it is left out of what users get: of tests and of model checking.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let said = list.tokens.to_string();
        said == "test" || said == "loom" || said.starts_with("all (test")
    })
}

fn declared(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn is_type(item: &Item) -> bool {
    matches!(
        item,
        Item::Enum(_) | Item::Struct(_) | Item::Trait(_) | Item::Type(_) | Item::Union(_)
    )
}

#[test]
fn a_cycle_round_a_corner_and_through_a_parent_is_found() {
    let text = "
        pub use a::A;
        mod a { use super::b; pub struct A; }
        mod b { pub(crate) fn f() { crate::c::g(); } }
        mod c { use crate::A; pub(crate) fn g(_: A) {} mod d { use super::g; } }
        mod e { use crate::A; }
        #[cfg(test)]
        mod tests { use super::e; }
    ";
    let parsed = syn::parse_file(text).expect("it is Rust");
    let found = cycles(&Module::of_items(&parsed.items, Path::new(".")));
    let siblings: Vec<&str> = found[""].siblings.iter().map(String::as_str).collect();
    assert_eq!((found.len(), siblings), (1, vec!["a", "b", "c"]));
    assert_eq!(found[""].uses[2], "c uses a: crate::A in c");
}
