//! Lists: their parameters, and pages of the rows that the caller may see.

mod list_flag;
mod list_page;
mod list_query;
mod list_row;

pub(crate) use list_flag::{asked_flag, flag};
pub(crate) use list_page::{page, selected};
pub(crate) use list_query::{ListQuery, PAGE_MAX, asked_fields};
pub(crate) use list_row::{ListRow, SortValue};
