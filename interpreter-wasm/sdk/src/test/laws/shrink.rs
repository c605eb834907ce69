//! Makes a document that breaks a law as small as possible, so that a person sees what matters.

use super::mutate::{changed, collect};
use crate::test::yaml::Node;

/// So often a smaller document is tried; each try asks the module.
const MAX_TRIES: usize = 2_000;

/// The smallest document found for which `breaks` is still true, by leaving out one value after the other. Places
/// above others are tried first, so that large parts go early.
pub(super) fn smallest(document: &Node, breaks: impl Fn(&Node) -> bool) -> Node {
    let mut best = document.clone();
    let mut tries = 0;
    loop {
        let mut places = Vec::new();
        collect(&best, &mut Vec::new(), &mut places);
        let smaller = places.into_iter().find_map(|path| {
            tries += 1;
            if tries > MAX_TRIES {
                return None;
            }
            changed(&best, &path, None).filter(|smaller| breaks(smaller))
        });
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}
