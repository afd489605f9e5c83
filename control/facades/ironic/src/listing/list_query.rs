//! The parameters of a list.

use super::list_flag::flag;
use crate::error::IronicError;
use crate::request::IronicCall;

/// Most rows of a page, and their number where the request names none.
pub(super) const PAGE_MAX: usize = 1000;
/// The sort key of requests that name none. Rows are in the order of their keys then.
const DEFAULT_SORT_KEY: &str = "uuid";
/// Another name of [`DEFAULT_SORT_KEY`]: the number of a row in Ironic's database.
const ROW_NUMBER: &str = "id";

/// The parameters of a list: the page, its order, and the fields of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListQuery {
    /// Most rows of the page, from 1 to [`PAGE_MAX`].
    pub(crate) limit: usize,
    /// Key of the last row of the page before. `None` means that it is the first page.
    pub(crate) marker: Option<String>,
    /// The field that the rows are sorted by; `uuid` if the request names none.
    pub(crate) sort_key: String,
    /// `true` if the largest value comes first.
    pub(crate) descending: bool,
    /// The fields of each row. `None` means those of the list, or all of them with `detail`.
    pub(crate) fields: Option<Vec<String>>,
    /// `true` if each row has all fields.
    pub(crate) detail: bool,
}

impl ListQuery {
    /// The parameters of a call. Rows may be sorted by `uuid` and by `sort_keys`.
    ///
    /// # Errors
    /// 400 for a malformed parameter, an unknown sort key or field, and for `fields` with `detail`.
    pub(crate) fn of(
        call: &IronicCall<'_>,
        sort_keys: &[&str],
        fields: &[&str],
    ) -> Result<Self, IronicError> {
        Self::parse(call.query, sort_keys, fields)
    }

    fn parse(
        query: &[(String, String)],
        sort_keys: &[&str],
        fields: &[&str],
    ) -> Result<Self, IronicError> {
        let parsed = Self {
            limit: limit(asked(query, "limit"))?,
            marker: asked(query, "marker").map(str::to_owned),
            sort_key: sort_key(asked(query, "sort_key"), sort_keys)?,
            descending: is_descending(asked(query, "sort_dir"))?,
            fields: known_fields(asked(query, "fields"), fields)?,
            detail: match asked(query, "detail") {
                Some(text) => flag("detail", text)?,
                None => false,
            },
        };
        parsed.consistent()
    }

    /// The same list with all fields of its rows, as the paths that end with `/detail` have it.
    ///
    /// # Errors
    /// 400 if the request names fields.
    pub(crate) fn detailed(self) -> Result<Self, IronicError> {
        let detailed = Self {
            detail: true,
            ..self
        };
        detailed.consistent()
    }

    /// The fields of each row: those of the request, else `defaults`. `None` means all.
    pub(crate) fn shown(&self, defaults: &[&str]) -> Option<Vec<String>> {
        if self.detail {
            return None;
        }
        let defaults = || defaults.iter().map(|&name| name.to_owned()).collect();
        Some(self.fields.clone().unwrap_or_else(defaults))
    }

    fn consistent(self) -> Result<Self, IronicError> {
        if self.detail && self.fields.is_some() {
            let text = "Can not specify ?detail=True and fields in the same request.";
            return Err(IronicError::invalid(text));
        }
        Ok(self)
    }
}

/// The parameter `fields` of a call that shows one object. `None` means all fields.
///
/// # Errors
/// 400 for a field that is not `known`.
pub(crate) fn asked_fields(
    call: &IronicCall<'_>,
    known: &[&str],
) -> Result<Option<Vec<String>>, IronicError> {
    known_fields(call.asked("fields"), known)
}

fn asked<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = query.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

fn limit(asked: Option<&str>) -> Result<usize, IronicError> {
    let Some(text) = asked else {
        return Ok(PAGE_MAX);
    };
    match text.parse::<i64>() {
        Ok(number) if number > 0 => Ok(usize::try_from(number).unwrap_or(PAGE_MAX).min(PAGE_MAX)),
        Ok(_) => Err(IronicError::invalid("Limit must be positive")),
        Err(_) => {
            let text = format!("limit: \"{text}\" must be an integer");
            Err(IronicError::invalid(text))
        }
    }
}

fn sort_key(asked: Option<&str>, known: &[&str]) -> Result<String, IronicError> {
    match asked {
        None | Some(DEFAULT_SORT_KEY | ROW_NUMBER) => Ok(DEFAULT_SORT_KEY.to_owned()),
        Some(key) if known.contains(&key) => Ok(key.to_owned()),
        Some(key) => {
            let text = format!("The sort_key value \"{key}\" is an invalid field for sorting");
            Err(IronicError::invalid(text))
        }
    }
}

fn is_descending(asked: Option<&str>) -> Result<bool, IronicError> {
    match asked {
        None | Some("asc") => Ok(false),
        Some("desc") => Ok(true),
        Some(other) => Err(IronicError::invalid(format!(
            "Invalid sort direction: {other}. Acceptable values are 'asc' or 'desc'"
        ))),
    }
}

fn known_fields(asked: Option<&str>, known: &[&str]) -> Result<Option<Vec<String>>, IronicError> {
    let Some(text) = asked else {
        return Ok(None);
    };
    let names = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let mut fields: Vec<String> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            let text = format!("Field(s) \"{name}\" are not valid");
            return Err(IronicError::invalid(text));
        }
        // A field that is named twice is shown once, so that there are at most as many as are known.
        if !fields.iter().any(|field| field == name) {
            fields.push(name.to_owned());
        }
    }
    Ok(Some(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(query: &str) -> Result<ListQuery, String> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let pairs: Vec<(String, String)> = pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let parsed = ListQuery::parse(&pairs, &["name"], &["uuid", "name", "extra"]);
        parsed.map_err(|error| error.text)
    }

    #[test]
    fn parameters_have_defaults_and_bounds() {
        let plain = ListQuery {
            limit: PAGE_MAX,
            marker: None,
            sort_key: "uuid".to_owned(),
            descending: false,
            fields: None,
            detail: false,
        };
        let with_limit = |limit| ListQuery {
            limit,
            ..plain.clone()
        };
        for (query, expected) in [
            ("", plain.clone()),
            ("sort_key=id&sort_dir=asc", plain.clone()),
            ("limit=7", with_limit(7)),
            ("limit=5000", with_limit(PAGE_MAX)),
            (
                "marker=m&sort_key=name&sort_dir=desc",
                ListQuery {
                    marker: Some("m".to_owned()),
                    sort_key: "name".to_owned(),
                    descending: true,
                    ..plain.clone()
                },
            ),
            (
                "fields=name, extra,name",
                ListQuery {
                    fields: Some(vec!["name".to_owned(), "extra".to_owned()]),
                    ..plain.clone()
                },
            ),
            (
                "detail=True",
                ListQuery {
                    detail: true,
                    ..plain.clone()
                },
            ),
        ] {
            assert_eq!(parsed(query), Ok(expected), "{query}");
        }
    }

    #[test]
    fn malformed_parameters_are_refused() {
        for (query, text) in [
            ("limit=0", "Limit must be positive"),
            ("limit=-1", "Limit must be positive"),
            ("limit=x", "must be an integer"),
            ("sort_key=extra", "invalid field for sorting"),
            ("sort_dir=up", "Invalid sort direction: up"),
            ("fields=name,secret", "Field(s) \"secret\" are not valid"),
            ("detail=x", "is no boolean"),
            ("detail=True&fields=name", "in the same request"),
        ] {
            let refused = parsed(query).unwrap_err();
            assert!(refused.contains(text), "{query}: {refused}");
        }
        let with_fields = parsed("fields=name").unwrap();
        assert!(with_fields.detailed().is_err());
    }

    #[test]
    fn shown_fields() {
        let owned = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned());
            Some(names.collect::<Vec<String>>())
        };
        for (query, expected) in [
            ("", owned(&["uuid"])),
            ("fields=name, name ,extra", owned(&["name", "extra"])),
            ("fields=", owned(&[])),
            ("detail=True", None),
        ] {
            assert_eq!(parsed(query).unwrap().shown(&["uuid"]), expected, "{query}");
        }
    }
}
