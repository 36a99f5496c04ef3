//! Unit tests of responses.

use super::*;

#[test]
fn another_status_stands_for_one_that_has_no_name() {
    let odd = Response::text("x").code(299, "Odd").expect("a status");
    assert_eq!((odd.status_code(), odd.status_number()), (Status::OK, 299));
    let again = odd.code(404, "").expect("a status");
    assert_eq!(again.status_number(), 404);
    assert!(again.extras.is_some_and(|extras| extras.status_line.is_none()));
}

#[test]
fn a_phrase_of_its_own_is_kept_and_the_usual_one_costs_nothing() {
    let own = Response::text("x").code(201, "Lazy").expect("a status");
    assert_eq!((own.status_code(), own.status_number()), (Status::CREATED, 201));
    let line = own.extras.and_then(|extras| extras.status_line);
    assert_eq!(line.map(|line| line.text).as_deref(), Some("HTTP/1.1 201 Lazy\r\n"));
    for reason in ["", "Created"] {
        let usual = Response::text("x").code(201, reason).expect("a status");
        assert!(usual.extras.is_none());
    }
    assert_eq!(Response::text("x").code(200, "a\rb").err(), Some(FieldError::Value));
}

#[test]
fn fields_are_added_found_and_taken_away() {
    let mut response = Response::text("x").header("X-One", "a").header("x-ONE", "b");
    assert_eq!(response.header_value("x-one"), Some(b"a".as_slice()));
    assert_eq!(response.header_value("content-TYPE"), Some(ContentTypeId::Text.name().as_bytes()));
    response.remove_header("X-one");
    assert_eq!(response.header_value("x-one"), None);
    let response = response.content_type("image/png").content_type("image/gif");
    assert_eq!(response.header_value("content-type"), Some(b"image/gif".as_slice()));
    assert_eq!(response.fields.len(), 1);
}

#[test]
fn a_field_that_could_split_the_answer_is_refused() {
    let mut response = Response::text("x");
    assert_eq!(response.try_header("A", "b\r\nC: d"), Err(FieldError::Value));
    assert_eq!(response.try_header("A b", "c"), Err(FieldError::Name));
    assert_eq!(response.try_header("content-length", "1"), Err(FieldError::Framing));
    assert!(response.fields.is_empty());
}
