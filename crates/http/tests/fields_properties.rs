//! What must hold for every list of fields: it is the slow list of pairs that it stands for.

use gustnado_http::fields::{FieldError, Fields, HeaderId, check_field};
use gustnado_http::response_writer::{Opening, Persist, ResponseWriter};
use gustnado_http::status::Status;
use proptest::prelude::*;
use proptest::sample::select;

/// What is done to a list.
#[derive(Clone, Debug)]
enum Step {
    Add(String, Vec<u8>),
    AddById(HeaderId, Vec<u8>),
    Set(String, Vec<u8>),
    Remove(String),
    ExtendByItself,
}

/// Names with an id and without, in several spellings, and a few that no field may have.
fn name() -> impl Strategy<Value = String> {
    let names = ["Date", "dAtE", "ETag", "etag", "X-One", "x-one", "X-Two", "Content-Type", "a"];
    let bad = ["", "a b", "é", "Content-Length", "connection"];
    select([&names[..], &bad].concat()).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    select(vec![&b""[..], b"a", b"\xff \t", b"longer than a few bytes", b"a\r\nb: c", b"\0"])
        .prop_map(<[u8]>::to_vec)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = select(HeaderId::ALL.to_vec());
    let step = prop_oneof![
        4 => (name(), value()).prop_map(|(name, value)| Step::Add(name, value)),
        2 => (id, value()).prop_map(|(id, value)| Step::AddById(id, value)),
        2 => (name(), value()).prop_map(|(name, value)| Step::Set(name, value)),
        2 => name().prop_map(Step::Remove),
        1 => Just(Step::ExtendByItself),
    ];
    prop::collection::vec(step, 0..12)
}

/// The list that needs no thought.
#[derive(Default)]
struct Model(Vec<(String, Vec<u8>)>);

impl Model {
    fn add(&mut self, name: &str, value: &[u8]) -> Result<(), FieldError> {
        check(name, value)?;
        self.0.push((name.to_owned(), value.to_vec()));
        Ok(())
    }

    fn set(&mut self, name: &str, value: &[u8]) -> Result<(), FieldError> {
        check(name, value)?;
        self.remove(name);
        self.add(name, value)
    }

    fn remove(&mut self, name: &str) {
        self.0.retain(|field| !field.0.eq_ignore_ascii_case(name));
    }
}

/// The rules of [`check_field`], said in another way.
fn check(name: &str, value: &[u8]) -> Result<(), FieldError> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_token) {
        Err(FieldError::Name)
    } else if value.iter().any(|byte| *byte != b'\t' && byte.is_ascii_control()) {
        Err(FieldError::Value)
    } else if ["content-length", "transfer-encoding", "connection"]
        .contains(&name.to_lowercase().as_str())
    {
        Err(FieldError::Framing)
    } else {
        Ok(())
    }
}

fn run(steps: &[Step]) -> (Fields, Model) {
    let (mut fields, mut model) = (Fields::new(), Model::default());
    for step in steps {
        match step {
            Step::Add(name, value) => {
                let expected = model.add(name, value);
                assert_eq!(check_field(name.as_str(), value), expected);
                assert_eq!(fields.add(name.as_str(), value), expected);
            }
            Step::AddById(id, value) => {
                assert_eq!(fields.add(*id, value), model.add(id.name(), value));
            }
            Step::Set(name, value) => {
                assert_eq!(fields.set(name.as_str(), value), model.set(name, value));
            }
            Step::Remove(name) => {
                fields.remove(name.as_str());
                model.remove(name);
            }
            Step::ExtendByItself => {
                fields.extend(&fields.clone());
                model.0.extend(model.0.clone());
            }
        }
    }
    (fields, model)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_list_holds_what_the_slow_one_holds(steps in steps(), wanted in name()) {
        let (fields, model) = run(&steps);
        prop_assert_eq!(fields.len(), model.0.len());
        prop_assert_eq!(fields.is_empty(), model.0.is_empty());
        let all = fields.iter().map(|(name, value)| (name.as_str().to_owned(), value.to_vec()));
        prop_assert_eq!(all.collect::<Vec<_>>(), &*model.0);
        for (name, _) in fields.iter() {
            prop_assert_eq!(name.id(), HeaderId::of(name.as_str()));
        }
        let of_name = model.0.iter().filter(|field| field.0.eq_ignore_ascii_case(&wanted));
        let of_name: Vec<&[u8]> = of_name.map(|field| field.1.as_slice()).collect();
        prop_assert_eq!(fields.get(wanted.as_str()), of_name.first().copied());
        prop_assert_eq!(fields.contains(wanted.as_str()), !of_name.is_empty());
        prop_assert_eq!(fields.get_all(wanted.as_str()).collect::<Vec<_>>(), of_name);
        prop_assert_eq!(fields.clone(), fields);
    }

    #[test]
    fn a_list_is_written_as_the_lines_of_the_slow_one(steps in steps()) {
        let (fields, model) = run(&steps);
        let mut out = Vec::new();
        let opening = Opening::new(b"");
        let mut writer = ResponseWriter::start(&mut out, Status::OK, &opening, Persist::Default);
        writer.fields(&fields);
        writer.finish();
        let lines = model.0.iter().flat_map(|(name, value)| {
            [name.as_bytes(), b": ", value, b"\r\n"].concat()
        });
        let lines: Vec<u8> = lines.collect();
        prop_assert_eq!(out, [b"HTTP/1.1 200 OK\r\n", &lines[..], b"\r\n"].concat());
    }
}

#[test]
fn an_empty_list_costs_nothing_and_can_be_shared() {
    const EMPTY: Fields = Fields::new();
    fn is_shared<T: Send + Sync>(_: &T) {}
    is_shared(&EMPTY);
    assert!(EMPTY.is_empty() && EMPTY == Fields::default());
    assert!(size_of::<Fields>() <= size_of::<Vec<u8>>());
}
