//! Lists: their parameters, the nodes whose rows the caller may see, and pages of them.

mod list_flag;
mod list_page;
mod list_parameters;
mod list_query;
mod list_row;
mod newer_names;
mod visible_nodes;

pub(crate) use list_flag::{asked_flag, flag};
pub(crate) use list_page::{page, selected};
pub(crate) use list_parameters::check_parameters;
pub(crate) use list_query::{ListQuery, asked_fields};
pub(crate) use list_row::{ListRow, SortValue};
pub(crate) use newer_names::{check_names, check_versions};
pub(crate) use visible_nodes::{is_of, list_scope, visible_nodes};
