//! Planes in values.

use std::collections::BTreeMap;
use std::sync::Arc;

use popcell_core::metrics::plane_kind;
use popcell_core::plan::Plane;

use super::engaged::Engaged;
use super::kind_watch::Sort;

/// Values for metrics. A sort is a kind of plane (`project`, `hub`, `cell`) and a kind of object; sorts that could be
/// counted and are not there have 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Engaged planes.
    pub engaged: usize,
    /// Those of them that are projects.
    pub projects: usize,
    /// Watches of engaged planes, counted here; a server counts those that are established.
    pub streams: usize,
    /// The same by sort.
    pub streams_by_sort: BTreeMap<(&'static str, &'static str), usize>,
    /// Stores that are unknown although they are watched or wait for their time.
    pub unknown: usize,
    /// Planes that miss something that is to be watched (see [`Engaged::is_known`]), by kind of plane.
    pub not_synced_planes: BTreeMap<&'static str, usize>,
    /// Objects that cannot be read.
    pub unreadable: usize,
    /// Objects that have too much of something, by plane; those that have none are not there.
    pub excessive_by_plane: BTreeMap<Plane, usize>,
    /// Objects that cannot be read, by sort.
    pub unreadable_by_sort: BTreeMap<(&'static str, &'static str), usize>,
}

impl Stats {
    pub(super) fn of(planes: &[Arc<Engaged>], streams: BTreeMap<Sort, usize>) -> Self {
        let mut stats = Self {
            engaged: planes.len(),
            streams: streams.values().sum(),
            streams_by_sort: streams,
            ..Self::default()
        };
        for plane in planes {
            let plane_kind = plane_kind(plane.plane());
            stats.projects += usize::from(matches!(plane.plane(), Plane::Project(_)));
            *stats.not_synced_planes.entry(plane_kind).or_default() += usize::from(!plane.is_known());
            for (kind, store) in plane.stores() {
                let sort = (plane_kind, kind.kind);
                let unreadable = store.unreadable().len();
                if let excessive @ 1.. = store.excessive() {
                    *stats.excessive_by_plane.entry(plane.plane().clone()).or_default() += excessive;
                }
                stats.unknown += usize::from(!store.is_known());
                stats.unreadable += unreadable;
                stats.streams_by_sort.entry(sort).or_default();
                *stats.unreadable_by_sort.entry(sort).or_default() += unreadable;
            }
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use popcell_api::kind;
    use serde_json::{Value, json};

    use super::super::testing::{list_nothing, put, silent, store};
    use super::super::{HUB, Planes};
    use super::*;

    fn named(labels: &Value) -> Value {
        json!({ "metadata": { "namespace": "n", "name": "o", "uid": "u", "resourceVersion": "1", "labels": labels } })
    }

    async fn engaged(planes: &[&Plane]) -> Planes {
        let all = silent();
        for plane in planes {
            all.engage(plane, None).await.unwrap();
        }
        all
    }

    /// The streams of a sort once the tasks that became ready have come to rest.
    async fn streams(planes: &Planes, sort: Sort) -> Option<usize> {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        planes.stats().streams_by_sort.get(&sort).copied()
    }

    #[tokio::test]
    async fn streams_are_counted_by_kind_while_they_are_followed() {
        let project = Plane::Project("p".to_owned());
        let planes = engaged(&[&project, &Plane::Project("q".to_owned()), &Plane::Hub]).await;
        assert_eq!(streams(&planes, ("project", "Workload")).await, Some(2));
        assert_eq!(
            streams(&planes, ("project", "Network")).await,
            Some(0),
            "its time has not come"
        );
        assert_eq!(streams(&planes, ("hub", "Cluster")).await, Some(1));
        let stats = planes.stats();
        assert_eq!(
            (stats.engaged, stats.projects, stats.streams),
            (3, 2, 2 * 2 + HUB.len())
        );

        put(&store(&planes, &project, kind::WORKLOAD), named(&json!({})));
        assert_eq!(streams(&planes, ("project", "Network")).await, Some(1));
        planes.disengage(&project).await;
        assert_eq!(streams(&planes, ("project", "Network")).await, Some(0));
        assert_eq!(streams(&planes, ("project", "Workload")).await, Some(1));
        planes.disengage_all().await;
        assert_eq!(planes.stats().streams, 0);
    }

    #[tokio::test]
    async fn a_plane_is_known_when_all_that_is_due_was_listed() {
        let project = Plane::Project("p".to_owned());
        let planes = engaged(&[&project, &Plane::Hub]).await;
        let of = |kind| store(&planes, &project, kind);
        let unknown = |expected: usize| {
            assert_eq!(
                planes.stats().not_synced_planes,
                [("project", expected), ("hub", 1)].into()
            );
        };
        list_nothing(&of(kind::WORKLOAD));
        unknown(1);
        list_nothing(&of(kind::WORKLOAD_DEPLOYMENT));
        unknown(0);
        put(&of(kind::WORKLOAD), named(&json!({})));
        unknown(1);
        list_nothing(&of(kind::NETWORK));
        list_nothing(&of(kind::LOCATION_BINDING));
        unknown(0);
        of(kind::WORKLOAD).lose("away".to_owned());
        unknown(1);
        planes.disengage(&project).await;
        assert_eq!(planes.stats().not_synced_planes, [("hub", 1)].into());
    }

    #[tokio::test]
    async fn unreadable_objects_are_counted_by_kind() {
        let (project, sort) = (Plane::Project("p".to_owned()), ("project", "Workload"));
        let planes = engaged(&[&project]).await;
        assert_eq!(planes.stats().unreadable_by_sort.get(&sort), Some(&0));
        put(&store(&planes, &project, kind::WORKLOAD), named(&json!(3)));
        let stats = planes.stats();
        assert_eq!((stats.unreadable, stats.unreadable_by_sort.get(&sort)), (1, Some(&1)));
        assert_eq!(stats.unreadable_by_sort.get(&("project", "Instance")), Some(&0));
    }
}
