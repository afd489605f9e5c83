//! Lists of the network API: filters, fields and pages.

use serde_json::{Map, Value, json};
use url::form_urlencoded::Serializer;

use crate::error::IronicError;
use crate::request::{IronicCall, Parameters};

/// Most rows of a page, and their number where the request names none.
const PAGE_MAX: usize = 1000;
/// Parameters of a query that choose no rows.
const CONTROLS: [&str; 3] = ["fields", "limit", "marker"];

/// A kind of object.
#[derive(Debug)]
pub(super) struct NetworkCollection {
    /// Name of the list, such as `networks`.
    pub(super) name: &'static str,
    /// Fields by which rows can be chosen.
    pub(super) filters: &'static [&'static str],
}

/// A page of the rows that the query chooses, in the order of their ids.
///
/// # Errors
/// 400 for a parameter that is malformed or not known.
pub(super) fn page(
    call: &IronicCall<'_>,
    collection: &NetworkCollection,
    rows: Vec<Value>,
) -> Result<Value, IronicError> {
    let name = collection.name;
    let filters = filters(call.query, collection.filters)?;
    let limit = limit(call.asked("limit"))?;
    let marker = call.asked("marker").unwrap_or_default();
    let mut chosen: Vec<Value> = rows
        .into_iter()
        .filter(|row| fits(row, &filters) && id(row) > marker)
        .collect();
    chosen.sort_by(|a, b| id(a).cmp(id(b)));
    let goes_on = chosen.len() > limit;
    chosen.truncate(limit);
    let last = chosen.last().map(|row| id(row).to_owned());
    let fields: Vec<&str> = all(call.query, "fields").collect();
    let shown = chosen.into_iter().map(|row| selected(row, &fields));
    let mut page = Map::new();
    page.insert(name.to_owned(), shown.collect());
    if let Some(last) = last.filter(|_| goes_on) {
        let next = format!("{}/v2.0/{name}?{}", call.base, next(call.query, &last));
        page.insert(
            format!("{name}_links"),
            json!([{ "rel": "next", "href": next }]),
        );
    }
    Ok(Value::Object(page))
}

/// An object with these fields. None means all of them.
pub(super) fn selected(row: Value, fields: &[&str]) -> Value {
    match row {
        Value::Object(row) if !fields.is_empty() => {
            let kept = row
                .into_iter()
                .filter(|(name, _)| fields.contains(&name.as_str()));
            Value::Object(kept.collect())
        }
        row => row,
    }
}

/// The values of a parameter, which may be repeated.
pub(super) fn all<'a>(query: &'a Parameters, name: &str) -> impl Iterator<Item = &'a str> {
    query
        .iter()
        .filter(move |(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

fn filters<'a>(
    query: &'a Parameters,
    known: &[&str],
) -> Result<Vec<(&'a str, &'a str)>, IronicError> {
    let pairs = query
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let chosen: Vec<(&str, &str)> = pairs.filter(|(name, _)| !CONTROLS.contains(name)).collect();
    let unknown = chosen.iter().find(|(name, _)| !known.contains(name));
    if let Some((name, _)) = unknown {
        let text = format!("\"{name}\" is no filter: use {}", known.join(", "));
        return Err(IronicError::invalid(text));
    }
    Ok(chosen)
}

/// `true` if each field of a filter has one of the values that the query names for it.
fn fits(row: &Value, filters: &[(&str, &str)]) -> bool {
    filters.iter().all(|(name, _)| {
        let mut wanted = filters.iter().filter(|(other, _)| other == name);
        wanted.any(|(name, value)| is(&row[*name], value))
    })
}

fn is(found: &Value, wanted: &str) -> bool {
    match found {
        Value::String(text) => text == wanted,
        Value::Bool(flag) => wanted.eq_ignore_ascii_case(&flag.to_string()),
        Value::Null => wanted.is_empty(),
        other => {
            let text = other.to_string();
            text == wanted
        }
    }
}

fn id(row: &Value) -> &str {
    row["id"].as_str().unwrap_or_default()
}

fn limit(asked: Option<&str>) -> Result<usize, IronicError> {
    let Some(text) = asked else {
        return Ok(PAGE_MAX);
    };
    match text.parse::<usize>() {
        Ok(0) => Ok(PAGE_MAX),
        Ok(number) => Ok(number.min(PAGE_MAX)),
        Err(_) => {
            let text = format!("limit: \"{text}\" must be a number");
            Err(IronicError::invalid(text))
        }
    }
}

fn next(query: &Parameters, marker: &str) -> String {
    let mut next = Serializer::new(String::new());
    next.extend_pairs(query.iter().filter(|(name, _)| name != "marker"));
    next.append_pair("marker", marker);
    next.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Parameters {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn filters_choose_rows() {
        let row = json!({"id": "a", "name": "web", "shared": true, "mtu": 1450, "host": null});
        for (pairs, expected) in [
            (vec![], true),
            (vec![("name", "web")], true),
            (vec![("name", "db")], false),
            (vec![("name", "db"), ("name", "web")], true),
            (vec![("name", "web"), ("shared", "True")], true),
            (vec![("name", "web"), ("shared", "false")], false),
            (vec![("mtu", "1450")], true),
            (vec![("host", "")], true),
        ] {
            assert_eq!(fits(&row, &pairs), expected, "{pairs:?}");
        }
    }

    #[test]
    fn unknown_filters_are_refused_by_name() {
        let known = ["name"];
        let asked = query(&[("fields", "id"), ("limit", "1"), ("name", "web")]);
        assert_eq!(filters(&asked, &known).unwrap(), [("name", "web")]);
        let asked = query(&[("nonsense", "1")]);
        let refused = filters(&asked, &known).unwrap_err();
        assert!(refused.text.contains("nonsense"), "{}", refused.text);
        assert!(limit(Some("x")).is_err());
        assert_eq!(limit(Some("0")).unwrap(), PAGE_MAX);
        assert_eq!(limit(Some("5")).unwrap(), 5);
    }

    #[test]
    fn the_next_page_begins_behind_the_marker() {
        let asked = query(&[("name", "a b"), ("marker", "x"), ("limit", "2")]);
        assert_eq!(next(&asked, "y"), "name=a+b&limit=2&marker=y");
    }

    #[test]
    fn fields_are_kept_by_name() {
        let row = json!({"id": "a", "name": "web"});
        assert_eq!(selected(row.clone(), &["id"]), json!({"id": "a"}));
        assert_eq!(selected(row.clone(), &[]), row);
    }
}
