use super::super::TUNABLES;
use super::*;

fn tunable(name: &str) -> &'static Tunable {
    TUNABLES.iter().find(|tunable| tunable.name == name).expect("the table has this name")
}

fn set(name: &str, value: &str) -> Result<String, InvalidValue> {
    let mut config = Config::default();
    tunable(name).set(&mut config, value.as_ref())?;
    Ok(tunable(name).show(&config))
}

#[test]
fn every_default_can_be_set_and_is_shown_as_it_is_written() {
    for tunable in TUNABLES {
        let mut config = Config::blank();
        tunable.set(&mut config, tunable.default.as_ref()).expect("a default is valid");
        let written = if tunable.default.is_empty() { "none" } else { tunable.default };
        assert_eq!(tunable.show(&config), written, "{}", tunable.name);
    }
}

#[test]
fn every_shown_value_can_be_set_again() {
    for tunable in TUNABLES {
        let mut config = Config::default();
        let shown = tunable.show(&config);
        if shown != "none" {
            tunable.set(&mut config, shown.as_ref()).expect("what is shown can be set");
            assert_eq!(tunable.show(&config), shown);
        }
    }
}

#[test]
fn every_end_of_a_range_is_in_it_and_one_beyond_is_not() {
    for tunable in TUNABLES {
        let Field::Number { unit, min, max, zero, .. } = &tunable.field else {
            continue;
        };
        for number in [*min, *max] {
            let shown = set(tunable.name, &unit.format(number)).expect("in range");
            assert!(shown == unit.format(number) || Some(shown.as_str()) == *zero);
        }
        assert!(set(tunable.name, &unit.format(max + 1)).is_err(), "{}", tunable.name);
        if *min > 0 && zero.is_none() {
            assert!(set(tunable.name, &unit.format(min - 1)).is_err(), "{}", tunable.name);
        }
    }
}

#[test]
fn switches_take_every_usual_word() {
    for word in ["true", "1", "yes", "on", "TRUE", " On "] {
        assert_eq!(set("hidden", word), Ok("true".to_owned()), "{word}");
    }
    for word in ["false", "0", "no", "off"] {
        assert_eq!(set("hidden", word), Ok("false".to_owned()), "{word}");
    }
    assert!(set("hidden", "maybe").is_err());
    assert!(set("hidden", "").is_err());
}

#[test]
fn a_mistyped_choice_names_the_nearest() {
    let refused = set("scheduler", "queue-sharde").expect_err("no such scheduler");
    assert_eq!(refused.nearest, Some("queue-shared"));
    assert_eq!(refused.expected, "one of pool, pool-shared, queue, queue-shared");
    assert_eq!(set("workers", "atuo").expect_err("mistyped").nearest, Some("auto"));
}

#[test]
fn zero_has_a_word() {
    assert_eq!(set("workers", "auto"), Ok("auto".to_owned()));
    assert_eq!(set("workers", "0"), Ok("auto".to_owned()));
    assert_eq!(set("max-requests-per-connection", "unlimited"), Ok("unlimited".to_owned()));
    assert_eq!(set("body-rate-min", "off"), Ok("off".to_owned()));
}

#[test]
fn the_page_of_an_application_has_a_default_and_lies_in_the_folder() {
    for (value, shown) in [
        ("true", "index.html"),
        ("on", "index.html"),
        ("app/200.html", "app/200.html"),
        ("false", "none"),
        ("", "none"),
    ] {
        assert_eq!(set("spa", value), Ok(shown.to_owned()), "{value}");
    }
    for value in ["/index.html", "../index.html", "a//b", "a/", ".", "a\\b"] {
        assert!(set("spa", value).is_err(), "{value}");
    }
    assert_eq!(tunable("spa").bare_value(), Some("index.html"));
}

#[test]
fn folders_of_what_never_changes_lie_below_the_served_one() {
    assert_eq!(set("immutable-folders", "a, b/c"), Ok("a,b/c".to_owned()));
    assert_eq!(set("immutable-folders", "/a/"), Ok("/a/".to_owned()));
    assert_eq!(set("immutable-folders", ""), Ok("none".to_owned()));
    assert!(set("immutable-folders", "a,../b").is_err());
    assert!(set("immutable-folders", "/").is_err());
    assert_eq!(set("keep-old-assets", "24h"), Ok("1d".to_owned()));
    assert_eq!(set("keep-old-assets", "0"), Ok("off".to_owned()));
    assert!(set("keep-old-assets", "31d").is_err() && set("keep-old-assets", "5ms").is_err());
}

#[test]
fn a_server_name_cannot_split_a_response() {
    assert!(set("server-name", "a\r\nSet-Cookie: b").is_err());
    assert_eq!(set("server-name", ""), Ok("none".to_owned()));
    assert_eq!(set("server-name", "my server/1"), Ok("my server/1".to_owned()));
}

#[test]
fn an_ipv6_host_loses_its_brackets() {
    assert_eq!(set("host", "[::1]"), Ok("::1".to_owned()));
    assert_eq!(set("host", "::1"), Ok("::1".to_owned()));
    assert!(set("host", "").is_err());
    assert!(set("host", "a b").is_err());
    assert!(set("host", "http://localhost").is_err());
}

#[test]
fn every_value_can_be_copied() {
    let (default, blank) = (Config::default(), Config::blank());
    for tunable in TUNABLES {
        for from in [&default, &blank] {
            let mut to = Config::default();
            if let Field::Text { set, .. } = &tunable.field {
                set(&mut to, "another");
            }
            tunable.copy(from, &mut to);
            assert_eq!(tunable.show(&to), tunable.show(from), "{}", tunable.name);
        }
    }
    let mut kept = Config { uds_mode: "660".to_owned(), ..Config::default() };
    tunable("uds-mode").copy(&default, &mut kept);
    assert_eq!(kept.uds_mode, "", "and not the word for none");
}
