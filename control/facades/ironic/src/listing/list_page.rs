//! Pages of a list.

use serde_json::{Map, Value};
use url::form_urlencoded::Serializer;

use super::{ListQuery, ListRow};
use crate::error::IronicError;
use crate::request::IronicCall;

/// The field that every object keeps, whichever fields a request names.
const LINKS: &str = "links";
/// Parameters of a query that each page has of its own.
const OF_THE_PAGE: [&str; 2] = ["limit", "marker"];

/// A page of `rows`, `{"nodes": [...], "next": URL}`, with the fields that the query names. `path` is
/// that of the list below `/v1`. The next page's address repeats the other parameters of the query.
///
/// # Errors
/// 404 for a marker that is no row of the list.
pub(crate) fn page(
    call: &IronicCall<'_>,
    query: &ListQuery,
    collection: &str,
    path: &str,
    rows: Vec<ListRow<'_>>,
) -> Result<Value, IronicError> {
    let (objects, marker) = on_page(query, rows)?;
    let mut page = Map::new();
    page.insert(collection.to_owned(), Value::Array(objects));
    if let Some(marker) = marker {
        let parameters = next_parameters(call.query, query.limit, &marker);
        let next = format!("{}?{parameters}", call.link(path));
        page.insert("next".to_owned(), Value::String(next));
    }
    Ok(Value::Object(page))
}

/// An object with these fields and its links. `None` means all fields.
pub(crate) fn selected(object: Value, fields: Option<&[String]>) -> Value {
    let Some(fields) = fields else {
        return object;
    };
    match object {
        Value::Object(all) => {
            let all = all.into_iter();
            let kept = all.filter(|(name, _)| name == LINKS || fields.contains(name));
            Value::Object(kept.collect())
        }
        other => other,
    }
}

/// The objects of the page, and its last key if there are rows behind it.
fn on_page(
    query: &ListQuery,
    mut rows: Vec<ListRow<'_>>,
) -> Result<(Vec<Value>, Option<String>), IronicError> {
    rows.sort_by(|a, b| {
        let order = (&a.sort, &a.key).cmp(&(&b.sort, &b.key));
        if query.descending {
            order.reverse()
        } else {
            order
        }
    });
    let begin = match &query.marker {
        None => 0,
        Some(marker) => {
            let found = rows.iter().position(|row| row.key == *marker);
            found.ok_or_else(|| IronicError::not_found("Marker", marker))? + 1
        }
    };
    let goes_on = rows.len().saturating_sub(begin) > query.limit;
    let mut objects = Vec::new();
    let mut last = None;
    for row in rows.into_iter().skip(begin).take(query.limit) {
        objects.push(selected((row.make)(), query.fields.as_deref()));
        last = Some(row.key);
    }
    Ok((objects, last.filter(|_| goes_on)))
}

fn next_parameters(query: &[(String, String)], limit: usize, marker: &str) -> String {
    let kept = query
        .iter()
        .filter(|(name, _)| !OF_THE_PAGE.contains(&name.as_str()));
    let mut next = Serializer::new(String::new());
    next.extend_pairs(kept);
    next.append_pair("limit", &limit.to_string());
    next.append_pair("marker", marker);
    next.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::listing::SortValue;
    use crate::listing::list_query::PAGE_MAX;

    fn query(marker: Option<&str>, limit: usize) -> ListQuery {
        ListQuery {
            limit,
            marker: marker.map(str::to_owned),
            sort_key: "name".to_owned(),
            descending: false,
            fields: None,
            detail: false,
        }
    }

    /// Rows `a` (sorted by 3), `b` (absent), `c` (by 1) and `d` (by 1).
    fn rows() -> Vec<ListRow<'static>> {
        let row = |key: &'static str, sort: SortValue| ListRow {
            key: key.to_owned(),
            sort,
            make: Box::new(move || json!({"uuid": key, "name": key, "links": []})),
        };
        vec![
            row("a", SortValue::Number(3)),
            row("b", SortValue::Absent),
            row("d", SortValue::Number(1)),
            row("c", SortValue::Number(1)),
        ]
    }

    fn keys(query: &ListQuery) -> Result<(String, Option<String>), IronicError> {
        let (objects, next) = on_page(query, rows())?;
        let keys = objects.iter().filter_map(|object| object["uuid"].as_str());
        Ok((keys.collect(), next))
    }

    #[test]
    fn pages_follow_each_other() {
        for (marker, limit, expected, next) in [
            (None, PAGE_MAX, "bcda", None),
            (None, 4, "bcda", None),
            (None, 3, "bcd", Some("d")),
            (Some("d"), 3, "a", None),
            (Some("b"), 1, "c", Some("c")),
            (Some("a"), 3, "", None),
        ] {
            let found = keys(&query(marker, limit)).unwrap();
            let expected = (expected.to_owned(), next.map(str::to_owned));
            assert_eq!(found, expected, "{marker:?} {limit}");
        }
        let backwards = ListQuery {
            descending: true,
            ..query(Some("d"), 3)
        };
        assert_eq!(keys(&backwards).unwrap(), ("cb".to_owned(), None));
        let unknown = keys(&query(Some("x"), 3)).unwrap_err();
        assert_eq!(unknown.status, http::StatusCode::NOT_FOUND);
    }

    #[test]
    fn rows_have_the_fields_of_the_query() {
        let named = ListQuery {
            fields: Some(vec!["name".to_owned()]),
            ..query(None, 1)
        };
        let (objects, _) = on_page(&named, rows()).unwrap();
        assert_eq!(objects, [json!({"name": "b", "links": []})]);
        assert_eq!(selected(json!({"a": 1}), None), json!({"a": 1}));
        assert_eq!(selected(json!({"a": 1}), Some(&[])), json!({}));
    }

    #[test]
    fn the_next_page_keeps_the_filters() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let query = [
            pair("owner", "a b"),
            pair("limit", "9"),
            pair("marker", "x"),
            pair("sort_key", "name"),
        ];
        let next = next_parameters(&query, 9, "y");
        assert_eq!(next, "owner=a+b&sort_key=name&limit=9&marker=y");
    }
}
