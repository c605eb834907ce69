//! What instances can be made from: the names that admission takes and their sizes.

/// The only instance type.
pub const D1_STANDARD_2: &str = "datumcloud/d1-standard-2";
/// Processor time of [`D1_STANDARD_2`], in thousandths of a processor.
pub const D1_STANDARD_2_MILLICORES: i64 = 1000;
/// Memory of [`D1_STANDARD_2`], in MiB.
pub const D1_STANDARD_2_MEMORY_MIB: i64 = 2048;

/// The only class of disks, and the default.
pub const PD_STANDARD: &str = "pd-standard";
/// The only image that a disk can be filled from.
pub const UBUNTU_2204_LTS: &str = "datumcloud/ubuntu-2204-lts";
