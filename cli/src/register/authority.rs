//! The caBundle: what was registered, as long as it is of use, and the new certificates. Both are needed while a rotation
//! runs, since server and registration do not change at one moment.

use base64::Engine as _;
use jiff::Timestamp;

use crate::endpoint::certificate::{Bundle, Facts};

/// What became of the registered bundle.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The new bundle; `None` = the system's roots.
    pub bundle: Option<Bundle>,
    /// Remarks for the person who runs the command.
    pub remarks: Vec<String>,
}

/// Old and new certificates. `registered` is base64 of PEM, as the object holds it; without `new` the old ones stay.
pub fn merge(registered: Option<&str>, new: Option<&Bundle>, replace: bool, now: Timestamp) -> Merged {
    let mut merged = Merged {
        bundle: new.cloned(),
        remarks: Vec::new(),
    };
    let Some(registered) = registered.filter(|text| !text.is_empty() && !replace) else {
        return merged;
    };
    let pem = base64::engine::general_purpose::STANDARD.decode(registered);
    let old = match pem
        .map_err(|error| error.to_string())
        .and_then(|pem| Bundle::parse(&pem).map_err(|error| error.to_string()))
    {
        Ok(old) => old,
        Err(error) => {
            merged.remarks.push(format!(
                "dropped the registered caBundle, which Karmada could not use: {error}"
            ));
            return merged;
        }
    };
    for certificate in old.certificates() {
        let Some(facts) = Facts::read(certificate) else {
            continue;
        };
        if facts.expired(now) {
            merged.remarks.push(format!(
                "dropped {} from the caBundle: expired {}",
                facts.subject, facts.not_after
            ));
            continue;
        }
        let known = merged
            .bundle
            .as_ref()
            .is_some_and(|bundle| bundle.certificates().contains(certificate));
        if !known {
            merged.remarks.push(format!(
                "kept {} in the caBundle, valid until {}",
                facts.subject, facts.not_after
            ));
            merged.bundle.get_or_insert_default().add(certificate.clone());
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::certificate::testing::authority;

    fn bundle(pem: &str) -> Bundle {
        Bundle::parse(pem.as_bytes()).unwrap()
    }

    fn stored(pem: &str) -> String {
        base64::engine::general_purpose::STANDARD.encode(pem)
    }

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_new_certificate_stands_before_the_old_one() {
        let (old, new) = (authority("old", 2020..2090), authority("new", 2026..2090));
        let merged = merge(Some(&stored(&old.pem())), Some(&bundle(&new.pem())), false, now());
        assert_eq!(merged.bundle, Some(bundle(&format!("{}{}", new.pem(), old.pem()))));
        assert!(merged.remarks[0].contains("kept CN=old"), "{:?}", merged.remarks);
    }

    #[test]
    fn an_expired_one_goes_and_a_known_one_is_not_repeated() {
        let (old, new) = (authority("old", 2020..2021), authority("new", 2026..2090));
        let registered = stored(&format!("{}{}", old.pem(), new.pem()));
        let merged = merge(Some(&registered), Some(&bundle(&new.pem())), false, now());
        assert_eq!(merged.bundle, Some(bundle(&new.pem())));
        assert_eq!(merged.remarks.len(), 1);
    }

    #[test]
    fn an_unreadable_bundle_is_dropped_with_a_remark() {
        let new = authority("new", 2026..2090);
        for broken in [stored("nothing"), "%%%".to_owned()] {
            let merged = merge(Some(&broken), Some(&bundle(&new.pem())), false, now());
            assert_eq!(merged.bundle, Some(bundle(&new.pem())));
            assert!(merged.remarks[0].contains("could not use"));
        }
    }

    #[test]
    fn without_a_new_one_the_old_one_stays_and_without_any_the_system_decides() {
        let old = authority("old", 2020..2090);
        assert_eq!(
            merge(Some(&stored(&old.pem())), None, false, now()).bundle,
            Some(bundle(&old.pem()))
        );
        assert_eq!(merge(None, None, false, now()), Merged::default());
        assert_eq!(merge(Some(&stored(&old.pem())), None, true, now()).bundle, None);
    }
}
