//! What an earlier template of a WorkloadDeployment named, and what its city has to have until all of its Instances are of the new one.

/// On the WorkloadDeployment of the hub: `configmaps/settings,secrets/db`, each a plural and a name.
pub const ANNOTATION: &str = "compute.datumapis.com/previous-references";

/// Plural and name of each. What cannot be read is left out.
pub fn parse(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(',').filter_map(|key| key.split_once('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let found: Vec<_> = parse("configmaps/settings,,junk,secrets/a.b").collect();
        assert_eq!(found, [("configmaps", "settings"), ("secrets", "a.b")]);
        assert_eq!(parse("").count(), 0);
    }
}
