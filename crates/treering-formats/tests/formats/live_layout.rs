//! The page about live files says of every field what the definition says.

const DEFINITION: &str = include_str!("../../../treering-events/src/record.rs");
const PAGE: &str = include_str!("../../../../docs/formats/live.md");

/// A field of a record: record, place, name.
type Field<'a> = (&'a str, u32, &'a str);

fn defined() -> Vec<Field<'static>> {
    let start = DEFINITION.find("\nrecords! {").expect("the records are defined");
    let body = DEFINITION[start..].split("\n}\n").next().expect("it is not empty");
    let mut record = "";
    let mut fields = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some((name, rest)) = line.split_once(": ").filter(|_| line.ends_with(" {")) {
            if rest.trim_end_matches(" {").parse::<u32>().is_ok() {
                record = name;
            }
        } else if let Some((place, name)) = line.split_once(": ").and_then(|(field, _)| field.split_once(' '))
        {
            fields.extend(place.parse().ok().map(|place| (record, place, name)));
        }
    }
    fields
}

fn described() -> Vec<Field<'static>> {
    let mut record = "";
    let mut fields = Vec::new();
    for line in PAGE.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            record = title.split(',').next().unwrap_or_default();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, place, name, _, _, _] = cells[..]
            && let Ok(place) = place.parse()
        {
            fields.push((record, place, name.trim_matches('`')));
        }
    }
    fields
}

#[test]
fn the_tables_of_the_page_are_those_of_the_definition() {
    let defined = defined();
    assert!(defined.len() > 100, "{defined:?}");
    assert_eq!(described(), defined);
}

#[test]
fn the_page_states_the_sizes_of_records_and_the_magic() {
    for size in ["Header, 512", "Thread, 320", "Node, 320", "Activation, 56", "Sizes, 1024"] {
        assert!(PAGE.contains(&format!("### {size} bytes")), "{size}");
    }
    let magic: Vec<String> = treering_formats::live::MAGIC.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(PAGE.contains(&magic.join(" ")), "{magic:?}");
}
