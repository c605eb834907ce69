//! What AggregateStatus makes of the statuses of several clusters. Nothing depends on the order of the items; items
//! without a status carry no knowledge and are skipped; an error names the item and its cluster.

use crate::module::status_base;
use crate::{Error, Result, StatusItem};

/// The sum of the integers at `pointer` in the items' statuses (absent = 0), stopping at the ends of 64 bits.
pub fn total(items: &[StatusItem], pointer: &str) -> Result<i64> {
    let mut total = 0_i64;
    for (index, item) in items.iter().enumerate() {
        let Some(status) = &item.status else { continue };
        let of_member = status.int(pointer).map_err(|error| at_item(index, item, error))?;
        total = total.saturating_add(of_member.unwrap_or(0));
    }
    Ok(total)
}

/// The text at `pointer` in the status of the last cluster by name that has one there which is not empty.
pub fn last_text<'a>(items: &'a [StatusItem], pointer: &str) -> Result<Option<&'a str>> {
    let mut last: Option<(&str, &str)> = None;
    for (index, item) in items.iter().enumerate() {
        let Some(status) = &item.status else { continue };
        let text = status.text(pointer).map_err(|error| at_item(index, item, error))?;
        last = last.max(
            text.filter(|text| !text.is_empty())
                .map(|text| (item.cluster_name.as_str(), text)),
        );
    }
    Ok(last.map(|(_, text)| text))
}

/// The error with the name of the item's cluster, and its place in the request (`/aggregatedStatus/0/status/...`).
pub fn at_item(index: usize, item: &StatusItem, error: Error) -> Error {
    match error {
        Error::InvalidObject { path, message } => {
            // Statuses that came through the module's dispatch know their place already.
            let base = status_base(index);
            let path = if path.starts_with(&base) { path } else { base + &path };
            Error::invalid(path, format!("cluster {}: {message}", item.cluster_name))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;

    fn item(cluster: &str, status: Option<&str>) -> StatusItem {
        StatusItem {
            cluster_name: cluster.to_owned(),
            status: status.map(|status| Json::parse(status).unwrap()),
            applied: true,
            applied_message: String::new(),
            health: None,
        }
    }

    #[test]
    fn adds_up_and_skips_items_without_status() {
        let items = [
            item("a", Some(r#"{"n":2}"#)),
            item("b", None),
            item("c", Some("{}")),
            item("d", Some(r#"{"n":3}"#)),
        ];
        assert_eq!(total(&items, "/n"), Ok(5));
        assert_eq!(
            total(
                &[item("a", Some(r#"{"n":9223372036854775807}"#)), items[0].clone()],
                "/n"
            ),
            Ok(i64::MAX)
        );
    }

    #[test]
    fn takes_the_text_of_the_last_cluster_by_name() {
        let items = [
            item("b", Some(r#"{"r":"x"}"#)),
            item("a", Some(r#"{"r":"z"}"#)),
            item("c", Some(r#"{"r":""}"#)),
        ];
        assert_eq!(last_text(&items, "/r"), Ok(Some("x")));
        assert_eq!(last_text(&[], "/r"), Ok(None));
    }

    #[test]
    fn names_the_item_of_an_error() {
        let error = total(&[item("a", None), item("b", Some(r#"{"n":2.0}"#))], "/n").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/aggregatedStatus/1/status/n: cluster b: expected an integer"),
            "{error}"
        );
    }
}
