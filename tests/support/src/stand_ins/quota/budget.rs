//! Amounts of what a project may use, and how much of it.

use popcell_api::quota::{INSTANCES, MEMORY, VCPUS};

/// Amounts, one for each resource type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Number of instances.
    pub instances: i64,
    /// Processor time, in thousandths of a processor.
    pub vcpus: i64,
    /// Memory, in MiB.
    pub memory: i64,
}

impl Amounts {
    /// The amount of a resource type; `None` where the project has no such resource.
    pub(super) fn of(&mut self, resource_type: &str) -> Option<&mut i64> {
        match resource_type {
            INSTANCES => Some(&mut self.instances),
            VCPUS => Some(&mut self.vcpus),
            MEMORY => Some(&mut self.memory),
            _ => None,
        }
    }

    /// Amount by resource type.
    pub(super) fn each(self) -> [(&'static str, i64); 3] {
        [(INSTANCES, self.instances), (VCPUS, self.vcpus), (MEMORY, self.memory)]
    }

    /// The sum of each.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, i64::saturating_add)
    }

    /// The greater of each.
    #[must_use]
    pub fn or_more(self, other: Self) -> Self {
        self.with(other, i64::max)
    }

    fn with(self, other: Self, each: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            instances: each(self.instances, other.instances),
            vcpus: each(self.vcpus, other.vcpus),
            memory: each(self.memory, other.memory),
        }
    }
}

/// What a project may use at once; no limit where there is `None`. In the units of [`Amounts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Number of instances.
    pub instances: Option<i64>,
    /// Processor time.
    pub vcpus: Option<i64>,
    /// Memory.
    pub memory: Option<i64>,
}

impl Budget {
    /// What a new project is granted by default.
    pub const SHIPPED: Self = Self {
        instances: Some(10),
        vcpus: Some(40_000),
        memory: Some(81_920),
    };

    /// So many instances of any size.
    #[must_use]
    pub const fn instances(count: i64) -> Self {
        Self {
            instances: Some(count),
            vcpus: None,
            memory: None,
        }
    }

    /// Resource types, each with its limit, of which there is not enough for `asked` beside `granted`. All or nothing:
    /// one is enough for a refusal.
    pub(super) fn lacks(&self, granted: Amounts, asked: Amounts) -> Vec<(&'static str, i64)> {
        let limits = [self.instances, self.vcpus, self.memory];
        let sums = granted.plus(asked).each();
        let all = limits.into_iter().zip(sums).zip(asked.each());
        let lacking = all.filter_map(|((limit, (resource_type, sum)), (_, asked))| {
            // What is not asked for is no reason, also when a smaller budget has come after the grants.
            let limit = limit.filter(|limit| asked > 0 && sum > *limit)?;
            Some((resource_type, limit))
        });
        lacking.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Amounts = Amounts {
        instances: 1,
        vcpus: 1000,
        memory: 2048,
    };

    fn lacking(budget: Budget, granted: Amounts, asked: Amounts) -> Vec<&'static str> {
        let lacking = budget.lacks(granted, asked).into_iter();
        lacking.map(|(resource_type, _)| resource_type).collect()
    }

    #[test]
    fn each_resource_has_its_limit_and_one_is_enough_to_refuse() {
        let none = Amounts::default();
        let two = ONE.plus(ONE);
        assert!(lacking(Budget::default(), two, ONE).is_empty());
        assert!(lacking(Budget::instances(1), none, ONE).is_empty());
        assert_eq!(lacking(Budget::instances(1), ONE, ONE), [INSTANCES]);
        let budget = Budget {
            instances: Some(3),
            vcpus: Some(2500),
            memory: Some(6144),
        };
        assert_eq!(lacking(budget, two, ONE), [VCPUS]);
        assert_eq!(lacking(budget, two.plus(ONE), ONE), [INSTANCES, VCPUS, MEMORY]);
    }

    #[test]
    fn a_budget_that_shrank_refuses_only_what_is_asked_of_it() {
        let only_memory = Amounts {
            memory: 1,
            ..Amounts::default()
        };
        assert!(lacking(Budget::instances(0), ONE, only_memory).is_empty());
        assert_eq!(lacking(Budget::instances(0), Amounts::default(), ONE), [INSTANCES]);
    }

    #[test]
    fn huge_amounts_do_not_wrap() {
        let huge = Amounts {
            instances: i64::MAX,
            ..Amounts::default()
        };
        assert_eq!(lacking(Budget::instances(10), huge, huge), [INSTANCES]);
        assert_eq!(lacking(Budget::instances(10), ONE, huge), [INSTANCES]);
    }
}
